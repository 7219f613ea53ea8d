// ByteStream: one gRPC stream of frames in both directions. It is the same on the dialer's side and on the acceptor's
// side.
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

// Handles the frames that a stream receives and provides the frames that it sends. A stream owns its users through
// shared_ptr, and calls one of them: on the acceptor's side first one that handles the first frame, and then a
// connection. It calls OnFrame and OnEnded on network
// threads, one at a time. It calls NextFrame on any thread, one call at a time, perhaps while OnFrame runs.
class StreamUser {
 public:
  virtual ~StreamUser() = default;
  // If it throws, the stream ends: a dialed stream at once, an accepted stream after the frames that NextFrame still
  // provides. May change the frame.
  virtual void OnFrame(grpc::ByteBuffer& frame) = 0;
  // Sets `frame` to the next frame to send. Returns false if there is none. Must not throw.
  virtual bool NextFrame(grpc::ByteBuffer* frame) = 0;
  // The stream has ended in both directions. This is the last call. `why` is the reason, or "" if it is not known.
  virtual void OnEnded(const std::string& why) = 0;
};

class ByteStream;

// The streams of a transport that have not ended. The transport owns the list; it does not own the streams. At its
// shutdown the transport cancels them and waits until there are none. Thread-safe.
class LiveStreams {
 public:
  // Returns the key for Remove.
  uint64_t Add(const std::shared_ptr<ByteStream>& stream) COHORT_EXCLUDES(mu_);
  void Remove(uint64_t key) COHORT_EXCLUDES(mu_);
  // Calls Cancel of all streams. Does not wait for their ends.
  void CancelAll() COHORT_EXCLUDES(mu_);
  // Returns true after CancelAll.
  bool ending() const COHORT_EXCLUDES(mu_);
  // Waits until all streams have been removed. Requires: CancelAll was called, and no stream is added any more.
  void WaitForNone() COHORT_EXCLUDES(mu_);

 private:
  mutable Mutex mu_;
  CondVar none_;
  bool ending_ COHORT_GUARDED_BY(mu_) = false;
  uint64_t next_key_ COHORT_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, std::weak_ptr<ByteStream>> streams_ COHORT_GUARDED_BY(mu_);
};

// One stream. It reads all the time. It writes one frame at a time, after a call of Pump. From its start until its end
// it keeps itself alive. Thread-safe, except SetUser.
class ByteStream : public std::enable_shared_from_this<ByteStream> {
 public:
  virtual ~ByteStream() = default;
  // Makes `user` the user of the stream. The stream owns all its users until it has ended. May be called twice: before
  // the stream starts, and in OnFrame of the first user.
  void SetUser(std::shared_ptr<StreamUser> user);
  // Begins to write the user's frames, one after another, until NextFrame returns false. Does not wait for a write to
  // end. If a write is in progress, the stream asks for the next frame when that write has ended.
  void Pump() COHORT_EXCLUDES(mu_);
  // Ends the stream in both directions without writing further frames. OnEnded is called later, on a network thread.
  virtual void Cancel() = 0;

 protected:
  // `live` must live longer than the stream.
  explicit ByteStream(LiveStreams& live) : live_(live) {}
  // Starts the stream. If `opened` is false, nothing is read or written before `opening()` completes. The reason: if
  // a read is started together with its call, and the call is then cancelled, gRPC 1.51 may never complete the read.
  void Begin(bool opened) COHORT_EXCLUDES(mu_);
  // Returns the completion of the operation that opens the stream.
  Completion* opening() { return &opened_; }

  // Each of the next three functions starts one operation of gRPC. `done` completes when the operation has ended.
  // StartFinish is called when all reads and writes have ended.
  virtual void StartRead(grpc::ByteBuffer* frame, Completion* done) = 0;
  virtual void StartWrite(const grpc::ByteBuffer& frame, Completion* done) = 0;
  virtual void StartFinish(Completion* done) = 0;
  // Called when OnFrame has thrown: nothing more is read. Frames that NextFrame still provides may be written.
  virtual void StopReading() {}
  // Returns why the stream has ended, or "". Called after the operation of StartFinish has ended.
  virtual std::string FinishReason() const { return ""; }
  // Called after OnEnded. Returns true if the stream must not be destroyed yet, because its channel is still
  // connecting. `done` then completes when the channel's state has changed, or after at most a second.
  virtual bool StartSettling(Completion* /*done*/) { return false; }

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
  // Releases the reference of the stream to itself. The stream may be destroyed when this returns.
  void Release();
  void WriteNext() COHORT_EXCLUDES(mu_);
  // Ends the right of the calling thread to write. Returns false if Pump was called in the meantime, so there may be
  // more frames to ask for.
  bool EndWrite(bool may_go_on) COHORT_EXCLUDES(mu_);

  LiveStreams& live_;
  uint64_t key_ = 0;                        // the key in live_
  std::shared_ptr<ByteStream> self_;        // until the stream has ended
  std::shared_ptr<StreamUser> users_[2];    // all users that there were
  std::atomic<StreamUser*> user_{nullptr};  // the present one
  grpc::ByteBuffer received_;
  std::string why_;     // only for the reading thread
  bool heard_ = false;  // a frame has come; only for the reading thread
  Then<&ByteStream::OnOpened> opened_{this};
  Then<&ByteStream::OnRead> read_{this};
  Then<&ByteStream::OnWritten> written_{this};
  Then<&ByteStream::OnFinished> finished_{this};
  Then<&ByteStream::OnSettled> settled_{this};

  Mutex mu_;
  bool writing_ COHORT_GUARDED_BY(mu_) = true;  // a thread writes, or the stream is not open yet
  bool again_ COHORT_GUARDED_BY(mu_) = false;   // Pump was called in the meantime
  bool last_ COHORT_GUARDED_BY(mu_) = false;    // the stream ends when there are no more frames to write
  bool over_ COHORT_GUARDED_BY(mu_) = false;    // nothing can be read any more, and no write starts
};

// The acceptor's side: the stream of a call that the server's queue has accepted.
class ServerByteStream final : public ByteStream {
 public:
  using Call = grpc::GenericServerAsyncReaderWriter;
  ServerByteStream(LiveStreams& live, std::unique_ptr<grpc::GenericServerContext> context, std::unique_ptr<Call> call)
      : ByteStream(live), context_(std::move(context)), call_(std::move(call)) {}
  // Requires: SetUser was called.
  void Start() { Begin(true); }
  void Cancel() override { context_->TryCancel(); }

 private:
  void StartRead(grpc::ByteBuffer* frame, Completion* done) override { call_->Read(frame, done->Starts()); }
  void StartWrite(const grpc::ByteBuffer& frame, Completion* done) override { call_->Write(frame, done->Starts()); }
  void StartFinish(Completion* done) override { call_->Finish(grpc::Status::OK, done->Starts()); }

  const std::unique_ptr<grpc::GenericServerContext> context_;
  const std::unique_ptr<Call> call_;
};

// The dialer's side: the stream of a call that this process has made.
class ClientByteStream final : public ByteStream {
 public:
  // `connects` is true if the channel connects by itself, and false if it was made from a connected socket.
  ClientByteStream(LiveStreams& live, std::shared_ptr<grpc::Channel> channel, bool connects)
      : ByteStream(live), channel_(std::move(channel)), connects_(connects), stub_(channel_) {}
  // Requires: SetUser was called.
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
  const bool connects_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue* queue_ = nullptr;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::Status status_;
};

inline constexpr const char* kControlMethod = "/cohort.Transport/Control";
inline constexpr const char* kBulkMethod = "/cohort.Transport/Bulk";

}  // namespace cohort
