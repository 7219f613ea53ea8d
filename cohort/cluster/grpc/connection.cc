#include "cohort/cluster/grpc/connection.h"

#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

constexpr size_t kBulkFrom = 16 * 1024;
constexpr size_t kChunk = 1 << 20;

}  // namespace

GrpcConnection::GrpcConnection(TransportHandler& handler, const TransportOptions& options, TaskIdentity peer,
                               uint64_t number, std::shared_ptr<ByteStream> control)
    : handler_(handler), options_(options), peer_(std::move(peer)), number_(number), control_(std::move(control)),
      last_heard_(Now()) {}

int64_t GrpcConnection::Now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::chrono::milliseconds GrpcConnection::silent_for() const {
  return std::chrono::milliseconds(Now() - last_heard_.load(std::memory_order_relaxed));
}

Status GrpcConnection::LostStatus(const std::string& seen) const {
  return Status(Code::kUnavailable, StrCat("[transport] lost ", peer_.task,
                                           peer_.address.empty() ? "" : " (" + peer_.address + ")", ": ", seen));
}

void GrpcConnection::Send(Message message) {
  std::vector<Message> messages;
  messages.push_back(std::move(message));
  Send(std::move(messages));
}

void GrpcConnection::Send(std::vector<Message> messages) {
  {
    MutexLock lock(mu_);
    if (closed_) return;
    for (Message& message : messages) {
      if (EncodedSize(message) < kBulkFrom) {
        queued_.push_back(std::move(message));
      } else {
        bulk_queue_.push_back(std::move(message));
        wake_writer_.NotifyOne();
      }
    }
  }
  Pump();
}

void GrpcConnection::Pump() {
  for (;;) {
    std::vector<Message> batch;
    {
      MutexLock lock(mu_);
      // The thread that writes comes back for what others have queued meanwhile.
      if (closed_ || writing_ || (queued_.empty() && !heartbeat_due_)) return;
      batch.swap(queued_);
      heartbeat_due_ = false;
      writing_ = true;
      last_sent_ = Now();
    }
    const bool sent =
        control_->Write(batch.empty() ? EncodeFrame(FrameType::kHeartbeat, "") : EncodeMessages(batch));
    MutexLock lock(mu_);
    writing_ = false;
    if (closed_) use_ended_.NotifyAll();
    if (!sent) return;  // the reading thread sees the end of the stream and says why
  }
}

void GrpcConnection::StartWriter() {
  writer_ = std::thread([self = shared_from_this()] {
    SetThreadName("cohort-writer");
    self->WriterLoop();
  });
}

void GrpcConnection::StopWriter() {
  {
    MutexLock lock(mu_);
    wake_writer_.NotifyAll();
  }
  if (writer_.joinable()) writer_.join();
}

void GrpcConnection::WriterLoop() {
  for (;;) {
    Message message;
    std::shared_ptr<ByteStream> bulk;
    {
      MutexLock lock(mu_);
      const auto next = std::chrono::steady_clock::now() + options_.heartbeat_interval;
      while (!closed_ && (bulk_queue_.empty() || bulk_ == nullptr)) {
        if (!wake_writer_.WaitUntil(mu_, next)) break;
      }
      if (closed_) return;
      if (!bulk_queue_.empty() && bulk_ != nullptr) {
        message = std::move(bulk_queue_.front());
        bulk_queue_.pop_front();
        bulk = bulk_;
        writing_bulk_ = true;
      }
    }
    if (bulk != nullptr) {
      WriteBulk(*bulk, message);
      MutexLock lock(mu_);
      writing_bulk_ = false;
      use_ended_.NotifyAll();
    }
    SendHeartbeatIfDue();
  }
}

void GrpcConnection::SendHeartbeatIfDue() {
  {
    MutexLock lock(mu_);
    if (Now() - last_sent_ < options_.heartbeat_interval.count()) return;
    heartbeat_due_ = true;
  }
  Pump();
}

