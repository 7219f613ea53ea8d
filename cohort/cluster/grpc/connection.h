// GrpcConnection: two streams to one peer - control, on which small messages travel coalesced, and bulk.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/grpc/frame.h"
#include "cohort/cluster/grpc/stream.h"
#include "cohort/cluster/transport.h"
#include "cohort/core/mutex.h"

namespace cohort {

class GrpcConnection final : public Connection, public std::enable_shared_from_this<GrpcConnection> {
 public:
  GrpcConnection(TransportHandler& handler, const TransportOptions& options, TaskIdentity peer, uint64_t number,
                 std::shared_ptr<ByteStream> control);
  // The writing thread has ended: StopWriter was called, or StartWriter never.
  ~GrpcConnection() override = default;

  const TaskIdentity& peer() const override { return peer_; }
  void Send(Message message) override;
  void Send(std::vector<Message> messages) override;
  void Close(const Status& why) override;
  bool closed() const override { return closed_.load(std::memory_order_acquire); }
  std::chrono::milliseconds silent_for() const override;

  // Chosen by the acceptor; by it the dialer's bulk stream finds its connection.
  uint64_t number() const { return number_; }
  // Starts the thread that sends bulk messages and heartbeats.
  void StartWriter();
  // Joins it. After Close; by the thread that called StartWriter or one that comes after it.
  void StopWriter();
  // Reads the control stream until it ends, on the calling thread; then the connection is closed and OnClosed called.
  // When it returns no thread uses the stream any more.
  void ReadControl();
  // A bulk stream that is about to be opened: from now on Close cancels it.
  void ExpectBulk(std::shared_ptr<ByteStream> bulk);
  // As ReadControl, for the bulk stream, which is written to meanwhile. A connection without one holds its bulk back.
  void ReadBulk(const std::shared_ptr<ByteStream>& bulk);
  // Closes when the peer has been silent for longer than the limit.
  void CheckSilence();

 private:
  // Sends what is queued unless another thread is at it.
  void Pump() EXCLUDES(mu_);
  void WriterLoop();
  void WriteBulk(ByteStream& bulk, const Message& message);
  void CloseLocked(const Status& why) REQUIRES(mu_);
  void SendHeartbeatIfDue() EXCLUDES(mu_);
  void Heard() { last_heard_.store(Now(), std::memory_order_relaxed); }
  static int64_t Now();  // ms of the steady clock
  Status LostStatus(const std::string& seen) const;

  TransportHandler& handler_;
  const TransportOptions options_;
  const TaskIdentity peer_;
  const uint64_t number_;
  const std::shared_ptr<ByteStream> control_;
  std::atomic<int64_t> last_heard_;
  std::atomic<bool> closed_{false};

  Mutex mu_;
  CondVar wake_writer_;
  CondVar use_ended_;  // of writing_, writing_bulk_, reading_bulk_
  std::vector<Message> queued_ GUARDED_BY(mu_);
  bool writing_ GUARDED_BY(mu_) = false;       // a thread is in control_->Write
  bool writing_bulk_ GUARDED_BY(mu_) = false;  // the writer uses bulk_
  bool reading_bulk_ GUARDED_BY(mu_) = false;  // a thread is in ReadBulk and may call OnMessage
  bool control_ended_ GUARDED_BY(mu_) = false;
  bool heartbeat_due_ GUARDED_BY(mu_) = false;
  int64_t last_sent_ GUARDED_BY(mu_) = 0;
  std::deque<Message> bulk_queue_ GUARDED_BY(mu_);
  std::shared_ptr<ByteStream> bulk_ GUARDED_BY(mu_);
  std::shared_ptr<ByteStream> expected_bulk_ GUARDED_BY(mu_);
  Status why_ GUARDED_BY(mu_);
  std::thread writer_;
};

}  // namespace cohort
