#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/estimator/model_graph.h"
#include "cohort/estimator/train_and_evaluate.h"
#include "cohort/graph/graph_def.h"

namespace cohort::estimator {
namespace {

namespace fs = std::filesystem;

// Returns {"a": "x:0", "b": "y:0"}.
std::string JsonOf(const std::vector<std::pair<std::string, Output>>& values) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : values) parts.push_back(StrCat("\"", name, "\": \"", value.name(), "\""));
  return StrCat("{", StrJoin(parts, ", "), "}");
}

// Returns the exports in a folder, which have numbers as names, the oldest first.
std::vector<std::string> ExportsIn(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::make_pair(a.size(), a) < std::make_pair(b.size(), b);
  });
  return names;
}

}  // namespace

std::string Estimator::ExportModel(const std::string& export_dir_base, const ServingInputFn& serving_input_fn,
                                   const std::string& checkpoint_path) {
  const std::string checkpoint = checkpoint_path.empty() ? latest_checkpoint() : checkpoint_path;
  if (checkpoint.empty()) {
    throw NotFoundError(StrCat("[estimator] expected a checkpoint to export in ", model_dir(), "; got none"));
  }
  ModelGraph model;
  model.global_step = ops::GetOrCreateGlobalStep(model.graph);
  const std::vector<Output> features = serving_input_fn(model.graph);
  LogInfo("estimator", "Calling model_fn.");
  model.spec = model_fn_({model.graph, features, {}, ModeKeys::kPredict, config_});
  LogInfo("estimator", "Done calling model_fn.");
  CheckSpec(model.spec, ModeKeys::kPredict);
  model.MakeScaffold(config_);
  const auto session = OpenRestored(model, checkpoint, {});
  CreateDirectories(export_dir_base);
  int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  while (fs::exists(StrCat(export_dir_base, "/", seconds))) ++seconds;
  const std::string final_dir = StrCat(export_dir_base, "/", seconds);
  const std::string temporary = StrCat(export_dir_base, "/temp-", seconds);
  fs::remove_all(temporary);
  CreateDirectories(temporary + "/variables");
  (void)session->RunStepFn([&](train::MonitoredSession::StepContext& context) {
    model.scaffold->saver()->Save(context.session(), temporary + "/variables/variables");
    return RunResults();
  });
  session->Close();
  WriteFileAtomically(temporary + "/graph.pbtxt", GraphDefText(model.graph));
  std::vector<std::pair<std::string, Output>> inputs, outputs;
  for (const Output& feature : features) inputs.emplace_back(feature.node->name(), feature);
  for (const auto& [name, value] : model.spec.predictions) outputs.emplace_back(name, value);
  WriteFileAtomically(temporary + "/signature.json",
                      StrCat("{\"inputs\": ", JsonOf(inputs), ", \"outputs\": ", JsonOf(outputs), "}\n"));
  RenameFile(temporary, final_dir);
  LogInfo("estimator", "The model was exported to ", final_dir);
  return final_dir;
}

FinalExporter::FinalExporter(std::string name, Estimator::ServingInputFn serving_input_fn)
    : name_(std::move(name)), serving_input_fn_(std::move(serving_input_fn)) {}

std::optional<std::string> FinalExporter::Export(Estimator& estimator, const std::string& export_path,
                                                 const std::string& checkpoint_path, const EvalMetrics&,
                                                 bool is_final) {
  if (!is_final) return std::nullopt;
  LogInfo("estimator", "Performing the final export in the end of training.");
  return estimator.ExportModel(export_path, serving_input_fn_, checkpoint_path);
}

LatestExporter::LatestExporter(std::string name, Estimator::ServingInputFn serving_input_fn, int exports_to_keep)
    : name_(std::move(name)), serving_input_fn_(std::move(serving_input_fn)), exports_to_keep_(exports_to_keep) {
  if (exports_to_keep < 1) {
    throw InvalidArgumentError(
        StrCat("[LatestExporter] expected exports_to_keep of at least 1; got ", exports_to_keep));
  }
}

std::optional<std::string> LatestExporter::Export(Estimator& estimator, const std::string& export_path,
                                                  const std::string& checkpoint_path, const EvalMetrics&,
                                                  bool /*is_final*/) {
  const std::string made = estimator.ExportModel(export_path, serving_input_fn_, checkpoint_path);
  const std::vector<std::string> names = ExportsIn(export_path);
  for (size_t i = 0; i + static_cast<size_t>(exports_to_keep_) < names.size(); ++i) {
    fs::remove_all(StrCat(export_path, "/", names[i]));
  }
  return made;
}

}  // namespace cohort::estimator
