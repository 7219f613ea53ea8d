// RecordingHandler: a TransportHandler for tests that records all calls.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/transport.h"
#include "cohort/core/mutex.h"
#include "cohort/core/testing/throws.h"

namespace cohort::testing {

inline std::chrono::steady_clock::time_point Soon(int seconds = 60) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
}

// Records the calls of a transport, and lets a test wait for them. If a wait takes longer than a minute, it fails the
// test and returns what there is: a null connection, the messages so far, or an OK status. The test owns it.
// Thread-safe. `on_message` and `on_accepted` are called without a lock, perhaps on several threads at the same time.
class RecordingHandler final : public TransportHandler {
 public:
  // Called for each message before it is recorded. It must be set before the transport starts.
  std::function<void(const std::shared_ptr<Connection>&, const Message&)> on_message;
  // Called for each accepted connection before it is recorded. It must be set before the transport starts.
  std::function<void()> on_accepted;

  void OnAccepted(const std::shared_ptr<Connection>& connection) override {
    if (on_accepted) on_accepted();
    MutexLock lock(mu_);
    CheckAlive(connection);
    accepted_.push_back(connection);
    changed_.NotifyAll();
  }
  void OnMessage(const std::shared_ptr<Connection>& connection, Message message) override {
    if (on_message) on_message(connection, message);
    MutexLock lock(mu_);
    CheckAlive(connection);
    messages_.push_back(std::move(message));
    changed_.NotifyAll();
  }
  void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) override {
    MutexLock lock(mu_);
    CheckAlive(connection);
    EXPECT_TRUE(connection->closed());
    closed_.emplace(connection, why);
    changed_.NotifyAll();
  }
  // Releases all recorded messages.
  void Forget() {
    MutexLock lock(mu_);
    messages_.clear();
  }
  // Makes every later call of the transport (OnAccepted, OnMessage, OnClosed) fail the test.
  void Forbid() {
    MutexLock lock(mu_);
    forbidden_ = true;
  }

  // Returns the n-th connection that a peer has made. Waits for it.
  std::shared_ptr<Connection> Accepted(size_t n = 0) {
    MutexLock lock(mu_);
    WaitUntil([&]() COHORT_REQUIRES(mu_) { return accepted_.size() > n; }, "a connection");
    return accepted_.size() > n ? accepted_[n] : nullptr;
  }
  // Waits until there are `count` messages. Returns all messages.
  std::vector<Message> Messages(size_t count) {
    MutexLock lock(mu_);
    WaitUntil([&]() COHORT_REQUIRES(mu_) { return messages_.size() >= count; }, "messages");
    return messages_;
  }
  size_t message_count() {
    MutexLock lock(mu_);
    return messages_.size();
  }
  // Waits until `connection` has closed. Returns the reason.
  Status WhyClosed(const std::shared_ptr<Connection>& connection) {
    MutexLock lock(mu_);
    WaitUntil([&]() COHORT_REQUIRES(mu_) { return closed_.count(connection) > 0; }, "the end of a connection");
    const auto it = closed_.find(connection);
    return it == closed_.end() ? Status() : it->second;
  }
  size_t closed_count() {
    MutexLock lock(mu_);
    return closed_.size();
  }

 private:
  void CheckAlive(const std::shared_ptr<Connection>& connection) COHORT_REQUIRES(mu_) {
    EXPECT_FALSE(forbidden_) << "a call after Shutdown";
    EXPECT_EQ(closed_.count(connection), 0u) << "a call after OnClosed";
  }
  template <typename Condition>
  void WaitUntil(Condition condition, const char* what) COHORT_REQUIRES(mu_) {
    const auto deadline = Soon();
    while (!condition()) {
      if (!changed_.WaitUntil(mu_, deadline) && !condition()) {
        ADD_FAILURE() << what << " did not come within a minute";
        return;
      }
    }
  }

  Mutex mu_;
  CondVar changed_;
  std::vector<std::shared_ptr<Connection>> accepted_ COHORT_GUARDED_BY(mu_);
  std::vector<Message> messages_ COHORT_GUARDED_BY(mu_);
  std::map<std::shared_ptr<Connection>, Status> closed_ COHORT_GUARDED_BY(mu_);
  bool forbidden_ COHORT_GUARDED_BY(mu_) = false;
};

inline TaskIdentity Identity(const std::string& task, const std::string& address = "") {
  TaskIdentity identity;
  identity.task = task;
  identity.address = address;
  identity.incarnation = 7;
  identity.op_fingerprint = 0xabcdef;
  identity.protocol_version = 4;
  identity.cluster = "{}";
  return identity;
}

}  // namespace cohort::testing
