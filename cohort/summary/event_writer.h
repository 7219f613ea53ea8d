// EventWriter: an event file that TensorBoard shows: scalars, histograms, the graph. See docs/formats.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/mutex.h"
#include "cohort/core/record_io.h"
#include "cohort/core/tensor.h"

namespace cohort {

enum class SessionStatus { kStart = 1, kStop = 2, kCheckpoint = 3 };

// Thread-safe. Events are buffered; a write flushes when `max_queue` are waiting or `flush_interval` has passed
// since the last flush, Flush() and Close() always. Errors of the disk are thrown by the call that meets them
// (core/file.h).
class EventWriter {
 public:
  struct Options {
    std::string filename_suffix;
    int max_queue = 10;
    std::chrono::milliseconds flush_interval = std::chrono::minutes(2);
    std::function<double()> now;  // seconds since 1970, for tests; empty: the system's clock
  };

  // Creates the directory where it is missing and in it events.out.tfevents.SSSSSSSSSS.HOSTNAME<suffix>,
  // never a file that is there already; its first record, the version, is flushed at once.
  explicit EventWriter(const std::string& dir) : EventWriter(dir, Options()) {}
  EventWriter(const std::string& dir, Options options);
  ~EventWriter();  // flushes; an error then is only logged

  void Scalar(std::string_view tag, float value, int64_t step);
  // Throws InvalidArgumentError that names the tag for NaN, infinity and tensors without numbers.
  void Histogram(std::string_view tag, const Tensor& values, int64_t step);
  // A serialized Summary, as summary ops give it. Throws InvalidArgumentError for other bytes.
  void Summary(std::string_view summary, int64_t step);
  // A serialized GraphDef.
  void Graph(std::string_view graph_def, int64_t step = 0);
  void MetaGraph(std::string_view meta_graph_def, int64_t step = 0);
  // kStart with step s makes readers drop what earlier files of the directory hold of steps >= s.
  void SessionLog(SessionStatus status, int64_t step, std::string_view checkpoint_path = "",
                  std::string_view message = "");

  void Flush() COHORT_EXCLUDES(mu_);
  // Flushes and closes; later calls throw FailedPreconditionError.
  void Close() COHORT_EXCLUDES(mu_);
  const std::string& path() const { return path_; }

 private:
  double Now() const;
  std::string ChoosePath(const std::string& dir) const;
  void Write(const std::string& event) COHORT_EXCLUDES(mu_);
  void FlushLocked() COHORT_REQUIRES(mu_);

  const Options options_;
  const std::string path_;
  Mutex mu_;
  std::unique_ptr<RecordWriter> writer_ COHORT_GUARDED_BY(mu_);  // null once closed
  int waiting_ COHORT_GUARDED_BY(mu_) = 0;
  std::chrono::steady_clock::time_point last_flush_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
