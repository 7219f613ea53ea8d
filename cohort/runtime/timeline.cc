// Makes the events in this order: the names of the rows, the executions of all devices, the arrows, the curves. Nodes
// that wait overlap others of their thread, and the format wants no such events on one line. So each event gets the
// first line of its device that is free (AssignLines).
#include "cohort/runtime/timeline.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      quoted += code.data();
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Returns nanoseconds as a number of microseconds, with all digits.
std::string Micros(int64_t nanos) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%lld.%03lld", static_cast<long long>(nanos / 1000),
                static_cast<long long>(nanos % 1000));
  return text.data();
}

class TimelineWriter {
 public:
  TimelineWriter(const StepStats& stats, const TimelineOptions& options) : stats_(stats), options_(options) {}

  std::string Write() {
    FindStart();
    for (size_t pid = 0; pid < stats_.dev_stats.size(); ++pid) AddDevice(pid);
    if (options_.show_dataflow) AddTransfers();
    return StrCat("{\"traceEvents\": [\n", StrJoin(events_, ",\n"), "\n], \"displayTimeUnit\": \"ns\", ",
                  "\"otherData\": {\"start_nanos\": ", start_, "}}\n");
  }

 private:
  // The place of an execution in the timeline.
  struct Place {
    size_t pid = 0;
    size_t line = 0;
    int64_t start = 0;  // in nanoseconds after start_
    int64_t end = 0;
  };

  void FindStart() {
    int64_t start = std::numeric_limits<int64_t>::max();
    for (const DeviceStepStats& device : stats_.dev_stats) {
      for (const NodeExecStats& node : device.node_stats) start = std::min(start, node.all_start_nanos);
    }
    if (start != std::numeric_limits<int64_t>::max()) start_ = start;
  }

  void AddDevice(size_t pid) {
    const DeviceStepStats& device = stats_.dev_stats[pid];
    const std::string dropped = device.num_dropped > 0 ? StrCat(" (", device.num_dropped, " nodes left out)") : "";
    events_.push_back(StrCat("{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": ", pid,
                             ", \"args\": {\"name\": ", Quoted(device.device + dropped), "}}"));
    const std::vector<Place> places = AssignLines(pid);
    std::unordered_map<std::string, size_t> latest;  // by the node's name: its latest execution so far
    std::vector<int64_t> read_until(places.size());
    for (size_t i = 0; i < places.size(); ++i) {
      const NodeExecStats& node = device.node_stats[i];
      AddExecution(node, places[i]);
      read_until[i] = places[i].end;
      for (const std::string& input : node.inputs) {
        const auto producer = latest.find(input);
        if (producer == latest.end()) continue;
        if (options_.show_dataflow) AddArrow(input, places[producer->second], places[i]);
        read_until[producer->second] = std::max(read_until[producer->second], places[i].end);
      }
      latest[node.node_name] = i;
      if (node.op == "_Send") sends_[node.transfer] = places[i];
      if (node.op == "_Recv") receives_.emplace_back(node.transfer, places[i]);
    }
    if (options_.show_memory) AddMemory(pid, places, read_until);
  }

  std::vector<Place> AssignLines(size_t pid) const {
    std::vector<Place> places;
    std::vector<int64_t> ends;  // of the last event of each line
    for (const NodeExecStats& node : stats_.dev_stats[pid].node_stats) {
      Place place{pid, 0, node.all_start_nanos - start_, 0};
      place.end = place.start + node.all_end_rel_nanos;
      const auto free = std::find_if(ends.begin(), ends.end(), [&](int64_t end) { return end <= place.start; });
      place.line = static_cast<size_t>(free - ends.begin());
      if (free == ends.end()) ends.push_back(0);
      ends[place.line] = place.end;
      places.push_back(place);
    }
    return places;
  }

  void AddExecution(const NodeExecStats& node, const Place& place) {
    std::string args = StrCat("\"name\": ", Quoted(node.node_name), ", \"op\": ", Quoted(node.op));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      args += StrCat(", \"input", i, "\": ", Quoted(node.inputs[i]));
    }
    if (!node.transfer.empty()) args += StrCat(", \"transfer\": ", Quoted(node.transfer));
    args += StrCat(", \"output_bytes\": ", node.output_bytes, ", \"thread\": ", node.thread_id);
    events_.push_back(StrCat("{\"ph\": \"X\", \"cat\": \"Op\", \"name\": ", Quoted(node.op), ", \"pid\": ", place.pid,
                             ", \"tid\": ", place.line, ", \"ts\": ", Micros(place.start),
                             ", \"dur\": ", Micros(place.end - place.start), ", \"args\": {", args, "}}"));
  }

  void AddArrow(const std::string& value, const Place& from, const Place& to) {
    AddArrowEnd("s", value, from, from.end);
    AddArrowEnd("t", value, to, to.start);
    ++arrows_;
  }

  void AddArrowEnd(const char* phase, const std::string& value, const Place& place, int64_t time) {
    events_.push_back(StrCat("{\"ph\": \"", phase, "\", \"cat\": \"DataFlow\", \"name\": ", Quoted(value),
                             ", \"pid\": ", place.pid, ", \"tid\": ", place.line, ", \"ts\": ", Micros(time),
                             ", \"id\": ", arrows_, "}"));
  }

  void AddTransfers() {
    for (const auto& [transfer, place] : receives_) {
      const auto send = sends_.find(transfer);
      if (send != sends_.end()) AddArrow(transfer, send->second, place);
    }
  }

  void AddMemory(size_t pid, const std::vector<Place>& places, const std::vector<int64_t>& read_until) {
    const DeviceStepStats& device = stats_.dev_stats[pid];
    std::map<int64_t, int64_t> changes;  // by time
    for (size_t i = 0; i < places.size(); ++i) {
      changes[places[i].end] += device.node_stats[i].output_bytes;
      changes[read_until[i]] -= device.node_stats[i].output_bytes;
    }
    int64_t bytes = 0;
    for (const auto& [time, change] : changes) {
      bytes += change;
      events_.push_back(StrCat("{\"ph\": \"C\", \"cat\": \"Memory\", \"name\": \"bytes of outputs\", \"pid\": ", pid,
                               ", \"ts\": ", Micros(time), ", \"args\": {\"bytes\": ", bytes, "}}"));
    }
  }

  const StepStats& stats_;
  const TimelineOptions options_;
  int64_t start_ = 0;
  int64_t arrows_ = 0;
  std::map<std::string, Place> sends_;  // by NodeExecStats::transfer
  std::vector<std::pair<std::string, Place>> receives_;
  std::vector<std::string> events_;
};

}  // namespace

std::string ChromeTraceFormat(const StepStats& stats, const TimelineOptions& options) {
  return TimelineWriter(stats, options).Write();
}

}  // namespace cohort
