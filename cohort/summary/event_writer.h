// EventWriter: writes an event file, which TensorBoard shows: scalars, histograms, the graph. See docs/formats.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/mutex.h"
#include "cohort/core/record_io.h"
#include "cohort/core/tensor.h"

namespace cohort {

// The kinds of events about a session. The numbers are TensorFlow's.
enum class SessionStatus { kStart = 1, kStop = 2, kCheckpoint = 3 };

// Writes one event file. The caller owns it; the destructor closes the file. Thread-safe. Events wait in a buffer. They
// are written to the file by Flush() and Close(). A call that adds an event writes them too, if `max_queue` events are
// then waiting or `flush_interval` has passed since the last flush. No thread flushes in the background. The
// constructor throws the errors of core/file.h. If a later call cannot write, for example because the disk is full, it
// logs a warning, and these and all later events are lost: a training must not end because its events cannot be
// written.
class COHORT_EXPORT EventWriter {
 public:
  struct Options {
    std::string filename_suffix;
    int max_queue = 10;
    std::chrono::milliseconds flush_interval = std::chrono::minutes(2);
    std::function<double()> now;  // seconds since 1970, for tests; empty: the system clock
  };

  // Creates the directory if it is missing. Creates a new file events.out.tfevents.SSSSSSSSSS.HOSTNAME<suffix> in it.
  // S... is the time in seconds, or a later second if a file has that name. The first record is the format version; it
  // is flushed at once.
  explicit EventWriter(const std::string& dir) : EventWriter(dir, Options()) {}
  EventWriter(const std::string& dir, Options options);
  ~EventWriter();  // closes the file; an error is only logged

  void Scalar(std::string_view tag, float value, int64_t step);
  // Throws InvalidArgumentError that names the tag if `values` has NaN or infinity or is not numeric.
  void Histogram(std::string_view tag, const Tensor& values, int64_t step);
  // See ImageSummary (summary/summary.h).
  void Images(std::string_view tag, const Tensor& images, int64_t step, int64_t max_images = 3);
  // Writes a serialized Summary message, such as the result of a summary op. Throws InvalidArgumentError if `summary`
  // is not such a message.
  void Summary(std::string_view summary, int64_t step);
  // Writes a serialized GraphDef.
  void Graph(std::string_view graph_def, int64_t step = 0);
  void MetaGraph(std::string_view meta_graph_def, int64_t step = 0);
  // Writes that a session has started, has stopped or has saved a checkpoint. If readers find kStart with step s, they
  // ignore events with steps >= s in earlier files of the same directory.
  void SessionLog(SessionStatus status, int64_t step, std::string_view checkpoint_path = "",
                  std::string_view message = "");

  void Flush() COHORT_EXCLUDES(mu_);
  // Flushes and closes the file. Later calls that add events or flush throw FailedPreconditionError. A second Close
  // does nothing.
  void Close() COHORT_EXCLUDES(mu_);
  const std::string& path() const { return path_; }

 private:
  double Now() const;
  std::string ChoosePath(const std::string& dir) const;
  void Write(const std::string& event) COHORT_EXCLUDES(mu_);
  void FlushLocked() COHORT_REQUIRES(mu_);
  // Calls `write`. After an error no event is written any more.
  void TryToWrite(const std::function<void()>& write) COHORT_REQUIRES(mu_);

  const Options options_;
  const std::string path_;
  Mutex mu_;
  std::unique_ptr<RecordWriter> writer_ COHORT_GUARDED_BY(mu_);  // null after Close
  bool lost_ COHORT_GUARDED_BY(mu_) = false;                     // true after an error
  int waiting_ COHORT_GUARDED_BY(mu_) = 0;
  std::chrono::steady_clock::time_point last_flush_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
