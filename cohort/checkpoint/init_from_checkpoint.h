// Variables that begin with the values of a checkpoint, as tf.compat.v1.train.init_from_checkpoint and warm_start make
// them. The functions change the initializers of the graph's variables. So call them when the model is built, and
// before a session initializes the variables. A session that restores a checkpoint of its own folder does not
// initialize them.
//
// The task that runs the initializers reads the file: in a cluster the chief, if there is no device scope.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"

namespace cohort::train {

// Where the value of a tensor goes: to the variable of a name, or, if the name ends in "/", to all variables of a
// scope; or to a variable, which may have parts.
using AssignmentTarget = std::variant<std::string, ops::Variable>;

// `ckpt_dir_or_file` is a prefix, or a folder, whose newest checkpoint counts. A key of `assignment_map` is the name of
// a tensor in the checkpoint, or a scope that ends in "/":
//   {"old/w", "w"}       the variable "w" begins with the tensor "old/w"
//   {"old/", "new/"}     each variable "new/x" begins with the tensor "old/x"
//   {"/", "new/"}        each variable "new/x" begins with the tensor "x"; {"/", "/"}: each with the tensor of its name
// Parts of a variable begin with their rows. Throws NotFoundError if there is no such checkpoint, tensor, variable or
// scope, and InvalidArgumentError if only one of the two ends in "/", or if shape or dtype differ.
COHORT_EXPORT void InitFromCheckpoint(Graph& graph, const std::string& ckpt_dir_or_file,
                                      const std::map<std::string, AssignmentTarget>& assignment_map);

struct COHORT_EXPORT WarmStartSettings {
  std::string ckpt_to_initialize_from;  // a prefix, or a folder, whose newest checkpoint counts
  // One regular expression (ECMAScript) selects among the trainable variables, and a list of them among all variables.
  // It must match the beginning of the name.
  std::variant<std::string, std::vector<std::string>> vars_to_warm_start = ".*";
  // The names in the checkpoint of variables that are called otherwise there, by their name in the graph.
  std::map<std::string, std::string> var_name_to_prev_var_name;
};
// The selected variables begin with the values of the checkpoint. Throws as InitFromCheckpoint does, and
// InvalidArgumentError for an expression that is not valid, and for a name in var_name_to_prev_var_name that is not
// among the selected variables.
COHORT_EXPORT void WarmStart(Graph& graph, const WarmStartSettings& settings);

}  // namespace cohort::train
