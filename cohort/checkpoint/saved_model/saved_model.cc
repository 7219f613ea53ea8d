// SavedModel: reads the graph of a SavedModel and runs its restore op, and then the ops that give local variables and
// tables their values.
#include "cohort/checkpoint/saved_model/saved_model.h"

#include <utility>

#include "cohort/checkpoint/saved_model/graph_reader_internal.h"
#include "cohort/checkpoint/saved_model/saved_model_files_internal.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"

namespace cohort::saved_model {
namespace {

// Returns the keys as a list for a message.
template <typename Value>
std::string NamesOf(const std::map<std::string, Value>& values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (const auto& [name, value] : values) names.push_back(name);
  return names.empty() ? "none" : StrJoin(names, ", ");
}

}  // namespace

SavedModel::SavedModel(const std::string& dir, const std::vector<std::string>& tags, const SessionConfig& config) {
  ReadGraph read = ReadSavedModelGraph(ReadFile(dir + kFile), dir, tags, graph_);
  signatures_ = std::move(read.signatures);
  session_ = std::make_unique<Session>(graph_, "", config);
  if (read.restore != nullptr) {
    session_->Run({{read.filename, Tensor::Scalar<std::string>(dir + kValues)}}, {}, {read.restore});
  }
  for (Node* op : read.init) session_->Run({}, {}, {op});
}

SavedModel::~SavedModel() = default;

std::map<std::string, Tensor> SavedModel::Run(const std::map<std::string, Tensor>& inputs,
                                              const std::string& signature) const {
  const auto it = signatures_.find(signature);
  if (it == signatures_.end()) {
    throw NotFoundError(
        StrCat("[saved model] expected one of the signatures ", NamesOf(signatures_), "; got \"", signature, "\""));
  }
  FeedList feeds;
  for (const auto& [name, tensor] : it->second.inputs) {
    const auto given = inputs.find(name);
    if (given != inputs.end()) feeds.emplace_back(tensor, given->second);
  }
  if (feeds.size() != inputs.size() || feeds.size() != it->second.inputs.size()) {
    throw InvalidArgumentError(
        StrCat("[saved model] expected the inputs ", NamesOf(it->second.inputs), "; got ", NamesOf(inputs)));
  }
  std::vector<Output> fetches;
  for (const auto& [name, tensor] : it->second.outputs) fetches.push_back(tensor);
  const RunResults values = session_->Run(feeds, fetches);
  std::map<std::string, Tensor> outputs;
  size_t i = 0;
  for (const auto& [name, tensor] : it->second.outputs) outputs[name] = values[i++];
  return outputs;
}

}  // namespace cohort::saved_model
