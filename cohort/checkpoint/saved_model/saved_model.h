// SavedModel: a graph with its values and signatures in one folder, in TensorFlow's format. TensorFlow 1 and 2 load
// what Cohort writes (tf.saved_model.load, tf.compat.v1.saved_model.load), and Cohort loads SavedModels of TensorFlow 1
// whose ops it has. The folder has saved_model.pb and the checkpoint variables/variables. See docs/formats.md.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/session.h"

namespace cohort::saved_model {

inline constexpr const char* kServingTag = "serve";
inline constexpr const char* kDefaultSignature = "serving_default";
inline constexpr const char* kPredictMethod = "tensorflow/serving/predict";

// A function that a SavedModel offers: tensors by name.
struct COHORT_EXPORT SavedModelSignature {
  std::map<std::string, Output> inputs;  // fed
  std::map<std::string, Output> outputs;
  std::string method_name = kPredictMethod;
};

// Writes the part of `graph` that the signatures and the variables need, under the tag "serve". Adds the nodes of a
// saver (scope "save") to the graph. The values come from the checkpoint with the prefix `checkpoint`. Devices are not
// written. `dir` must exist. Equal graphs and values give equal files. Throws
// - InvalidArgumentError if there is no signature, or if a tensor of a signature belongs to another graph;
// - UnimplementedError, which names op and node, if an op has no TensorFlow form;
// - what BundleReader::Read throws, such as NotFoundError for a variable that the checkpoint lacks,
// InvalidArgumentError
//   for one of another dtype or shape, and the errors of core/file.h.
// Requires: the graph is not finalized and has no node "save/...".
COHORT_EXPORT void WriteSavedModel(Graph& graph, const std::map<std::string, SavedModelSignature>& signatures,
                                   const std::string& checkpoint, const std::string& dir);

// Returns whether TensorFlow has an op of this name.
COHORT_EXPORT bool HasTensorFlowForm(std::string_view op);

// A loaded SavedModel: its graph in a session of this process. The program owns it. Any number of threads may call Run.
class COHORT_EXPORT SavedModel {
 public:
  // Loads the graph whose tags are `tags`, and restores its values. Throws NotFoundError if the folder has no
  // saved_model.pb, no graph of these tags or no values, DataLossError if a file is damaged, and what ImportGraphDef
  // throws, for example for an op that Cohort lacks.
  explicit SavedModel(const std::string& dir, const std::vector<std::string>& tags = {kServingTag},
                      const SessionConfig& config = {});
  ~SavedModel();
  SavedModel(const SavedModel&) = delete;
  SavedModel& operator=(const SavedModel&) = delete;

  // Computes all outputs of a signature, by name. Throws NotFoundError, which lists the signatures, for an unknown one,
  // InvalidArgumentError, which lists the inputs, if one is missing or unknown, and what Session::Run throws.
  std::map<std::string, Tensor> Run(const std::map<std::string, Tensor>& inputs,
                                    const std::string& signature = kDefaultSignature) const;

  const std::map<std::string, SavedModelSignature>& signatures() const { return signatures_; }
  const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
  std::map<std::string, SavedModelSignature> signatures_;
  std::unique_ptr<Session> session_;
};

}  // namespace cohort::saved_model
