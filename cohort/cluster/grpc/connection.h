// GrpcConnection: a connection to one peer, made of two gRPC streams. Small messages travel together on the control
// stream, large messages on the bulk stream. Between processes of one host, the bytes of large messages go through
// shared memory (window.h), once the peer has opened it.
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
#include "cohort/cluster/grpc/frame_mac.h"
#include "cohort/cluster/grpc/stream.h"
#include "cohort/cluster/transport.h"
#include "cohort/core/mutex.h"

namespace cohort {

// A connection to one peer over gRPC. The transport makes it at the end of a handshake. The transport and the streams
// own it until the control stream and the bulk stream (if there is one) have ended; then OnClosed is called.
// Thread-safe, except UseControl.
class GrpcConnection final : public Connection, public std::enable_shared_from_this<GrpcConnection> {
 public:
  using Clock = std::chrono::steady_clock;

  // The acceptor has chosen `number`. `same_host` is true if memory may be shared with the peer. The connection calls
  // `forget` when both streams have ended, before the handler's OnClosed, so that the transport gives up its ownership.
  GrpcConnection(TransportHandler& handler, const TransportOptions& options, TaskIdentity peer, uint64_t number,
                 bool same_host, std::function<void(GrpcConnection&)> forget);

  const TaskIdentity& peer() const override { return peer_; }
  void Send(Message message) override;
  void Send(std::vector<Message> messages) override;
  void SendAfterAll(Message message) override;
  void Close(const Status& why) override;
  bool closed() const override { return closed_.load(std::memory_order_acquire); }
  std::chrono::milliseconds silent_for() const override;
  std::optional<IncomingMessage> incoming() const override { return receiver_.incoming(); }

  uint64_t number() const { return number_; }
  // Takes over a control stream whose handshake has succeeded. All frames are sealed with `macs`; null: they have no
  // MACs. `first` is written before everything else. Must be called once, before any other thread uses the connection.
  void UseControl(const std::shared_ptr<ByteStream>& stream, std::unique_ptr<StreamMacs> macs,
                  std::optional<grpc::ByteBuffer> first);
  // Takes over the bulk stream, at any later time. The arguments are as above. Returns false, and does not use the
  // stream, if the connection is closed or has a bulk stream.
  bool UseBulk(const std::shared_ptr<ByteStream>& stream, std::unique_ptr<StreamMacs> macs,
               std::optional<grpc::ByteBuffer> first);

  // Begins to send everything that is queued, and then a goodbye, which makes the peer close the connection. Does not
  // wait. When the connection has closed, OnClosed gets `why` on this side. Drops messages that are sent after this
  // call. Returns true if large messages are still to be sent. If the connection is closed, returns false and does
  // nothing.
  bool SayGoodbye(const Status& why);

  // Called regularly by the transport's watching thread. Sends a heartbeat if nothing was sent on the control stream
  // for a heartbeat interval. Closes the connection if no byte has come from the peer for longer than the silence
  // limit. Two times do not count, because no byte is read then: the time before `listening_since`, and the time in
  // which the handler handles a message of this connection. `listening_since` is the last time at which the
  // transport found that this process had been stopped, or had no free thread to read with.
  void Watch(Clock::time_point now, Clock::time_point listening_since);

 private:
  class ControlUser;
  class BulkUser;

  // Adds the MAC of the frame if there are `macs`. Closes the connection and returns false if that fails.
  bool Seal(StreamMacs* macs, grpc::ByteBuffer* frame);

