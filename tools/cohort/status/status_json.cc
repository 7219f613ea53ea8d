#include <nlohmann/json.hpp>

#include "cohort/core/str_cat.h"
#include "tools/cohort/status/status_text.h"

namespace cohort::tools {
namespace {

using Json = nlohmann::ordered_json;

double Seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000.0; }

Json StepJson(const StepStatus& step) {
  Json json = {{"session", StrCat(step.session)},  // as text, because many readers of JSON have no 64-bit numbers
               {"step", step.step},
               {"age_seconds", Seconds(step.age)},
               {"seconds_without_progress", Seconds(step.without_progress)},
               {"may_wait", step.may_wait},
               {"waits", Json::array()}};
  for (const WaitStatus& wait : step.waits) json["waits"].push_back({{"what", wait.what}, {"task", wait.task}});
  return json;
}

Json PeerJson(const PeerStatus& peer) {
  return {{"task", peer.task},
          {"address", peer.address},
          {"connected", peer.connected},
          {"silent_seconds", Seconds(peer.silent)},
          {"sent_bytes", peer.sent_bytes},
          {"received_bytes", peer.received_bytes}};
}

void AddStatus(const TaskStatus& status, Json* json) {
  (*json)["pid"] = status.pid;
  (*json)["host"] = status.host;
  (*json)["incarnation"] = StrCat(status.incarnation);
  (*json)["is_chief"] = status.is_chief;
  (*json)["state"] = TaskActivityText(status.activity);
  (*json)["uptime_seconds"] = Seconds(status.uptime);
  (*json)["global_step"] = status.global_step ? Json(*status.global_step) : Json();
  (*json)["global_steps_per_second"] = status.global_steps_per_second;
  (*json)["steps"] = status.steps;
  (*json)["steps_per_second"] = status.steps_per_second;
  (*json)["time_shares"] = {
      {"data", status.shares.data}, {"compute", status.shares.compute}, {"wait", status.shares.wait}};
  (*json)["sent_bytes"] = status.sent_bytes;
  (*json)["received_bytes"] = status.received_bytes;
  (*json)["sent_bytes_per_second"] = status.sent_per_second;
  (*json)["received_bytes_per_second"] = status.received_per_second;
  (*json)["memory_bytes"] = status.memory_bytes;
  (*json)["sessions"] = status.sessions;
  (*json)["variables"] = status.variables;
  (*json)["variable_bytes"] = status.variable_bytes;
  (*json)["restarts"] = status.restarts;
  (*json)["hang"] = status.hang;
  (*json)["running_steps"] = Json::array();
  for (const StepStatus& step : status.running) (*json)["running_steps"].push_back(StepJson(step));
  (*json)["more_running_steps"] = status.more_running;
  (*json)["peers"] = Json::array();
  for (const PeerStatus& peer : status.peers) (*json)["peers"].push_back(PeerJson(peer));
}

const char* AnswerWord(TaskReport::Answer answer) {
  switch (answer) {
    case TaskReport::Answer::kStatus: return "status";
    case TaskReport::Answer::kSilent: return "silent";
    case TaskReport::Answer::kGone: return "gone";
    case TaskReport::Answer::kRefused: return "refused";
  }
  return "";
}

Json TaskJson(const TaskReport& task) {
  Json json = {
      {"job", task.job}, {"index", task.index}, {"address", task.address}, {"answer", AnswerWord(task.answer)}};
  if (task.answered()) {
    AddStatus(task.status, &json);
  } else {
    json["error"] = task.why_not;
  }
  return json;
}

// Bytes of other programs that are not UTF-8 are replaced.
std::string TextOf(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string StatusJson(const ClusterReport& report, const Verdict& verdict) {
  Json json = {
      {"well", verdict.well}, {"verdict", verdict.text}, {"findings", Json::array()}, {"tasks", Json::array()}};
  for (const Finding& finding : verdict.findings) {
    const TaskReport& task = report.tasks[finding.task];
    json["findings"].push_back(
        {{"job", task.job}, {"index", task.index}, {"unwell", finding.unwell}, {"text", finding.text}});
  }
  for (const TaskReport& task : report.tasks) json["tasks"].push_back(TaskJson(task));
  return TextOf(json);
}

std::string StatusJson(const std::string& verdict) {
  return TextOf({{"well", false}, {"verdict", verdict}, {"findings", Json::array()}, {"tasks", Json::array()}});
}

}  // namespace cohort::tools
