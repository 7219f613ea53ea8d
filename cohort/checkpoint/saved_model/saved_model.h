// SavedModel: a graph with its values and signatures in one folder, in TensorFlow's format. TensorFlow 1 and 2 load
// what Cohort writes (tf.saved_model.load, tf.compat.v1.saved_model.load). Cohort loads SavedModels of TensorFlow 1 and
// 2 and of Keras (tf.saved_model.save, Model.export) if it has their ops. The folder has saved_model.pb and the
// checkpoint variables/variables. See docs/formats.md.
//
//   Session session(graph, target);                     // a graph that was trained, also with parameter servers
//   ...
//   saved_model::SimpleSave(session, "export/1", {{"x", x}}, {{"scores", scores}});
//   const saved_model::SavedModel model("export/1");
//   const Tensor scores = model.Run({{"x", examples}}).at("scores");
//
// Keras's models have Model::ExportSavedModel, and Estimators have ExportModel.
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
using Signatures = std::map<std::string, SavedModelSignature>;  // by name

// The options of Save.
struct COHORT_EXPORT SaveOptions {
  std::vector<std::string> tags = {kServingTag};
};

// Writes the part of the session's graph that the signatures need, with the values that its variables have now, into
// the new folder `export_dir`. This is what TensorFlow's SavedModelBuilder does with add_meta_graph_and_variables and
// save. Unlike there, variables that no signature needs, such as an optimizer's, are not in the file. Local variables
// are written with their initial values. Devices are not written, so the result of a training with parameter servers
// can be loaded by one process. The graph does not change, and it may be finalized. The runs that read the values are
// not seen by the session's interceptor. If other steps update variables meanwhile, the values may be of different
// steps. The folder gets its name when it is complete; until then it is called `<export_dir>.tempstate<16 hex digits>`.
// Throws
// - InvalidArgumentError if there is no signature or no tag, or if a tensor of a signature is not of the session's
//   graph;
// - UnimplementedError, which names op and node, if TensorFlow has no form of an op;
// - AlreadyExistsError, which names the folder, if `export_dir` is there and is not an empty folder;
// - what the session throws, such as FailedPreconditionError for a variable that has no value, and the errors of
//   core/file.h.
COHORT_EXPORT void Save(Session& session, const std::string& export_dir, const Signatures& signatures,
                        const SaveOptions& options = {});

// Does what Save does, with the one signature "serving_default" and the tag "serve". It is TensorFlow's
// tf.compat.v1.saved_model.simple_save.
COHORT_EXPORT void SimpleSave(Session& session, const std::string& export_dir,
                              const std::map<std::string, Output>& inputs,
                              const std::map<std::string, Output>& outputs);

// Writes the part of `graph` that the signatures and the variables need, under the tag "serve". All variables that are
// not local are written. Their values come from the checkpoint with the prefix `checkpoint`. Devices are not written.
// `dir` must exist. Equal graphs and values give equal files. Throws
// - InvalidArgumentError if there is no signature, or if a tensor of a signature belongs to another graph;
// - UnimplementedError, which names op and node, if an op has no TensorFlow form;
// - what BundleReader::Read throws, such as NotFoundError for a variable that the checkpoint lacks, and
//   InvalidArgumentError for one of another dtype or shape; and the errors of core/file.h.
COHORT_EXPORT void WriteSavedModel(const Graph& graph, const Signatures& signatures, const std::string& checkpoint,
                                   const std::string& dir);

// Returns whether TensorFlow has an op of this name.
COHORT_EXPORT bool HasTensorFlowForm(std::string_view op);

// A loaded SavedModel: its graph in a session of this process. The program owns it. Any number of threads may call Run.
class COHORT_EXPORT SavedModel {
 public:
  // Loads the graph whose tags are `tags`, runs its restore op, and then its init op, which fills tables and gives
  // local variables their values. The graph gets only the nodes that the signatures and these ops need. The nodes of
  // functions stand in the place of the nodes that call them, in TensorFlow 2's files in the place of the whole
  // signature. Throws
  // - NotFoundError if the folder has no saved_model.pb, no graph of these tags or no values, or if Cohort lacks ops of
  //   the graph: the message lists up to ten of them, each with a node and the function that has it;
  // - InvalidArgumentError if functions are missing, damaged, too large or call themselves;
  // - DataLossError if a file is damaged;
  // - what ImportGraphDef throws.
  explicit SavedModel(const std::string& dir, const std::vector<std::string>& tags = {kServingTag},
                      const SessionConfig& config = {});
  ~SavedModel();
  SavedModel(const SavedModel&) = delete;
  SavedModel& operator=(const SavedModel&) = delete;

  // Computes all outputs of a signature, by name. Throws NotFoundError, which lists the signatures, for an unknown one,
  // InvalidArgumentError, which lists the inputs, if one is missing or unknown, and what Session::Run throws.
  std::map<std::string, Tensor> Run(const std::map<std::string, Tensor>& inputs,
                                    const std::string& signature = kDefaultSignature) const;

  const Signatures& signatures() const { return signatures_; }
  const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
  Signatures signatures_;
  std::unique_ptr<Session> session_;
};

}  // namespace cohort::saved_model
