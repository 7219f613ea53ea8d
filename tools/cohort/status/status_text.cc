#include "tools/cohort/status/status_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/device_name.h"
#include "tools/cohort/line_output.h"

namespace cohort::tools {
namespace {

using Row = std::vector<std::string>;

constexpr std::array kColumns = {"TASK",   "STATE",  "STEP",   "STEPS/S",   "DATA",     "COMPUTE",     "WAIT",
                                 "SENT/S", "RECV/S", "MEMORY", "VARIABLES", "RESTARTS", "INCARNATION", "UP"};
constexpr size_t kLeftColumns = 2;  // the others are right-aligned

std::string Format(const char* format, double value) {
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string Percent(double share) { return Format("%.0f%%", share * 100); }

// Returns "812 B", "12.3 MB".
std::string Bytes(double bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return Format(unit == 0 || bytes >= 99.95 ? "%.0f " : "%.1f ", bytes) + kUnits[unit];
}

std::string Bytes(uint64_t bytes) { return Bytes(static_cast<double>(bytes)); }

// Returns the first eight of sixteen hexadecimal digits. They tell one process of a task from another.
std::string Incarnation(uint64_t incarnation) {
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "%08x", static_cast<unsigned>(incarnation >> 32));
  return text.data();
}

const char* AnswerText(TaskReport::Answer answer) {
  switch (answer) {
    case TaskReport::Answer::kStatus: return "";
    case TaskReport::Answer::kSilent: return "no answer";
    case TaskReport::Answer::kGone: return "gone";
    case TaskReport::Answer::kRefused: return "refused";
  }
  return "";
}

Row RowOf(const TaskReport& task) {
  if (!task.answered()) {
    Row row(kColumns.size(), "-");
    row[0] = task.Name();
    row[1] = AnswerText(task.answer);
    return row;
  }
  const TaskStatus& status = task.status;
  return {task.Name() + (status.is_chief ? " (chief)" : ""),
          TaskActivityText(status.activity),
          status.global_step ? GroupedNumber(*status.global_step) : "-",
          RateText(status.steps_per_second),
          Percent(status.shares.data),
          Percent(status.shares.compute),
          Percent(status.shares.wait),
          Bytes(status.sent_per_second),
          Bytes(status.received_per_second),
          Bytes(status.memory_bytes),
          status.variables == 0 ? "-" : StrCat(status.variables, ", ", Bytes(status.variable_bytes)),
          StrCat(status.restarts),
          Incarnation(status.incarnation),
          DurationText(status.uptime)};
}

std::string Table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(kColumns.size(), 0);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      line += i < kLeftColumns ? row[i] + space : space + row[i];
      if (i + 1 < row.size()) line += "  ";
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string WaitText(const WaitStatus& wait) {
  const char* preposition = wait.of_value ? " of " : " for ";
  return StrCat("waits ", wait.of_value ? "for " : "in ", wait.what,
                wait.task.empty() ? "" : StrCat(preposition, ShortTaskName(wait.task)));
}

std::string StepText(const StepStatus& step) {
  std::string text = StrCat("  step ", step.step, ": ", DurationText(step.age), " old, no progress for ",
                            DurationText(step.without_progress));
  for (const WaitStatus& wait : step.waits) text += StrCat("; ", WaitText(wait));
  return text + "\n";
}

std::string PeerText(const PeerStatus& peer) {
  return StrCat("  ", ShortTaskName(peer.task),
                peer.connected ? " is connected, silent for " : " is lost, last heard of ", DurationText(peer.silent),
                peer.connected ? "" : " ago", "\n");
}

// What is known of one task.
std::string Expanded(const TaskReport& task, const std::vector<std::string>& findings) {
  std::string text = StrCat("\n", task.Name(), " at ", task.address);
  if (task.answered()) text += StrCat(", pid ", task.status.pid, " on ", task.status.host);
  text += "\n";
  for (const std::string& finding : findings) text += StrCat("  ", finding, "\n");
  if (!task.answered()) return text + (task.why_not.empty() ? "" : StrCat("  ", task.why_not, "\n"));
  for (const StepStatus& step : task.status.running) text += StepText(step);
  if (task.status.more_running > 0) text += StrCat("  and ", task.status.more_running, " more steps\n");
  for (const PeerStatus& peer : task.status.peers) {
    if (!peer.address.empty()) text += PeerText(peer);  // a client has no address
  }
  return text;
}

// Removes control characters, line by line.
std::string Cleaned(const std::string& text) {
  std::string clean;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    clean += CutToColumns(std::string_view(text).substr(begin, end - begin), SIZE_MAX) + "\n";
    begin = end + 1;
  }
  return clean;
}

}  // namespace

std::string StatusText(const ClusterReport& report, const Verdict& verdict) {
  std::vector<Row> rows = {Row(kColumns.begin(), kColumns.end())};
  for (const TaskReport& task : report.tasks) rows.push_back(RowOf(task));
  std::string text = verdict.text + "\n\n" + Table(rows);
  std::map<size_t, std::vector<std::string>> findings;  // by task
  for (const Finding& finding : verdict.findings) findings[finding.task].push_back(finding.text);
  for (const auto& [task, texts] : findings) text += Expanded(report.tasks[task], texts);
  return Cleaned(text);
}

std::optional<std::pair<std::string, int>> ParseTaskName(const std::string& text) {
  if (text.starts_with("/job:")) {
    try {
      const DeviceName name = DeviceName::Parse(text);
      if (name.job && name.task && !name.type) return std::pair(*name.job, *name.task);
    } catch (const Error&) {
      return std::nullopt;
    }
    return std::nullopt;
  }
  const size_t separator = text.find_first_of("/: ");
  if (separator == 0 || separator == std::string::npos) return std::nullopt;
  int index = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + separator + 1, end, index);
  if (error != std::errc() || stop != end || index < 0) return std::nullopt;
  return std::pair(text.substr(0, separator), index);
}

}  // namespace cohort::tools
