// EventReader: reads the events of one event file of Cohort or TensorFlow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/record_io.h"
#include "cohort/core/tensor.h"
#include "cohort/summary/histogram.h"

namespace cohort {

// One value of a summary event. Its kind says which member is set.
struct SummaryValue {
  enum class Kind { kNone, kScalar, kHistogram, kTensor, kImage, kAudio };
  std::string tag;
  Kind kind = Kind::kNone;
  float scalar = 0;         // of kScalar: also a float32 scalar tensor whose plugin_name is "scalars" or ""
  HistogramData histogram;  // of kHistogram
  Tensor tensor;            // of kTensor; undefined if Cohort does not have its dtype
  std::string encoded;      // of kImage and kAudio: the bytes of the encoded file
  std::string plugin_name;  // from the metadata, which only the first event of a tag has; else ""
};

// One event of a file. wall_time and step are always set. The kind says which of the other members are set.
struct Event {
  enum class Kind { kNone, kFileVersion, kGraph, kMetaGraph, kSummary, kSessionLog, kLogMessage, kRunMetadata };
  double wall_time = 0;  // seconds since 1970
  int64_t step = 0;
  Kind kind = Kind::kNone;
  // The file version, the serialized GraphDef or MetaGraphDef, the text of a log message or session log, or the run
  // metadata; empty for kSummary.
  std::string bytes;
  std::vector<SummaryValue> values;  // of kSummary
  int session_status = 0;            // of kSessionLog: 1 start, 2 stop, 3 checkpoint
  std::string checkpoint_path;       // of kSessionLog
};

// Reads one file from its beginning. The caller owns it; the destructor closes the file. Not thread-safe.
class EventReader {
 public:
  // Opens the file. Throws the errors of core/file.h.
  explicit EventReader(const std::string& path) : reader_(path) {}
  // Replaces *event by the next event and returns kRecord. Returns kEnd if the file ends after the last record, and
  // kTruncated if it ends inside a record. In both cases *event is unchanged, and Read can be called again when the
  // file has grown. Throws DataLossError with file and offset for a wrong checksum or a record that is not an Event.
  RecordReader::Outcome Read(Event* event);
  // Returns the byte at which the next record begins.
  int64_t offset() const { return reader_.offset(); }

 private:
  RecordReader reader_;
};

}  // namespace cohort