void GrpcConnection::WriteBulk(ByteStream& bulk, const Message& message) {
  if (!bulk.Write(EncodeBulkBegin(message))) return;
  for (const Tensor& tensor : message.tensors) {
    const Tensor bytes = FlattenForBulk(tensor);
    const char* data = static_cast<const char*>(bytes.raw_data());
    for (size_t at = 0; at < bytes.bytes(); at += kChunk) {
      if (!bulk.Write(EncodeBulkChunk(bytes.buffer(), data + at, std::min(kChunk, bytes.bytes() - at)))) return;
      SendHeartbeatIfDue();
    }
  }
}

void GrpcConnection::Close(const Status& why) {
  MutexLock lock(mu_);
  CloseLocked(why);
}

void GrpcConnection::CloseLocked(const Status& why) {
  if (closed_) return;
  closed_ = true;
  why_ = why;
  // Under the lock: a stream is alive as long as it has not ended, which is noted under the same lock.
  if (!control_ended_) control_->Cancel();
  if (bulk_ != nullptr) bulk_->Cancel();
  if (expected_bulk_ != nullptr) expected_bulk_->Cancel();
  wake_writer_.NotifyAll();
}

void GrpcConnection::CheckSilence() {
  if (closed() || silent_for() <= options_.silence_limit) return;
  Close(LostStatus(StrCat("no byte for ", static_cast<double>(silent_for().count()) / 1000.0,
                          " s (the process is stopped, or the network is cut)")));
}

void GrpcConnection::ReadControl() {
  grpc::ByteBuffer buffer;
  std::string ended;
  try {
    while (control_->Read(&buffer)) {
      Heard();
      const Frame frame = DecodeFrame(buffer);
      if (frame.type == FrameType::kHeartbeat) continue;
      if (frame.type != FrameType::kMessages) throw DataLossError("[frame] not a frame of a control stream");
      for (Message& message : DecodeMessages(frame.payload)) {
        handler_.OnMessage(shared_from_this(), std::move(message));
      }
    }
    ended = "the connection was closed by the peer (its process ended or was killed)";
  } catch (...) {
    ended = Status::FromCurrentException().ToString();
  }
  Status why;
  {
    MutexLock lock(mu_);
    CloseLocked(LostStatus(ended));
    while (writing_ || reading_bulk_) use_ended_.Wait(mu_);  // ends: the streams are cancelled
    control_ended_ = true;
    why = why_;
    queued_.clear();
  }
  control_->Finish();
  handler_.OnClosed(shared_from_this(), why);
}

void GrpcConnection::ExpectBulk(std::shared_ptr<ByteStream> bulk) {
  MutexLock lock(mu_);
  if (closed_) bulk->Cancel();
  expected_bulk_ = std::move(bulk);
}

void GrpcConnection::ReadBulk(const std::shared_ptr<ByteStream>& bulk) {
  {
    MutexLock lock(mu_);
    if (closed_) {
      bulk->Cancel();
      return;
    }
    bulk_ = bulk;
    expected_bulk_ = nullptr;
    reading_bulk_ = true;
    wake_writer_.NotifyAll();
  }
  grpc::ByteBuffer buffer;
  BulkReceiver receiver;
  std::string ended = "the bulk stream was closed by the peer (its process ended or was killed)";
  try {
    while (bulk->Read(&buffer)) {
      Heard();
      if (receiver.Add(buffer)) handler_.OnMessage(shared_from_this(), receiver.Take());
    }
  } catch (...) {
    ended = Status::FromCurrentException().ToString();
  }
  MutexLock lock(mu_);
  CloseLocked(LostStatus(ended));
  while (writing_bulk_) use_ended_.Wait(mu_);
  bulk_ = nullptr;
  bulk_queue_.clear();
  reading_bulk_ = false;
  use_ended_.NotifyAll();
}

}  // namespace cohort
