// A description is text: lines "KIND KEY\tVALUE". Settings travel in a collection of the graph, as constants that hold
// such a line, because the graph is what an optimizer and a SessionCreator share.
#include "cohort/train/session/training_record.h"

#include <map>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/str_split.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/train/clock.h"

namespace cohort::train {
namespace {

constexpr const char* kCollection = "training_settings";
constexpr const char* kSetting = "setting ";
constexpr const char* kTrained = "trained variable ";
constexpr const char* kVariable = "variable ";

using Lines = std::map<std::string, std::string>;

Lines LinesOf(const std::string& description) {
  Lines lines;
  for (const std::string& text : StrSplit(description, '\n')) {
    const size_t tab = text.find('\t');
    if (tab != std::string::npos) lines[text.substr(0, tab)] = text.substr(tab + 1);
  }
  return lines;
}

// Returns null if there is no such key.
const std::string* FindValue(const Lines& lines, const std::string& key) {
  const auto found = lines.find(key);
  return found == lines.end() ? nullptr : &found->second;
}

std::string NameOf(const std::string& key) { return key.starts_with(kSetting) ? key.substr(8) : key; }

std::string Differs(const std::string& key, const std::string& worker_task, const std::string* worker,
                    const std::string& chief_task, const std::string* chief) {
  return StrCat(NameOf(key), " is ", worker == nullptr ? "missing" : *worker, " in ", worker_task, " and ",
                chief == nullptr ? "missing" : *chief, " in ", chief_task);
}

}  // namespace

void AddTrainingSetting(Graph& graph, const std::string& key, int64_t value) {
  const DeviceScope anywhere(graph, nullptr);
  const ControlDependencies none(graph, nullptr);
  const NameScope root(graph, "");
  graph.AddToCollection(kCollection, ops::Const(graph, Tensor::Scalar(StrCat(kSetting, key, "\t", value)),
                                                graph.UniqueName("training_setting")));
}

std::string DescribeTraining(const Graph& graph) {
  std::string description;
  for (const Output& setting : graph.collection(kCollection)) {
    description += setting.node->attr<Tensor>("value").scalar<std::string>() + "\n";
  }
  for (const VariableInfo* variable : graph.variables()) {
    if (variable->local) continue;
    description += StrCat(variable->trainable ? kTrained : kVariable, variable->name, "\t", variable->dtype,
                          variable->shape, "\n");
  }
  return description;
}

std::optional<std::string> DifferenceOfTrainings(const std::string& worker, const std::string& worker_task,
                                                 const std::string& chief, const std::string& chief_task) {
  const Lines of_worker = LinesOf(worker);
  const Lines of_chief = LinesOf(chief);
  for (const auto& [key, value] : of_worker) {
    const std::string* other = FindValue(of_chief, key);
    if (other == nullptr || *other != value) return Differs(key, worker_task, &value, chief_task, other);
  }
  for (const auto& [key, value] : of_chief) {
    if (key.starts_with(kVariable) || FindValue(of_worker, key) != nullptr) continue;
    return Differs(key, worker_task, nullptr, chief_task, &value);
  }
  return std::nullopt;
}

void CheckDevicesOfVariables(const Graph& graph, const std::string& component) {
  std::vector<std::string> without;
  for (const VariableInfo* variable : graph.variables()) {
    if (!variable->local && variable->handle.node->device().empty()) without.push_back(variable->name);
  }
  if (without.empty()) return;
  throw InvalidArgumentError(
      StrCat("[", component, "] expected a device for each variable of a worker that is not chief, so that ",
             "all workers share them; these have none: ", StrJoin(without, ", "),
             "; build the model in DeviceScope(graph, ReplicaDeviceSetter(...)), with a cluster that has parameter ",
             "servers"));
}

std::string NameInTraining(const Server* server, const std::string& master) {
  return server == nullptr ? StrCat("the client of ", master)
                           : StrCat("/job:", server->job(), "/task:", server->task());
}

TrainingRecord::TrainingRecord(Graph& graph, const std::string& device, std::string component)
    : graph_(graph), component_(std::move(component)) {
  const ControlDependencies none(graph, nullptr);
  const DeviceScope on_device(graph, device);
  const NameScope scope(graph, "training_record");
  const Output record = ops::ChiefRecord(graph, "training_record", "record");
  holder_ = ops::Placeholder(graph, DType::kString, Shape{}, "holder");
  description_ = ops::Placeholder(graph, DType::kString, Shape{}, "description");
  hold_ = ops::ChiefRecordHold(record, holder_, description_, "hold");
  text_ = ops::ChiefRecordRead(record, "read");
}

void TrainingRecord::Guard(SessionManagerOptions* options, const std::string& task,
                           std::chrono::milliseconds chief_wait) const {
  options->session_is_ready = [this, task](Session& session) { return AgreesWithChief(session, task); };
  options->lead = [this, task, chief_wait](Session& session, bool holds_this_training) {
    if (holds_this_training) CheckAgainstPredecessor(session, task);
    Hold(session, task, chief_wait);
  };
}

void TrainingRecord::Hold(Session& session, const std::string& task, std::chrono::milliseconds wait) const {
  try {
    session.Run({{holder_, Tensor::Scalar(task)}, {description_, Tensor::Scalar(DescribeTraining(graph_))}}, {},
                {hold_}, {.timeout = std::max(wait, std::chrono::milliseconds(1))});  // 0 would mean no limit
  } catch (const DeadlineExceededError&) {
    const std::string holder = session.Run(text_.holder).scalar<std::string>();
    if (holder.empty()) throw;
    throw AlreadyExistsError(
        StrCat("[", component_, "] expected one chief; ", task, " has is_chief = true, and so has ", holder,
               ", whose session is open since before ", SecondsOf(wait), " s; set is_chief in one of them only"));
  }
}

TrainingRecord::Found TrainingRecord::Compare(Session& session, const std::string& task) const {
  const RunResults text = session.Run({}, {text_.holder, text_.description});
  Found found{.holder = text[0].scalar<std::string>()};
  const std::string& chiefs = text[1].scalar<std::string>();
  if (chiefs.empty()) return found;  // no chief was there yet
  const std::string name = found.holder.empty() ? "the latest chief" : StrCat("the chief (", found.holder, ")");
  found.difference = DifferenceOfTrainings(DescribeTraining(graph_), task, chiefs, name);
  return found;
}

bool TrainingRecord::AgreesWithChief(Session& session, const std::string& task) const {
  const Found found = Compare(session, task);
  if (found.difference && !found.holder.empty()) {
    throw InvalidArgumentError(StrCat("[", component_, "] expected the same training in all tasks; ", *found.difference,
                                      "; start all tasks with the same program and options"));
  }
  return !found.difference;
}

void TrainingRecord::CheckAgainstPredecessor(Session& session, const std::string& task) const {
  const Found found = Compare(session, task);
  if (!found.difference) return;
  throw InvalidArgumentError(
      StrCat("[", component_, "] expected to continue the training that the parameter servers hold; ",
             *found.difference, "; to change this, start the parameter servers and all workers again. The chief then ",
             "restores the newest checkpoint"));
}

}  // namespace cohort::train
