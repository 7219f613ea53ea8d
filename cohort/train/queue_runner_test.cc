#include "cohort/train/queue_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/registration.h"
#include "cohort/train/clock.h"

namespace cohort::train {
namespace {

using ::testing::HasSubstr;

// The runner moves numbers from `source` to `target`, and doubles them. Numbers from `first_bad` on are an error.
struct MovedNumbers {
  explicit MovedNumbers(int32_t first_bad) {
    put = source.EnqueueMany({ops::Const(graph, std::vector<int32_t>{1, 2, 3, 4, 5})});
    close = source.Close();
    take = target.Dequeue()[0];
    const Output number = source.Dequeue()[0];
    const ControlDependencies checked(graph, {ops::Assert(ops::Less(number, first_bad), {number})});
    runner = std::make_unique<QueueRunner>(target, std::vector<Node*>{target.Enqueue({number * 2})});
  }
  int32_t Take(Session& session) const {
    return session.Run({}, {take}, {}, {.timeout = std::chrono::seconds(60)})[0].scalar<int32_t>();
  }
  const bool registered = RegisterAll();
  Graph graph;
  ops::FIFOQueue source{graph, {DType::kInt32}, {.shapes = {Shape()}, .name = NodeName("source")}};
  ops::FIFOQueue target{graph, {DType::kInt32}, {.capacity = 2, .shapes = {Shape()}, .name = NodeName("target")}};
  Node *put = nullptr, *close = nullptr;
  Output take;
  std::unique_ptr<QueueRunner> runner;
};

TEST(QueueRunnerTest, FillsTheQueueUntilTheDataEnd) {
  MovedNumbers model(100);
  Session session(model.graph);
  Coordinator coordinator;
  session.Run(model.put);
  model.runner->Start(session, coordinator);
  for (const int32_t expected : {2, 4, 6, 8, 10}) EXPECT_EQ(model.Take(session), expected);
  session.Run(model.close);  // the end of the data
  EXPECT_THAT(MessageOf<OutOfRangeError>([&] { model.Take(session); }), HasSubstr("FIFOQueue 'target' is closed"));
  EXPECT_FALSE(coordinator.should_stop());
}

TEST(QueueRunnerTest, AnErrorStopsTheCoordinator) {
  MovedNumbers model(3);
  Session session(model.graph);
  Coordinator coordinator;
  session.Run(model.put);
  model.runner->Start(session, coordinator);
  EXPECT_EQ(model.Take(session), 2);
  EXPECT_EQ(model.Take(session), 4);
  EXPECT_THAT(MessageOf<OutOfRangeError>([&] { model.Take(session); }), HasSubstr("FIFOQueue 'target' is closed"));
  ASSERT_TRUE(coordinator.WaitForStop(Clock::now() + std::chrono::seconds(60)));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { std::rethrow_exception(coordinator.exception()); }),
              HasSubstr("assertion failed"));
}

TEST(QueueRunnerTest, TheEndOfTheSessionIsNoError) {
  MovedNumbers model(100);
  Coordinator coordinator;
  for (int i = 0; i < 3; ++i) {
    Session session(model.graph);
    model.runner->Start(session, coordinator);
  }
  EXPECT_FALSE(coordinator.should_stop());
}

TEST(QueueRunnerTest, ManyRunsThatNeverWaitDoNotGrowTheStack) {
  MovedNumbers model(100'000'000);
  const ops::FIFOQueue many(model.graph, {DType::kInt32}, {.shapes = {Shape()}});
  Node* put = many.EnqueueMany({ops::Const(model.graph, Tensor::Zeros(DType::kInt32, Shape{100'000}))});
  Node* close = many.Close();
  Node* take = many.Dequeue()[0].node;
  const Output size = many.Size();
  Session session(model.graph);
  session.Run(put);
  session.Run(close);
  const auto ended = std::make_shared<std::promise<Status>>();
  RepeatOp(session, take, [ended](const Status& status) { ended->set_value(status); });
  std::future<Status> end = ended->get_future();
  ASSERT_EQ(end.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(end.get().code(), Code::kOutOfRange);
  EXPECT_EQ(session.Run(size).scalar<int32_t>(), 0);
}

TEST(QueueRunnerTest, WrongUsesAreNamed) {
  MovedNumbers model(100);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { QueueRunner(model.target, {}); }), HasSubstr("got none"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { QueueRunner(model.source, {model.put}); }),
              HasSubstr("'source' has no limit"));
}

}  // namespace
}  // namespace cohort::train
