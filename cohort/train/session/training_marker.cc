#include "cohort/train/session/training_marker.h"

#include <atomic>
#include <cstdlib>
#include <functional>

#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device.h"
#include "cohort/ops/array.h"
#include "cohort/ops/state.h"
#include "cohort/ops/variables.h"

namespace cohort::train {
namespace {

constexpr const char* kIdFile = "/training_id";
constexpr int kRandomBits = 32;  // the lower bits of a number without a folder; the upper ones are of the job

// Returns the variable beside which the marker lies: the global step, or else the first variable that is not local.
const VariableInfo* PlaceOfMarker(Graph& graph) {
  if (const auto step = ops::GetGlobalStep(graph)) return step->info();
  for (const VariableInfo* variable : graph.variables()) {
    if (!variable->local) return variable;
  }
  return nullptr;
}

// Returns a number for the n-th call in this process, equal in each process that has the same COHORT_RUN_ID. Returns 0
// without that variable.
uint64_t NextOfThisJob() {
  static std::atomic<int> calls{0};
  const int call = ++calls;
  const char* run = std::getenv("COHORT_RUN_ID");
  if (run == nullptr || *run == '\0') return 0;
  return (std::hash<std::string>()(StrCat(run, "/", call)) >> (kRandomBits + 1)) | 1;
}

}  // namespace

TrainingMarker::TrainingMarker(Graph& graph) : job_(NextOfThisJob()) {
  const VariableInfo* place = PlaceOfMarker(graph);
  if (place != nullptr) AddNodes(graph, place->handle.node->device(), "training_marker");
}

TrainingMarker::TrainingMarker(Graph& graph, const std::string& device, const std::string& name) {
  AddNodes(graph, device, name);
}

void TrainingMarker::AddNodes(Graph& graph, const std::string& device, const std::string& name) {
  const ControlDependencies none(graph, nullptr);
  const DeviceScope scope_of_device(graph, device);
  const NameScope scope(graph, name);
  const Output handle = ops::VarHandleOp(graph, DType::kInt64, Shape{}, name, "", "marker");
  value_ = ops::ReadVariableOp(handle);
  is_set_ = ops::VarIsInitializedOp(handle);
  fed_ = ops::Placeholder(graph, DType::kInt64, Shape{}, "new_marker");
  set_ = ops::AssignVariableOp(handle, fed_);
}

std::optional<int64_t> TrainingMarker::Read(Session& session) const {
  if (!session.Run(is_set_).scalar<bool>()) return std::nullopt;
  return session.Run(value_).scalar<int64_t>();
}

void TrainingMarker::Set(Session& session, int64_t number) const {
  session.Run({{fed_, Tensor::Scalar<int64_t>(number)}}, {}, {set_});
}

bool TrainingMarker::Knows(int64_t number, const std::string& dir) const {
  if (number <= 0) return false;
  if (number == given_) return true;
  if (dir.empty()) return job_ != 0 && static_cast<uint64_t>(number) >> kRandomBits == job_;
  const std::string path = dir + kIdFile;
  return FileExists(path) && std::strtoll(ReadFile(path).c_str(), nullptr, 10) == number;
}

int64_t TrainingMarker::NewNumber(const std::string& dir) {
  const uint64_t random = NewIncarnation();
  if (dir.empty() && job_ != 0) {
    given_ = static_cast<int64_t>(job_ << kRandomBits | random >> kRandomBits);
  } else {
    given_ = static_cast<int64_t>(random >> 1) | 1;
  }
  if (!dir.empty()) {
    CreateDirectories(dir);
    WriteFileAtomically(dir + kIdFile, StrCat(given_, "\n"));
  }
  return given_;
}

}  // namespace cohort::train
