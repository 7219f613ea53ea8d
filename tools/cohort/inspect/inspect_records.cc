// Inspects files of records: event files and TFRecord files. A function reads the records one after another and
// collects statistics, or prints each event. Then it prints a table, and reports how reading ended. The helpers that
// read a record and report the end come first.
#include <algorithm>
#include <ctime>
#include <iostream>
#include <limits>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/proto/example.pb.h"
#include "cohort/proto/graph.pb.h"
#include "cohort/summary/event_reader.h"
#include "tools/cohort/inspect/inspect_kinds.h"

namespace cohort::tools {
namespace {

using Outcome = RecordReader::Outcome;

std::string UtcTime(double seconds) {
  if (!(seconds >= 0 && seconds < 1e11)) return StrCat(seconds);
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string Buckets(const HistogramData& data) {
  std::string text;
  const size_t count = std::min(data.counts.size(), data.limits.size());
  for (size_t i = 0; i < count; ++i) {
    if (data.counts[i] > 0) text += StrCat(" ", data.counts[i], " below ", data.limits[i], ";");
  }
  return text;
}

std::string ValueText(const SummaryValue& value, const InspectOptions& options) {
  switch (value.kind) {
    case SummaryValue::Kind::kScalar: return StrCat(value.scalar);
    case SummaryValue::Kind::kHistogram: {
      const HistogramData& data = value.histogram;
      return StrCat("histogram: ", data.num, " values in [", data.min, ", ", data.max, "], sum ", data.sum,
                    options.values ? StrCat(";", Buckets(data)) : "");
    }
    case SummaryValue::Kind::kTensor:
      return StrCat(value.plugin_name.empty() ? "tensor" : Printable(value.plugin_name), ": ",
                    Printable(value.tensor.ToString(options.values ? options.max_values : 0)));
    case SummaryValue::Kind::kImage: return StrCat("image of ", value.encoded.size(), " bytes");
    case SummaryValue::Kind::kAudio: return StrCat("audio of ", value.encoded.size(), " bytes");
    default: return "no value";
  }
}

std::string SessionText(const Event& event) {
  constexpr const char* kNames[] = {"unspecified", "START", "STOP", "CHECKPOINT"};
  const bool known = event.session_status >= 0 && event.session_status < 4;
  return StrCat("session log: ", known ? kNames[event.session_status] : "?", event.checkpoint_path.empty() ? "" : " ",
                Printable(event.checkpoint_path), event.bytes.empty() ? "" : " ", Printable(event.bytes));
}

std::string GraphText(const Event& event) {
  proto::GraphDef graph;
  const std::string nodes = graph.ParseFromString(event.bytes) ? StrCat(graph.node_size(), " nodes") : "unreadable";
  return StrCat("graph: ", nodes, " (", event.bytes.size(), " bytes)");
}

std::string EventText(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kFileVersion: return "version " + Printable(event.bytes);
    case Event::Kind::kGraph: return GraphText(event);
    case Event::Kind::kMetaGraph: return StrCat("meta graph (", event.bytes.size(), " bytes)");
    case Event::Kind::kSessionLog: return SessionText(event);
    case Event::Kind::kLogMessage: return "log: " + Printable(event.bytes);
    case Event::Kind::kRunMetadata: return StrCat("run metadata (", event.bytes.size(), " bytes)");
    default: return "nothing";
  }
}

void AddEvent(const Event& event, const InspectOptions& options, TextTable* table) {
  const std::string step = StrCat(event.step);
  const std::string time = UtcTime(event.wall_time);
  if (event.kind != Event::Kind::kSummary) table->AddRow({step, time, "", EventText(event)});
  for (const SummaryValue& value : event.values) {
    table->AddRow({step, time, Printable(value.tag), ValueText(value, options)});
  }
}

std::string Count(int64_t count, const char* noun) { return StrCat(count, " ", noun, count == 1 ? "" : "s"); }

// Returns whether reading ended at the end of the file. If not, prints the reason.
bool ReportEnd(Outcome outcome, const std::string& path, int64_t offset, std::ostream& err) {
  if (outcome == Outcome::kEnd) return true;
  err << "cohort inspect: " << path << " is cut off inside the record at offset " << offset
      << " (or still being written)\n";
  return false;
}

// Statistics of the records of a file.
struct RecordStatistics {
  int64_t count = 0;
  int64_t bytes = 0;
  size_t smallest = std::numeric_limits<size_t>::max();
  size_t largest = 0;
  int64_t examples = 0;
  std::map<std::string, std::string> features;  // name -> kind and count of values in the first example that has it

