// GrpcConnection: two streams to one peer - control, on which small messages travel coalesced, and bulk. Between
// processes of one host what would travel as bulk goes through memory that they share, once the peer has opened it.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/grpc/bulk.h"
#include "cohort/cluster/grpc/stream.h"
#include "cohort/cluster/transport.h"
#include "cohort/core/mutex.h"

namespace cohort {

class GrpcConnection final : public Connection, public std::enable_shared_from_this<GrpcConnection> {
 public:
  using Clock = std::chrono::steady_clock;

  // `number`: chosen by the acceptor; by it the dialer's bulk stream finds its connection. `same_host`: memory may be
  // shared with the peer. `forget` is called when both streams have ended, before the handler's OnClosed.
  GrpcConnection(TransportHandler& handler, const TransportOptions& options, TaskIdentity peer, uint64_t number,
                 bool same_host, std::function<void(GrpcConnection&)> forget);

  const TaskIdentity& peer() const override { return peer_; }
  void Send(Message message) override;
  void Send(std::vector<Message> messages) override;
  void SendAfterAll(Message message) override;
  void Close(const Status& why) override;
  bool closed() const override { return closed_.load(std::memory_order_acquire); }
  std::chrono::milliseconds silent_for() const override;

  uint64_t number() const { return number_; }
  // Takes over a stream whose handshake is done (once, before anything is sent); `first` is written before all else.
  void UseControl(const std::shared_ptr<ByteStream>& stream, std::optional<grpc::ByteBuffer> first);
  // The same for the bulk stream, at any time later. False where the connection is closed.
  bool UseBulk(const std::shared_ptr<ByteStream>& stream, std::optional<grpc::ByteBuffer> first);

  // Sends what is queued, then tells the peer that this side ends, which makes it close the connection once it has all;
  // OnClosed then gets `why`. What is sent later is dropped. True where large messages are on their way.
  bool SayGoodbye(const Status& why);

  // From the transport's watching thread: sends a heartbeat where nothing was sent for long, and closes when the peer
  // has been silent for too long: time before `listening_since` does not count, nor time in which a message of the peer
  // is being handled, and so the next is not read.
  void Watch(Clock::time_point now, Clock::time_point listening_since);

 private:
  class ControlUser;
  class BulkUser;

  bool NextControlFrame(grpc::ByteBuffer* frame) COHORT_EXCLUDES(mu_);
  bool NextBulkFrame(grpc::ByteBuffer* frame) COHORT_EXCLUDES(mu_);
  std::vector<Message> TakeBatch() COHORT_REQUIRES(mu_);
  // How many bytes of a message go into a frame now.
  size_t NextChunk(bool first);
  void OnControlFrame(const grpc::ByteBuffer& frame);
  void OnBulkFrame(const grpc::ByteBuffer& frame);
  // True where the message is complete.
  bool OnWindowChunk(const FrameView& frame) COHORT_EXCLUDES(mu_);
  // Offers the peer a window, the first time; where that cannot be, never again.
  void OfferWindow() COHORT_EXCLUDES(mu_);
  void OnWindowOffer(std::string_view payload) COHORT_EXCLUDES(mu_);
  void OnWindowAnswer(std::string_view payload) COHORT_EXCLUDES(mu_);
  void OnGivenBack(std::string_view payload) COHORT_EXCLUDES(mu_);
  // A frame of a few bytes that goes before all messages that wait.
  void SendOnControl(FrameType type, uint64_t number) COHORT_EXCLUDES(mu_);
  void OnStreamEnded(std::shared_ptr<ByteStream> GrpcConnection::*stream, const std::string& seen) COHORT_EXCLUDES(mu_);
  void OnControlGoodbye(std::string_view payload) COHORT_EXCLUDES(mu_);
  void OnBulkGoodbye() COHORT_EXCLUDES(mu_);
  // Takes the wrapping of a message that was sent after all others off. Returns false if it may be handled now; else it
  // is kept for HandleBulk.
  bool WaitsForBulk(Message* message) COHORT_EXCLUDES(mu_);
  // Handles a large message, and then what has waited for it.
  void HandleBulk(Message message) COHORT_EXCLUDES(mu_);
  void Handle(Message message);
  // Closes with the exception that is in flight.
  void CloseForError();
  void Heard() { last_heard_.store(Clock::now(), std::memory_order_relaxed); }

  TransportHandler& handler_;
  const TransportOptions options_;
  const TaskIdentity peer_;
  const uint64_t number_;
  const bool same_host_;
  const std::function<void(GrpcConnection&)> forget_;
  std::atomic<Clock::time_point> last_heard_;
  std::atomic<bool> closed_{false};
  std::atomic<int> handling_{0};  // how many calls of the handler are under way

  Mutex mu_;
  std::shared_ptr<ByteStream> control_ COHORT_GUARDED_BY(mu_);  // until it has ended
  std::shared_ptr<ByteStream> bulk_ COHORT_GUARDED_BY(mu_);
  std::deque<grpc::ByteBuffer> control_frames_ COHORT_GUARDED_BY(mu_);  // go before messages
  std::optional<grpc::ByteBuffer> first_bulk_ COHORT_GUARDED_BY(mu_);
  std::vector<Message> queued_ COHORT_GUARDED_BY(mu_);
  size_t queued_bytes_ COHORT_GUARDED_BY(mu_) = 0;
  std::deque<Message> bulk_queue_ COHORT_GUARDED_BY(mu_);
  uint64_t bulk_sent_ COHORT_GUARDED_BY(mu_) = 0;     // large messages, as they were queued
  uint64_t bulk_handled_ COHORT_GUARDED_BY(mu_) = 0;  // large messages of the peer
  // The peer's messages that wait until so many large ones were handled; the numbers never fall.
  std::deque<std::pair<uint64_t, Message>> after_bulk_ COHORT_GUARDED_BY(mu_);
  bool bulk_busy_ COHORT_GUARDED_BY(mu_) = false;  // large messages are queued or being written
  bool heartbeat_due_ COHORT_GUARDED_BY(mu_) = false;
  enum class WindowState { kNone, kOffered, kOpen };
  WindowState window_state_ COHORT_GUARDED_BY(mu_) = WindowState::kNone;  // of window_
  std::shared_ptr<const ReceiveWindow> peers_window_ COHORT_GUARDED_BY(mu_);
  Status goodbye_ COHORT_GUARDED_BY(mu_);  // an error once SayGoodbye was called
  bool goodbye_sent_ COHORT_GUARDED_BY(mu_) = false;
  bool bulk_goodbye_sent_ COHORT_GUARDED_BY(mu_) = false;  // comes first
  Status peers_goodbye_ COHORT_GUARDED_BY(mu_);  // an error once the control stream brought one that waits for bulk's
  bool bulk_goodbye_heard_ COHORT_GUARDED_BY(mu_) = false;
  Clock::time_point last_sent_ COHORT_GUARDED_BY(mu_);
  Status why_ COHORT_GUARDED_BY(mu_);

  std::atomic<bool> offered_{false};
  std::shared_ptr<SendWindow> window_ COHORT_GUARDED_BY(mu_);

  // Of whoever writes to the bulk stream; one at a time.
  std::optional<BulkSender> sending_;
  size_t chunk_;  // NextChunk's
  Clock::time_point chunk_asked_;
  // Of the thread that reads the bulk stream.
  BulkReceiver receiver_;
  uint64_t taken_pieces_ = 0;  // of the peer's window, not given back yet
  size_t taken_bytes_ = 0;     // in them
};

}  // namespace cohort
