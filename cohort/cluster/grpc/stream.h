// ByteStream: one bidirectional gRPC stream of raw frames, the same from the dialer's and from the acceptor's side.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "cohort/cluster/grpc/network_loop.h"
#include "cohort/core/mutex.h"

namespace cohort {

// Who takes a stream's frames and gives it frames to send. OnFrame and OnEnded are called on the network's threads, one
// call at a time; NextFrame on any thread, one call at a time.
class StreamUser {
 public:
  virtual ~StreamUser() = default;
  // What it throws ends the stream: an accepted one after the frames that NextFrame still gives, a dialed one at once.
  virtual void OnFrame(const grpc::ByteBuffer& frame) = 0;
  // Fills `frame` with the next to be written; false where there is none. Must not throw.
  virtual bool NextFrame(grpc::ByteBuffer* frame) = 0;
  // The last call: both directions are over. `why`: what ended it, "" where that is not known.
  virtual void OnEnded(const std::string& why) = 0;
};

class ByteStream;

// The streams of a transport that have not ended, so that a shutdown can cancel them and wait until none is left.
class LiveStreams {
 public:
  // Returns the key to remove it by.
  uint64_t Add(const std::shared_ptr<ByteStream>& stream) COHORT_EXCLUDES(mu_);
  void Remove(uint64_t key) COHORT_EXCLUDES(mu_);
  void CancelAll() COHORT_EXCLUDES(mu_);
  // Returns true after CancelAll.
  bool ending() const COHORT_EXCLUDES(mu_);
  void WaitForNone() COHORT_EXCLUDES(mu_);

 private:
  mutable Mutex mu_;
  CondVar none_;
  bool ending_ COHORT_GUARDED_BY(mu_) = false;
  uint64_t next_key_ COHORT_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, std::weak_ptr<ByteStream>> streams_ COHORT_GUARDED_BY(mu_);
};

// Reads all the time; writes when pumped, one frame at a time. Keeps itself alive until it has ended. Thread-safe.
class ByteStream : public std::enable_shared_from_this<ByteStream> {
 public:
  virtual ~ByteStream() = default;
  // From now on `user` gets and gives the frames; held until the stream ends. At most twice: by whoever starts the
  // stream, then in OnFrame by the first user.
  void SetUser(std::shared_ptr<StreamUser> user);
  // Asks the user for frames and writes until there are none; where a write is under way, after it.
  void Pump() COHORT_EXCLUDES(mu_);
  // Ends the stream, at once and from both sides.
  virtual void Cancel() = 0;

 protected:
  // `live` outlives the stream.
  explicit ByteStream(LiveStreams& live) : live_(live) {}
  // Starts the stream. If `opened` is false, nothing is read or written before `opening()` completes: gRPC 1.51 loses a
  // read that is started together with a call that is then cancelled.
  void Begin(bool opened) COHORT_EXCLUDES(mu_);
  Completion* opening() { return &opened_; }

  virtual void StartRead(grpc::ByteBuffer* frame, Completion* done) = 0;
  virtual void StartWrite(const grpc::ByteBuffer& frame, Completion* done) = 0;
  // After all reads and writes.
  virtual void StartFinish(Completion* done) = 0;
  // The user wants to read no more; what it has to say may still be written.
  virtual void StopReading() {}
  // After Finish.
  virtual std::string FinishReason() const { return ""; }
  // After OnEnded. Returns true if something of the stream must still come to rest before it may be destroyed. `done`
  // completes then, or after a second at most.
  virtual bool StartSettling(Completion* done) { return false; }

 private:
  template <void (ByteStream::*kThen)(bool)>
  struct Then final : Completion {
    explicit Then(ByteStream* stream) : stream_(stream) {}
    void Complete(bool ok) override { (stream_->*kThen)(ok); }
    ByteStream* stream_;
  };

  void BeginReading() { StartRead(&received_, &read_); }
  void OnOpened(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnSettled(bool ok);
  // Lets the stream go. It may be destroyed when this returns.
  void Release();
  void WriteNext() COHORT_EXCLUDES(mu_);
  // Gives up the right to write; false where it was pumped meanwhile and there is more to ask for.
  bool EndWrite(bool may_go_on) COHORT_EXCLUDES(mu_);

  LiveStreams& live_;
  uint64_t key_ = 0;  // in live_
  std::shared_ptr<ByteStream> self_;
  std::shared_ptr<StreamUser> users_[2];
  std::atomic<StreamUser*> user_{nullptr};
  grpc::ByteBuffer received_;
  std::string why_;     // of the reading thread
  bool heard_ = false;  // a frame, by the reading thread
  Then<&ByteStream::OnOpened> opened_{this};
  Then<&ByteStream::OnRead> read_{this};
  Then<&ByteStream::OnWritten> written_{this};
  Then<&ByteStream::OnFinished> finished_{this};
  Then<&ByteStream::OnSettled> settled_{this};

  Mutex mu_;
  bool writing_ COHORT_GUARDED_BY(mu_) = true;  // somebody asks for frames and writes them, or it is yet to be opened
  bool again_ COHORT_GUARDED_BY(mu_) = false;   // pumped meanwhile
  bool last_ COHORT_GUARDED_BY(mu_) = false;    // once there are no more frames to write, it is over
  bool over_ COHORT_GUARDED_BY(mu_) = false;    // nothing can be read any more; no writing starts
};

// Of a call that a server's queue has accepted.
class ServerByteStream final : public ByteStream {
 public:
  using Call = grpc::GenericServerAsyncReaderWriter;
  ServerByteStream(LiveStreams& live, std::unique_ptr<grpc::GenericServerContext> context, std::unique_ptr<Call> call)
      : ByteStream(live), context_(std::move(context)), call_(std::move(call)) {}
  // After SetUser.
  void Start() { Begin(true); }
  void Cancel() override { context_->TryCancel(); }

 private:
  void StartRead(grpc::ByteBuffer* frame, Completion* done) override { call_->Read(frame, done->Starts()); }
  void StartWrite(const grpc::ByteBuffer& frame, Completion* done) override { call_->Write(frame, done->Starts()); }
  void StartFinish(Completion* done) override { call_->Finish(grpc::Status::OK, done->Starts()); }

  const std::unique_ptr<grpc::GenericServerContext> context_;
  const std::unique_ptr<Call> call_;
};

class ClientByteStream final : public ByteStream {
 public:
  ClientByteStream(LiveStreams& live, std::shared_ptr<grpc::Channel> channel)
      : ByteStream(live), channel_(std::move(channel)), stub_(channel_) {}
  // After SetUser.
  void Start(const char* method, grpc::CompletionQueue* queue);
  void Cancel() override { context_.TryCancel(); }

 private:
  void StartRead(grpc::ByteBuffer* frame, Completion* done) override { call_->Read(frame, done->Starts()); }
  void StartWrite(const grpc::ByteBuffer& frame, Completion* done) override { call_->Write(frame, done->Starts()); }
  void StartFinish(Completion* done) override { call_->Finish(&status_, done->Starts()); }
  void StopReading() override { Cancel(); }
  std::string FinishReason() const override { return status_.error_message(); }
  bool StartSettling(Completion* done) override;

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue* queue_ = nullptr;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::Status status_;
};

inline constexpr const char* kControlMethod = "/cohort.Transport/Control";
inline constexpr const char* kBulkMethod = "/cohort.Transport/Bulk";

}  // namespace cohort
