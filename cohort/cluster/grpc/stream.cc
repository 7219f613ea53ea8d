// A stream reads one frame after another. It writes while a thread has the right to write (writing_): that thread, and
// then the completion of each write, asks the user for the next frame. The stream ends when reading has failed and no
// write is in progress. Then Finish is called, and the user is told.
#include "cohort/cluster/grpc/stream.h"

#include <vector>

#include "cohort/core/error.h"

namespace cohort {
namespace {

// A shutdown waits at most so long for connections that are being made and that nothing needs any more.
constexpr std::chrono::seconds kSettleTime{1};

}  // namespace

uint64_t LiveStreams::Add(const std::shared_ptr<ByteStream>& stream) {
  MutexLock lock(mu_);
  streams_[next_key_] = stream;
  return next_key_++;
}

void LiveStreams::Remove(uint64_t key) {
  MutexLock lock(mu_);
  streams_.erase(key);
  if (streams_.empty()) none_.NotifyAll();
}

void LiveStreams::CancelAll() {
  std::vector<std::shared_ptr<ByteStream>> alive;
  {
    MutexLock lock(mu_);
    ending_ = true;
    for (const auto& [key, stream] : streams_) alive.push_back(stream.lock());
  }
  for (const auto& stream : alive) {
    if (stream != nullptr) stream->Cancel();
  }
}

bool LiveStreams::ending() const {
  MutexLock lock(mu_);
  return ending_;
}

void LiveStreams::WaitForNone() {
  MutexLock lock(mu_);
  while (!streams_.empty()) none_.Wait(mu_);  // ends: the caller has cancelled all streams
}

void ByteStream::SetUser(std::shared_ptr<StreamUser> user) {
  auto& slot = users_[0] == nullptr ? users_[0] : users_[1];
  slot = std::move(user);
  user_.store(slot.get(), std::memory_order_release);
}

void ByteStream::Begin(bool opened) {
  self_ = shared_from_this();
  key_ = live_.Add(self_);
  if (!opened) return;
  {
    MutexLock lock(mu_);
    writing_ = false;
  }
  BeginReading();
}

void ByteStream::OnOpened(bool ok) {
  if (ok) {
    BeginReading();
    return WriteNext();
  }
  {
    MutexLock lock(mu_);
    over_ = true;
    writing_ = false;
  }
  StartFinish(&finished_);
}

void ByteStream::Pump() {
  {
    MutexLock lock(mu_);
    if (over_) return;
    if (writing_) {
      again_ = true;
      return;
    }
    writing_ = true;
  }
  WriteNext();
}

void ByteStream::WriteNext() {
  do {
    grpc::ByteBuffer frame;
    if (user_.load(std::memory_order_acquire)->NextFrame(&frame)) return StartWrite(frame, &written_);
  } while (!EndWrite(true));
}

bool ByteStream::EndWrite(bool may_go_on) {
  {
    MutexLock lock(mu_);
    const bool more = may_go_on && again_ && !over_;
    again_ = false;
    if (more) return false;
    writing_ = false;
    over_ = over_ || last_;
    if (!over_) return true;
  }
  StartFinish(&finished_);
  return true;
}

void ByteStream::OnWritten(bool ok) {
  // If a write has failed, the reading side sees the end too and knows the reason.
  ok ? WriteNext() : static_cast<void>(EndWrite(false));
}

void ByteStream::OnRead(bool ok) {
  if (ok) {
    heard_ = true;
    try {
      user_.load(std::memory_order_acquire)->OnFrame(received_);
      received_.Clear();
      return BeginReading();
    } catch (...) {
      why_ = Status::FromCurrentException().ToString();
      const auto alive = shared_from_this();  // from now on the writing thread may end the stream
      StopReading();
      {
        MutexLock lock(mu_);
        last_ = true;
      }
      return Pump();
    }
  }
  const auto alive = shared_from_this();
  {
    MutexLock lock(mu_);
    over_ = true;
    if (!writing_) return StartFinish(&finished_);
  }
  // A write that is in progress must end. If the call failed before the peer answered, the write fails by itself, and
  // Cancel would hide the reason.
  if (heard_) Cancel();
}

void ByteStream::OnFinished(bool) {
  if (why_.empty()) why_ = FinishReason();
  user_.load(std::memory_order_acquire)->OnEnded(why_);
  for (auto& user : users_) user.reset();
  if (!StartSettling(&settled_)) Release();
}

void ByteStream::OnSettled(bool ok) {
  if (!ok && !live_.ending() && StartSettling(&settled_)) return;
  Release();
}

void ByteStream::Release() {
  LiveStreams& live = live_;
  const uint64_t key = key_;
  std::shared_ptr<ByteStream>(std::move(self_)).reset();  // this object may be deleted now
  live.Remove(key);
}

void ClientByteStream::Start(const char* method, grpc::CompletionQueue* queue) {
  queue_ = queue;
  call_ = stub_.PrepareCall(&context_, method, queue);
  Begin(false);
  call_->StartCall(opening()->Starts());
}

// gRPC 1.51 never closes the socket of a connection that comes about after its channel was destroyed. So a channel that
// connects by itself stays until its attempt to connect has succeeded or failed. Others have no state to ask for.
bool ClientByteStream::StartSettling(Completion* done) {
  if (!connects_ || channel_->GetState(false) != GRPC_CHANNEL_CONNECTING) return false;
  channel_->NotifyOnStateChange(GRPC_CHANNEL_CONNECTING, std::chrono::system_clock::now() + kSettleTime, queue_,
                                done->Starts());
  return true;
}

}  // namespace cohort
