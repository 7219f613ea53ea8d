// Estimator::ExportModel and the exporters.
#include "cohort/estimator/exporter.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "cohort/checkpoint/saved_model/export_folder.h"
#include "cohort/checkpoint/saved_model/saved_model.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/estimator/model_graph.h"

namespace cohort::estimator {
namespace {

namespace fs = std::filesystem;

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

// Returns a folder temp-<seconds> that becomes <seconds>.
saved_model::ExportFolder NewExport(const std::string& base) {
  CreateDirectories(base);
  int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto path = [&](const char* prefix) { return StrCat(base, "/", prefix, seconds); };
  while (fs::exists(path("")) || fs::exists(path("temp-"))) ++seconds;
  return saved_model::ExportFolder(path(""), path("temp-"));
}

// Returns whether two exports have the same graph and the same values, whose checksums are in the index.
bool SameExport(const std::string& a, const std::string& b) {
  for (const char* file : {"/saved_model.pb", "/variables/variables.index"}) {
    if (FileExists(a + file) != FileExists(b + file)) return false;
    if (FileExists(a + file) && ReadFile(a + file) != ReadFile(b + file)) return false;
  }
  return true;
}

saved_model::Signatures SignaturesOf(const std::vector<Output>& features, const EstimatorSpec& spec) {
  saved_model::Signatures signatures;
  for (const auto& [name, outputs] : spec.export_outputs) signatures[name].outputs = outputs;
  if (signatures.empty()) {
    signatures[saved_model::kDefaultSignature].outputs = spec.predictions;
  } else if (signatures.size() == 1) {
    signatures[saved_model::kDefaultSignature] = signatures.begin()->second;
  } else if (signatures.count(saved_model::kDefaultSignature) == 0) {
    throw InvalidArgumentError(StrCat("[estimator] expected one of the ", signatures.size(),
                                      " export_outputs to be called \"", saved_model::kDefaultSignature,
                                      "\"; none is"));
  }
  for (auto& [name, signature] : signatures) {
    for (const Output& feature : features) signature.inputs[feature.node->name()] = feature;
  }
  return signatures;
}

}  // namespace

std::string Estimator::ExportModel(const std::string& export_dir_base, const ServingInputFn& serving_input_fn,
                                   const ExportOptions& options) {
  const std::string checkpoint = options.checkpoint_path.empty() ? latest_checkpoint() : options.checkpoint_path;
  if (checkpoint.empty()) {
    throw NotFoundError(StrCat("[estimator] expected a checkpoint to export in ", model_dir(), "; got none"));
  }
  saved_model::ExportFolder made = NewExport(export_dir_base);
  Graph graph;
  (void)ops::GetOrCreateGlobalStep(graph);
  const std::vector<Output> features = serving_input_fn(graph);
  LogInfo("estimator", "Calling model_fn.");
  std::map<std::string, Output> named;
  for (const Output& feature : features) named.emplace(feature.node->name(), feature);
  const EstimatorSpec spec = model_fn_({graph, features, {}, ModeKeys::kPredict, config_, named});
  LogInfo("estimator", "Done calling model_fn.");
  CheckSpec(spec, ModeKeys::kPredict);
  saved_model::WriteSavedModel(graph, SignaturesOf(features, spec), checkpoint, made.temporary());
  for (const std::string& name : options.reuse_equal ? ExportsIn(export_dir_base) : std::vector<std::string>()) {
    std::string earlier = StrCat(export_dir_base, "/", name);
    if (!SameExport(earlier, made.temporary())) continue;
    LogInfo("estimator", "The model was exported already, to ", earlier);
    return earlier;
  }
  made.Publish();
  LogInfo("estimator", "SavedModel written to: ", made.path(), "/saved_model.pb");
  return made.path();
}

FinalExporter::FinalExporter(std::string name, Estimator::ServingInputFn serving_input_fn)
    : name_(std::move(name)), serving_input_fn_(std::move(serving_input_fn)) {}

std::optional<std::string> FinalExporter::Export(Estimator& estimator, const std::string& export_path,
                                                 const std::string& checkpoint_path, const EvalMetrics&,
                                                 bool is_final) {
  if (!is_final) return std::nullopt;
  LogInfo("estimator", "Performing the final export in the end of training.");
  return estimator.ExportModel(export_path, serving_input_fn_,
                               {.checkpoint_path = checkpoint_path, .reuse_equal = true});
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
  const std::string made = estimator.ExportModel(export_path, serving_input_fn_, {.checkpoint_path = checkpoint_path});
  const std::vector<std::string> names = ExportsIn(export_path);
  for (size_t i = 0; i + static_cast<size_t>(exports_to_keep_) < names.size(); ++i) {
    // A process that is killed now must not leave a part of an export under its name.
    const std::string leaving = StrCat(export_path, "/temp-", names[i], "-old");
    RenameFile(StrCat(export_path, "/", names[i]), leaving);
    fs::remove_all(leaving);
  }
  return made;
}

}  // namespace cohort::estimator