  void Add(const std::string& record) {
    ++count;
    bytes += static_cast<int64_t>(record.size());
    smallest = std::min(smallest, record.size());
    largest = std::max(largest, record.size());
  }
};

std::string FeatureText(const proto::Feature& feature) {
  switch (feature.kind_case()) {
    case proto::Feature::kBytesList: return StrCat("bytes[", feature.bytes_list().value_size(), "]");
    case proto::Feature::kFloatList: return StrCat("float[", feature.float_list().value_size(), "]");
    case proto::Feature::kInt64List: return StrCat("int64[", feature.int64_list().value_size(), "]");
    default: return "nothing";
  }
}

std::string FirstValues(const proto::Feature& feature, int max_values) {
  std::string text;
  const auto add = [&](const auto& list, const auto& show) {
    for (int i = 0; i < std::min(list.value_size(), max_values); ++i)
      text += StrCat(i > 0 ? ", " : "", show(list.value(i)));
    if (list.value_size() > max_values) text += ", ...";
  };
  const auto number = [](const auto& value) { return value; };
  switch (feature.kind_case()) {
    case proto::Feature::kBytesList:
      add(feature.bytes_list(), [](const std::string& value) {
        return StrCat('"', Printable(value.substr(0, 40)), value.size() > 40 ? "..." : "", '"');
      });
      break;
    case proto::Feature::kFloatList: add(feature.float_list(), number); break;
    case proto::Feature::kInt64List: add(feature.int64_list(), number); break;
    default: break;
  }
  return text;
}

// Returns whether the record is an Example. If so, adds its features to the statistics.
bool AddExample(const std::string& record, const InspectOptions& options, RecordStatistics* statistics,
                std::ostream& out) {
  proto::Example example;
  if (!example.ParseFromString(record) || example.features().feature().empty()) return false;
  const bool print = options.values && statistics->examples < options.max_values;
  if (print) out << "example " << statistics->count - 1 << ":\n";
  const std::map<std::string, proto::Feature> sorted(example.features().feature().begin(),
                                                     example.features().feature().end());
  for (const auto& [name, feature] : sorted) {
    statistics->features.emplace(name, FeatureText(feature));
    if (print) out << "  " << Printable(name) << ": " << FirstValues(feature, options.max_values) << "\n";
  }
  ++statistics->examples;
  return true;
}

void PrintStatistics(const std::string& path, const RecordStatistics& statistics, std::ostream& out) {
  out << "TFRecord file " << path << ": " << Count(statistics.count, "record");
  if (statistics.count > 0) {
    out << " of " << statistics.smallest << " to " << statistics.largest << " bytes, " << statistics.bytes << " in all";
  }
  out << "\n";
  if (statistics.examples == 0) {
    if (statistics.count > 0) out << "no record is a tf.Example\n";
    return;
  }
  out << (statistics.examples == statistics.count ? "every" : StrCat(statistics.examples))
      << " record is a tf.Example with\n";
  TextTable table;
  for (const auto& [name, kind] : statistics.features) table.AddRow({"  " + Printable(name), kind});
  table.Print(out);
}

}  // namespace

bool InspectEvents(const std::string& path, const InspectOptions& options, std::ostream& out, std::ostream& err) {
  EventReader reader(path);
  TextTable table;
  table.AddRow({"step", "wall time", "tag", "value"});
  int64_t count = 0;
  Event event;
  Outcome outcome = Outcome::kEnd;
  std::string problem;
  try {
    while ((outcome = reader.Read(&event)) == Outcome::kRecord) {
      ++count;
      AddEvent(event, options, &table);
    }
  } catch (const DataLossError& error) {
    problem = error.what();
  }
  out << "event file " << path << ": " << Count(count, "event") << "\n";
  table.Print(out);
  if (problem.empty()) return ReportEnd(outcome, path, reader.offset(), err);
  err << "cohort inspect: " << problem << "\n";
  return false;
}

bool InspectRecords(const std::string& path, const InspectOptions& options, std::ostream& out, std::ostream& err) {
  RecordReader reader(path);
  RecordStatistics statistics;
  std::string record;
  Outcome outcome = Outcome::kEnd;
  std::string problem;
  try {
    while ((outcome = reader.Read(&record)) == Outcome::kRecord) {
      statistics.Add(record);
      AddExample(record, options, &statistics, out);
    }
  } catch (const DataLossError& error) {
    problem = error.what();
  }
  if (statistics.count == 0 && !problem.empty()) {
    throw DataLossError(StrCat(path, " is no checkpoint, no event file and no TFRecord file: ", problem));
  }
  PrintStatistics(path, statistics, out);
  if (problem.empty()) return ReportEnd(outcome, path, reader.offset(), err);
  err << "cohort inspect: " << problem << "\n";
  return false;
}

}  // namespace cohort::tools