  bool NextControlFrame(grpc::ByteBuffer* frame) COHORT_EXCLUDES(mu_);
  bool NextBulkFrame(grpc::ByteBuffer* frame) COHORT_EXCLUDES(mu_);
  std::vector<Message> TakeBatch() COHORT_REQUIRES(mu_);
  // Returns how many bytes of a message go into the next frame.
  size_t NextChunk(bool first);
  // These check and remove the MAC of the frame if there are `macs`.
  void OnControlFrame(grpc::ByteBuffer& frame, StreamMacs* macs);
  void OnBulkFrame(grpc::ByteBuffer& frame, StreamMacs* macs);
  // Returns true if the message is complete.
  bool OnWindowChunk(const FrameView& frame) COHORT_EXCLUDES(mu_);
  // Offers shared memory to the peer. Called at most once.
  void OfferWindow() COHORT_EXCLUDES(mu_);
  void OnWindowOffer(std::string_view payload) COHORT_EXCLUDES(mu_);
  void OnWindowAnswer(std::string_view payload) COHORT_EXCLUDES(mu_);
  void OnGivenBack(std::string_view payload) COHORT_EXCLUDES(mu_);
  // Sends a frame with one number. It goes before all messages that are queued.
  void SendOnControl(FrameType type, uint64_t number) COHORT_EXCLUDES(mu_);
  void OnStreamEnded(std::shared_ptr<ByteStream> GrpcConnection::*stream, const std::string& seen) COHORT_EXCLUDES(mu_);
  void OnControlGoodbye(std::string_view payload) COHORT_EXCLUDES(mu_);
  void OnBulkGoodbye() COHORT_EXCLUDES(mu_);
  // If the message was sent with SendAfterAll, restores its kind and header. Returns false if it may be handled now.
  // Otherwise keeps it for HandleBulk and returns true.
  bool WaitsForBulk(Message* message) COHORT_EXCLUDES(mu_);
  // Handles a large message, and then the messages that had to wait for it.
  void HandleBulk(Message message) COHORT_EXCLUDES(mu_);
  void Handle(Message message);
  // Closes the connection with the exception that is being handled.
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
  std::atomic<int> handling_{0};  // calls of the handler that are running

  Mutex mu_;
  std::shared_ptr<ByteStream> control_ COHORT_GUARDED_BY(mu_);  // null after it has ended
  std::shared_ptr<ByteStream> bulk_ COHORT_GUARDED_BY(mu_);
  std::deque<grpc::ByteBuffer> control_frames_ COHORT_GUARDED_BY(mu_);  // sent before messages
  std::optional<grpc::ByteBuffer> first_bulk_ COHORT_GUARDED_BY(mu_);
  std::vector<Message> queued_ COHORT_GUARDED_BY(mu_);
  size_t queued_bytes_ COHORT_GUARDED_BY(mu_) = 0;
  std::deque<Message> bulk_queue_ COHORT_GUARDED_BY(mu_);
  uint64_t bulk_sent_ COHORT_GUARDED_BY(mu_) = 0;     // large messages that were queued so far
  uint64_t bulk_handled_ COHORT_GUARDED_BY(mu_) = 0;  // large messages of the peer that were handled so far
  // Messages of the peer, each with the number of large messages that must be handled before it. The numbers never get
  // smaller.
  std::deque<std::pair<uint64_t, Message>> after_bulk_ COHORT_GUARDED_BY(mu_);
  bool bulk_busy_ COHORT_GUARDED_BY(mu_) = false;  // large messages are queued or are being written
  bool heartbeat_due_ COHORT_GUARDED_BY(mu_) = false;
  enum class WindowState { kNone, kOffered, kOpen };
  WindowState window_state_ COHORT_GUARDED_BY(mu_) = WindowState::kNone;  // the state of window_
  std::shared_ptr<const ReceiveWindow> peers_window_ COHORT_GUARDED_BY(mu_);
  Status goodbye_ COHORT_GUARDED_BY(mu_);  // the `why` of SayGoodbye; ok if it was not called
  bool goodbye_sent_ COHORT_GUARDED_BY(mu_) = false;
  bool bulk_goodbye_sent_ COHORT_GUARDED_BY(mu_) = false;  // sent before the control stream's goodbye
  // The reason in the peer's goodbye on the control stream. It is set only if that goodbye came before the peer's
  // goodbye on the bulk stream. The connection then closes when the second one comes. OK if it is not set.
  Status peers_goodbye_ COHORT_GUARDED_BY(mu_);
  bool bulk_goodbye_heard_ COHORT_GUARDED_BY(mu_) = false;
  Clock::time_point last_sent_ COHORT_GUARDED_BY(mu_);
  Status why_ COHORT_GUARDED_BY(mu_);

  std::atomic<bool> offered_{false};
  std::shared_ptr<SendWindow> window_ COHORT_GUARDED_BY(mu_);

  // Only for the thread that writes to the bulk stream; there is one at a time.
  std::optional<BulkSender> sending_;
  size_t chunk_;  // see NextChunk
  Clock::time_point chunk_asked_;
  // Only for the thread that reads the bulk stream.
  BulkReceiver receiver_;
  uint64_t taken_pieces_ = 0;  // pieces of the peer's window that were read and not given back yet
  size_t taken_bytes_ = 0;     // bytes in these pieces
};

}  // namespace cohort
