#include "cohort/device/resource.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace cohort {
namespace {

using ::testing::HasSubstr;

struct Counter final : Resource {
  explicit Counter(int* alive) : alive(alive) { ++*alive; }
  ~Counter() override { --*alive; }
  std::string Describe() const override { return "a counter"; }
  int* alive;
};
struct Queue final : Resource {
  std::string Describe() const override { return "a queue"; }
};

TEST(ResourceManagerTest, MakesOncePerContainerAndName) {
  int alive = 0;
  ResourceManager manager;
  const auto get = [&](const char* container, const char* name) {
    return manager.LookupOrCreate<Counter>(container, name, [&] { return std::make_shared<Counter>(&alive); });
  };
  const auto a = get("", "a");
  EXPECT_EQ(get("localhost", "a"), a);  // "" is the default container
  EXPECT_NE(get("other", "a"), a);
  EXPECT_NE(get("", "b"), a);
  EXPECT_EQ(alive, 3);
  EXPECT_EQ(manager.Lookup("", "a"), a);
  EXPECT_EQ(manager.Lookup("", "c"), nullptr);
  const auto all = manager.List("");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].first, "a");
  EXPECT_EQ(all[1].first, "b");
}

TEST(ResourceManagerTest, AnotherTypeIsAnErrorThatNamesBoth) {
  int alive = 0;
  ResourceManager manager;
  manager.LookupOrCreate<Counter>("", "x", [&] { return std::make_shared<Counter>(&alive); });
  try {
    manager.LookupOrCreate<Queue>("", "x", [] { return std::make_shared<Queue>(); });
    FAIL();
  } catch (const FailedPreconditionError& e) {
    EXPECT_THAT(e.what(), HasSubstr("'x' of container 'localhost' exists already, as a counter"));
  }
}

TEST(ResourceManagerTest, ClearKeepsWhatIsHeldAndOtherContainers) {
  int alive = 0;
  ResourceManager manager;
  const auto make = [&] { return std::make_shared<Counter>(&alive); };
  Tensor handle = MakeResourceHandle(manager.LookupOrCreate<Counter>("", "a", make));
  manager.LookupOrCreate<Counter>("", "b", make);
  manager.LookupOrCreate<Counter>("zoo", "a", make);
  const int64_t epoch = manager.epoch();
  manager.Clear("");
  EXPECT_GT(manager.epoch(), epoch);
  EXPECT_EQ(alive, 2);
  EXPECT_EQ(manager.Lookup("", "a"), nullptr);
  EXPECT_NE(manager.Lookup("zoo", "a"), nullptr);
  EXPECT_EQ(ResourceOf<Counter>(handle).alive, &alive);
  handle.Reset();
  EXPECT_EQ(alive, 1);
}

TEST(ResourceManagerTest, ThreadsGetTheSameResource) {
  int alive = 0;
  ResourceManager manager;
  std::vector<std::shared_ptr<Counter>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got) {
    threads.emplace_back(
        [&] { mine = manager.LookupOrCreate<Counter>("", "a", [&] { return std::make_shared<Counter>(&alive); }); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : got) EXPECT_EQ(one, got[0]);
  EXPECT_EQ(alive, 1);
}

TEST(ResourceHandleTest, HandlesAreScalarsThatAreShared) {
  const auto queue = std::make_shared<Queue>();
  const Tensor handle = MakeResourceHandle(queue);
  const Tensor copy = handle;
  EXPECT_EQ(handle.dtype(), DType::kResource);
  EXPECT_TRUE(handle.shape().IsScalar());
  EXPECT_EQ(ResourceOfHandle(copy), queue);
  EXPECT_EQ(queue.use_count(), 2);
}

TEST(ResourceHandleTest, WhatIsNoHandleIsAnError) {
  EXPECT_THROW(ResourceOfHandle(Tensor::Scalar(1.0f)), InvalidArgumentError);
  EXPECT_THROW(ResourceOfHandle(Tensor()), InvalidArgumentError);
  try {
    ResourceOf<Counter>(MakeResourceHandle(std::make_shared<Queue>()));
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("a queue"));
  }
}

}  // namespace
}  // namespace cohort
