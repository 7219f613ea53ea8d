#include "cohort/device/cancellation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace cohort {
namespace {

TEST(CancellationTest, CallbacksRunOnceWithTheFirstReason) {
  CancellationManager manager;
  std::vector<std::string> seen;
  const auto note = [&](const Status& why) { seen.push_back(why.message()); };
  EXPECT_NE(manager.Register(note), CancellationManager::kAlreadyCancelled);
  const auto dropped = manager.Register(note);
  EXPECT_TRUE(manager.Deregister(dropped));
  EXPECT_FALSE(manager.Deregister(dropped));
  EXPECT_FALSE(manager.cancelled());
  manager.Cancel(Status(Code::kUnavailable, "lost"));
  manager.Cancel(Status(Code::kAborted, "later"));
  EXPECT_EQ(seen, std::vector<std::string>{"lost"});
  EXPECT_TRUE(manager.cancelled());
  EXPECT_EQ(manager.status().code(), Code::kUnavailable);
  EXPECT_EQ(manager.Register(note), CancellationManager::kAlreadyCancelled);
  EXPECT_EQ(seen.size(), 1u);
}

TEST(CancellationTest, CancellingWithoutAReasonStillCancels) {
  CancellationManager manager;
  manager.Cancel(Status());
  EXPECT_TRUE(manager.cancelled());
  EXPECT_EQ(manager.status().code(), Code::kCancelled);
}

TEST(CancellationTest, ResetIsForTheNextStep) {
  CancellationManager manager;
  manager.Cancel(Status(Code::kAborted, "a"));
  manager.Reset();
  EXPECT_FALSE(manager.cancelled());
  const auto token = manager.Register([](const Status&) {});
  EXPECT_NE(token, CancellationManager::kAlreadyCancelled);
  EXPECT_THROW(manager.Reset(), InternalError);
  EXPECT_TRUE(manager.Deregister(token));
}

TEST(CancellationTest, ACallbackMayUseTheManager) {
  CancellationManager manager;
  bool ran = false;
  CancellationManager::Token token = 0;
  token = manager.Register([&](const Status&) {
    ran = true;
    EXPECT_TRUE(manager.cancelled());
    EXPECT_FALSE(manager.Deregister(token));
  });
  manager.Cancel(Status(Code::kCancelled, "x"));
  EXPECT_TRUE(ran);
}

// Of deregistering and running exactly one happens.
TEST(CancellationTest, DeregisterRacesWithCancel) {
  for (int round = 0; round < 50; ++round) {
    CancellationManager manager;
    std::atomic<int> ran{0};
    std::vector<CancellationManager::Token> tokens;
    for (int i = 0; i < 20; ++i) tokens.push_back(manager.Register([&](const Status&) { ++ran; }));
    std::thread canceller([&] { manager.Cancel(Status(Code::kCancelled, "x")); });
    int deregistered = 0;
    for (const auto token : tokens) deregistered += manager.Deregister(token);
    canceller.join();
    EXPECT_EQ(ran + deregistered, 20);
  }
}

}  // namespace
}  // namespace cohort
