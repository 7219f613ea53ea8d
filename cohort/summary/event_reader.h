// EventReader: the events of one event file, ours or TensorFlow's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/record_io.h"
#include "cohort/core/tensor.h"
#include "cohort/summary/histogram.h"

namespace cohort {

struct SummaryValue {
  enum class Kind { kNone, kScalar, kHistogram, kTensor, kImage, kAudio };
  std::string tag;
  Kind kind = Kind::kNone;
  float scalar = 0;         // kScalar; a tensor of the plugin "scalars" counts as one
  HistogramData histogram;  // kHistogram
  Tensor tensor;            // kTensor; no tensor where it has a dtype that we lack
  std::string encoded;      // kImage, kAudio: the file's bytes
  std::string plugin_name;  // of the metadata, which only the first event of a tag carries
};

struct Event {
  enum class Kind { kNone, kFileVersion, kGraph, kMetaGraph, kSummary, kSessionLog, kLogMessage, kRunMetadata };
  double wall_time = 0;  // seconds since 1970
  int64_t step = 0;
  Kind kind = Kind::kNone;
  std::string bytes;                 // file version, serialized GraphDef or MetaGraphDef, log message, run metadata
  std::vector<SummaryValue> values;  // kSummary
  int session_status = 0;            // kSessionLog: 1 start, 2 stop, 3 checkpoint
  std::string checkpoint_path;       // kSessionLog
};

// Not thread-safe.
class EventReader {
 public:
  explicit EventReader(const std::string& path) : reader_(path) {}
  // As RecordReader::Read: a truncated tail may be read again later. Throws DataLossError with file and
  // offset for a wrong crc and for a record that is no Event.
  RecordReader::Outcome Read(Event* event);
  int64_t offset() const { return reader_.offset(); }

 private:
  RecordReader reader_;
};

}  // namespace cohort
