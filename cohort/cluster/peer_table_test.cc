#include "cohort/cluster/peer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cohort/cluster/testing/recording_handler.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using testing::Soon;

// A connection that only opens and closes.
class BareConnection final : public Connection {
 public:
  const TaskIdentity& peer() const override { return peer_; }
  void Send(Message) override {}
  void Send(std::vector<Message>) override {}
  void SendAfterAll(Message) override {}
  void Close(const Status&) override { closed_ = true; }
  bool closed() const override { return closed_; }
  std::chrono::milliseconds silent_for() const override { return {}; }

 private:
  const TaskIdentity peer_ = testing::Identity("/job:worker/replica:0/task:1", "127.0.0.1:2");
  bool closed_ = false;
};

class DialedTransport final : public Transport {
 public:
  explicit DialedTransport(std::function<std::shared_ptr<Connection>()> dial) : dial_(std::move(dial)) {}
  int Listen(const std::string&) override { return 1; }
  void SetIdentity(const TaskIdentity&) override {}
  std::shared_ptr<Connection> Dial(const std::string&, const std::string&, const DialEnd&) override { return dial_(); }

 private:
  void End(const std::string&) override {}
  const std::function<std::shared_ptr<Connection>()> dial_;
};

class EventList final : public PeerListener {
 public:
  void OnPeerConnected(const TaskIdentity&) override { events.emplace_back("connected"); }
  void OnPeerGone(const TaskIdentity&, bool task_gone) override { events.emplace_back(task_gone ? "gone" : "other"); }
  std::vector<std::string> events;
};

class PeerTableTest : public ::testing::Test {
 protected:
  PeerTable Make(std::function<std::shared_ptr<Connection>()> dial) {
    return {ClusterSpec({{"worker", {"127.0.0.1:1", "127.0.0.1:2"}}}),
            FullTaskName("worker", 0),
            std::make_unique<DialedTransport>(std::move(dial)),
            listener_,
            std::chrono::milliseconds(0),
            1};
  }
  const DeviceName peer_ = FullTaskName("worker", 1);
  EventList listener_;
};

// The transport may see the end of a connection before Dial has returned it. Its call of OnClosed is then the only one.
TEST_F(PeerTableTest, AConnectionThatClosedBeforeItWasAddedIsRemovedOnce) {
  PeerTable* table = nullptr;
  PeerTable made = Make([&table] {
    auto connection = std::make_shared<BareConnection>();
    connection->Close({});
    table->Remove(connection);
    return connection;
  });
  table = &made;
  EXPECT_TRUE(made.Reach(peer_, {.deadline = Soon()})->closed());
  EXPECT_THAT(listener_.events, ElementsAre("connected", "gone"));
  EXPECT_TRUE(made.GoneSince(peer_.ToString()).has_value());
}

// A connection may also have closed, and its OnClosed not have been called yet.
TEST_F(PeerTableTest, AConnectionWhoseEndIsReportedAfterItWasAddedIsRemovedOnce) {
  PeerTable table = Make([] {
    auto connection = std::make_shared<BareConnection>();
    connection->Close({});
    return connection;
  });
  const auto connection = table.Reach(peer_, {.deadline = Soon()});
  EXPECT_THAT(listener_.events, ElementsAre("connected"));
  EXPECT_TRUE(table.Remove(connection));
  EXPECT_THAT(listener_.events, ElementsAre("connected", "gone"));
}

}  // namespace
}  // namespace cohort
