#include "cohort/summary/event_writer.h"

#include <unistd.h>

#include <cstdio>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/proto/event.pb.h"
#include "cohort/summary/summary.h"

namespace cohort {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";

std::string HostName() {
  char name[256] = "";
  if (::gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

proto::Event NewEvent(double wall_time, int64_t step) {
  proto::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  return event;
}

}  // namespace

EventWriter::EventWriter(const std::string& dir, Options options)
    : options_(std::move(options)), path_(ChoosePath(dir)), writer_(std::make_unique<RecordWriter>(path_)) {
  proto::Event version = NewEvent(Now(), 0);
  version.set_file_version(kFileVersion);
  MutexLock lock(mu_);
  writer_->Write(version.SerializeAsString());
  writer_->Flush();
  last_flush_ = std::chrono::steady_clock::now();
}

EventWriter::~EventWriter() { Close(); }

void EventWriter::TryToWrite(const std::function<void()>& write) {
  if (lost_) return;
  try {
    write();
  } catch (const Error& error) {
    lost_ = true;
    LogWarning("summary", "events of ", path_, " are lost from now on: ", error.what());
  }
}

double EventWriter::Now() const {
  if (options_.now) return options_.now();
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Readers take a directory's files in the order of their names, so a second writer within a second goes after
// the first.
std::string EventWriter::ChoosePath(const std::string& dir) const {
  CreateDirectories(dir);
  const std::string host = HostName();
  for (auto seconds = static_cast<int64_t>(Now());; ++seconds) {
    char number[24];
    std::snprintf(number, sizeof(number), "%010lld", static_cast<long long>(seconds));
    const std::string path =
        StrCat(dir, dir.ends_with('/') ? "" : "/", "events.out.tfevents.", number, ".", host, options_.filename_suffix);
    if (!FileExists(path)) return path;
  }
}

void EventWriter::Write(const std::string& event) {
  MutexLock lock(mu_);
  if (writer_ == nullptr) throw FailedPreconditionError(StrCat("[summary] the event file ", path_, " is closed"));
  TryToWrite([&]() COHORT_NO_THREAD_SAFETY_ANALYSIS { writer_->Write(event); });
  ++waiting_;
  const auto age = std::chrono::steady_clock::now() - last_flush_;
  if (waiting_ >= options_.max_queue || age >= options_.flush_interval) FlushLocked();
}

void EventWriter::FlushLocked() {
  waiting_ = 0;
  last_flush_ = std::chrono::steady_clock::now();
  TryToWrite([&]() COHORT_NO_THREAD_SAFETY_ANALYSIS { writer_->Flush(); });
}

void EventWriter::Flush() {
  MutexLock lock(mu_);
  if (writer_ == nullptr) throw FailedPreconditionError(StrCat("[summary] the event file ", path_, " is closed"));
  FlushLocked();
}

void EventWriter::Close() {
  MutexLock lock(mu_);
  if (writer_ == nullptr) return;
  const std::unique_ptr<RecordWriter> writer = std::move(writer_);
  TryToWrite([&] { writer->Close(); });
}

void EventWriter::Scalar(std::string_view tag, float value, int64_t step) { Summary(ScalarSummary(tag, value), step); }

void EventWriter::Histogram(std::string_view tag, const Tensor& values, int64_t step) {
  Summary(HistogramSummary(tag, values), step);
}

void EventWriter::Images(std::string_view tag, const Tensor& images, int64_t step, int64_t max_images) {
  Summary(ImageSummary(tag, images, max_images), step);
}

void EventWriter::Summary(std::string_view summary, int64_t step) {
  proto::Event event = NewEvent(Now(), step);
  if (!event.mutable_summary()->ParseFromArray(summary.data(), static_cast<int>(summary.size()))) {
    throw InvalidArgumentError(
        StrCat("[summary] expected a serialized Summary for step ", step, "; got ", summary.size(), " other bytes"));
  }
  Write(event.SerializeAsString());
}

void EventWriter::Graph(std::string_view graph_def, int64_t step) {
  proto::Event event = NewEvent(Now(), step);
  event.set_graph_def(std::string(graph_def));
  Write(event.SerializeAsString());
}

void EventWriter::MetaGraph(std::string_view meta_graph_def, int64_t step) {
  proto::Event event = NewEvent(Now(), step);
  event.set_meta_graph_def(std::string(meta_graph_def));
  Write(event.SerializeAsString());
}

void EventWriter::SessionLog(SessionStatus status, int64_t step, std::string_view checkpoint_path,
                             std::string_view message) {
  proto::Event event = NewEvent(Now(), step);
  proto::SessionLog* log = event.mutable_session_log();
  log->set_status(static_cast<proto::SessionLog::SessionStatus>(status));
  log->set_checkpoint_path(std::string(checkpoint_path));
  log->set_msg(std::string(message));
  Write(event.SerializeAsString());
}

}  // namespace cohort
