// Queues in sessions: several runs of one session wait for each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/queues.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/testing/device_kinds.h"
#include "cohort/runtime/testing/waiting_runs.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::WaitingRun;

const bool kQueuesRegistered = testing::RegisterForDeviceKinds();

class QueueTest : public ::testing::Test {
 protected:
  QueueTest() : x_(ops::Placeholder(g_, DType::kFloat32, Shape(), "x")) {}

  // A queue of float32 scalars, with the nodes that the tests use.
  struct Nodes {
    ops::FIFOQueue queue;
    Node* put;
    Output take;
    Output take_two;
    Output take_up_to_five;
    Output size;
    Output is_closed;
    Node* close;
    Node* close_now;
    Node* reset;
  };
  Nodes MakeQueue(int64_t capacity = -1) {
    const ops::FIFOQueue queue(g_, {DType::kFloat32},
                               {.capacity = capacity, .shapes = {Shape()}, .name = NodeName("q")});
    return {queue,        queue.Enqueue({x_}), queue.Dequeue()[0], queue.DequeueMany(2)[0], queue.DequeueUpTo(5)[0],
            queue.Size(), queue.IsClosed(),    queue.Close(),      queue.Close(true),       queue.Reset()};
  }
  void Put(Session& session, const Nodes& nodes, float value) {
    session.Run({{x_, Tensor::Scalar(value)}}, {}, {nodes.put});
  }
  std::unique_ptr<WaitingRun> PutLater(Session& session, const Nodes& nodes, float value) {
    return WaitingRun::Start(session, {{{x_, Tensor::Scalar(value)}}, {}, {nodes.put}, {}});
  }
  static std::unique_ptr<WaitingRun> Later(Session& session, Output fetch) {
    return WaitingRun::Start(session, {{}, {fetch}, {}, {}});
  }

  Graph g_;
  Output x_;
};

TEST_F(QueueTest, ElementsLeaveInTheirOrder) {
  const Nodes q = MakeQueue();
  Session session(g_);
  for (const float value : {1.0f, 2.0f, 3.0f}) Put(session, q, value);
  EXPECT_EQ(session.Run(q.size).scalar<int32_t>(), 3);
  EXPECT_EQ(session.Run(q.take).scalar<float>(), 1.0f);
  EXPECT_THAT(session.Run(q.take_two).ToVector<float>(), ElementsAre(2.0f, 3.0f));
  EXPECT_EQ(session.Run(q.size).scalar<int32_t>(), 0);
}

TEST_F(QueueTest, ATakeWaitsForAnElement) {
  const Nodes q = MakeQueue();
  Session session(g_);
  const auto first = Later(session, q.take);
  const auto second = Later(session, q.take_two);
  EXPECT_FALSE(first->ended());
  Put(session, q, 1);
  EXPECT_EQ(first->Wait()[0].scalar<float>(), 1.0f);
  Put(session, q, 2);
  EXPECT_FALSE(second->ended());
  Put(session, q, 3);
  EXPECT_THAT(second->Wait()[0].ToVector<float>(), ElementsAre(2.0f, 3.0f));
}

TEST_F(QueueTest, APutWaitsForRoom) {
  const Nodes q = MakeQueue(1);
  Session session(g_);
  Put(session, q, 1);
  const auto second = PutLater(session, q, 2);
  const auto third = PutLater(session, q, 3);
  EXPECT_FALSE(second->ended());
  EXPECT_EQ(session.Run(q.take).scalar<float>(), 1.0f);
  second->Wait();
  EXPECT_FALSE(third->ended());
  // A batch that is larger than the capacity takes its elements one after another.
  EXPECT_THAT(session.Run(q.take_two).ToVector<float>(), ElementsAre(2.0f, 3.0f));
  third->Wait();
}

TEST_F(QueueTest, AClosedQueueGivesItsElementsAndThenEnds) {
  const Nodes q = MakeQueue();
  Session session(g_);
  for (const float value : {1.0f, 2.0f, 3.0f}) Put(session, q, value);
  EXPECT_FALSE(session.Run(q.is_closed).scalar<bool>());
  session.Run(q.close);
  EXPECT_TRUE(session.Run(q.is_closed).scalar<bool>());
  EXPECT_THAT(MessageOf<CancelledError>([&] { Put(session, q, 4); }), HasSubstr("FIFOQueue 'q' is closed."));
  EXPECT_THAT(MessageOf<CancelledError>([&] { session.Run(q.close); }), HasSubstr("Queue 'q' is already closed."));
  EXPECT_THAT(session.Run(q.take_two).ToVector<float>(), ElementsAre(1.0f, 2.0f));
  EXPECT_THAT(MessageOf<OutOfRangeError>([&] { session.Run(q.take_two); }),
              HasSubstr("FIFOQueue 'q' is closed and has insufficient elements (requested 2, current size 1)"));
  EXPECT_THAT(session.Run(q.take_up_to_five).ToVector<float>(), ElementsAre(3.0f));
  EXPECT_THAT(MessageOf<OutOfRangeError>([&] { session.Run(q.take_up_to_five); }),
              HasSubstr("(requested 5, current size 0)"));
  EXPECT_THAT(MessageOf<OutOfRangeError>([&] { session.Run(q.take); }),
              HasSubstr("FIFOQueue 'q' is closed and has insufficient elements (requested 1, current size 0)"));
}

TEST_F(QueueTest, ToCloseEndsTheTakesThatWait) {
  const Nodes q = MakeQueue();
  Session session(g_);
  const auto pair = Later(session, q.take_two);
  const auto one = Later(session, q.take);
  Put(session, q, 1);  // the pair has it, and gives it back when the queue is closed
  session.Run(q.close);
  EXPECT_THAT(MessageOf<OutOfRangeError>([&] { pair->Wait(); }), HasSubstr("(requested 2, current size 1)"));
  EXPECT_EQ(one->Wait()[0].scalar<float>(), 1.0f);
}

TEST_F(QueueTest, ToCloseWaitsForThePutsThatWaitOrCancelsThem) {
  const Nodes q = MakeQueue(1);
  Session session(g_);
  Put(session, q, 1);
  const auto second = PutLater(session, q, 2);
  const auto close = WaitingRun::Start(session, {{}, {}, {q.close}, {}});
  const auto third = PutLater(session, q, 3);
  EXPECT_FALSE(session.Run(q.is_closed).scalar<bool>());
  EXPECT_EQ(session.Run(q.take).scalar<float>(), 1.0f);
  second->Wait();
  close->Wait();
  EXPECT_THAT(MessageOf<CancelledError>([&] { third->Wait(); }), HasSubstr("FIFOQueue 'q' is closed."));

  session.Run(q.reset);
  Put(session, q, 4);
  const auto fifth = PutLater(session, q, 5);
  WaitingRun::Start(session, {{}, {}, {q.close_now}, {}})->Wait();  // not session.Run, which might overtake the put
  EXPECT_THAT(MessageOf<CancelledError>([&] { fifth->Wait(); }), HasSubstr("Enqueue operation was cancelled"));
  EXPECT_EQ(session.Run(q.take).scalar<float>(), 4.0f);
}

TEST_F(QueueTest, ResetEmptiesAndOpensTheQueue) {
  const Nodes q = MakeQueue();
  Session session(g_);
  Put(session, q, 1);
  session.Run(q.close);
  session.Run(q.reset);
  EXPECT_EQ(session.Run(q.size).scalar<int32_t>(), 0);
  EXPECT_FALSE(session.Run(q.is_closed).scalar<bool>());
  const auto take = Later(session, q.take);
  session.Run(q.reset);
  EXPECT_FALSE(take->ended());
  Put(session, q, 2);
  EXPECT_EQ(take->Wait()[0].scalar<float>(), 2.0f);
}

TEST_F(QueueTest, ARunThatTimesOutLeavesTheQueue) {
  const Nodes q = MakeQueue();
  Session session(g_);
  Put(session, q, 1);
  EXPECT_THAT(MessageOf<DeadlineExceededError>(
                  [&] { session.Run({}, {q.take_two}, {}, {.timeout = std::chrono::milliseconds(20)}); }),
              HasSubstr("20 ms"));
  EXPECT_EQ(session.Run(q.take).scalar<float>(), 1.0f) << "the run that failed has given its element back";
}

TEST_F(QueueTest, TheEndOfTheSessionEndsTheWait) {
  const Nodes q = MakeQueue();
  Session session(g_);
  const auto take = Later(session, q.take);
  session.Close();
  EXPECT_THAT(MessageOf<CancelledError>([&] { take->Wait(); }), HasSubstr("closed"));
}

TEST_F(QueueTest, AFailedSessionDoesNotWait) {
  const Nodes q = MakeQueue();
  const Output code = ops::Placeholder(g_, DType::kInt32, Shape(), "code");
  Node* fail = q.queue.FailSession(code, ops::Const(g_, "the loop has failed"));
  Session session(g_);
  const auto take = Later(session, q.take);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                session.Run({{code, Tensor::Scalar(0)}}, {}, {fail});
              }),
              HasSubstr("got 0"));
  session.Run({{code, Tensor::Scalar(static_cast<int32_t>(Code::kDataLoss))}}, {}, {fail});
  EXPECT_THAT(MessageOf<DataLossError>([&] { take->Wait(); }), HasSubstr("the loop has failed"));
  Put(session, q, 1);
  EXPECT_THAT(MessageOf<DataLossError>([&] { session.Run(q.take); }), HasSubstr("the loop has failed"));
  session.Run(q.reset);
  Put(session, q, 2);
  EXPECT_EQ(session.Run(q.take).scalar<float>(), 2.0f);
}

TEST_F(QueueTest, ComponentsAreChecked) {
  const ops::FIFOQueue queue(g_, {DType::kFloat32, DType::kInt32},
                             {.shapes = {Shape{2}, Shape()}, .name = NodeName("q")});
  const auto value = [&](DType dtype, const std::string& name) {
    return ops::Placeholder(g_, dtype, Shape::UnknownRank(), name);
  };
  const Output a = value(DType::kFloat32, "a");
  const Output b = value(DType::kInt32, "b");
  Node* one = queue.Enqueue({a, b});
  Node* many = queue.EnqueueMany({a, b});
  Node* too_few = queue.Enqueue({a});
  Node* other_types = queue.Enqueue({a, a});
  Session session(g_);
  const Tensor pair = Tensor::Vector<float>({1, 2});
  const Tensor number = Tensor::Scalar(3);
  session.Run({{a, pair}, {b, number}}, {}, {one});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                session.Run({{a, number}, {b, number}}, {}, {one});
              }),
              HasSubstr("float32"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                session.Run({{a, Tensor::Vector<float>({1, 2, 3})}, {b, number}}, {}, {one});
              }),
              HasSubstr("Shape mismatch in tuple component 0 of FIFOQueue 'q'. Expected [2], got [3]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                session.Run({{a, pair}}, {}, {too_few});
              }),
              HasSubstr("Expected 2, got 1"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                session.Run({{a, pair}}, {}, {other_types});
              }),
              HasSubstr("Type mismatch in tuple component 1 of FIFOQueue 'q'. Expected int32, got float32"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                session.Run({{a, Tensor::Zeros(DType::kFloat32, Shape{3, 2})}, {b, Tensor::Vector<int32_t>({1, 2})}},
                            {}, {many});
              }),
              HasSubstr("same size in the 0th dimension"));
}

TEST_F(QueueTest, TheSameNameWithOtherAttributesIsAnError) {
  const ops::FIFOQueue first(g_, {DType::kFloat32}, {.capacity = 3, .shared_name = "shared"});
  const ops::FIFOQueue second(g_, {DType::kFloat32}, {.capacity = 4, .shared_name = "shared"});
  const ops::RandomShuffleQueue third(g_, 0, {DType::kFloat32}, {.capacity = 3, .shared_name = "shared"});
  const Output sizes[] = {first.Size(), second.Size(), third.Size()};
  Session session(g_);
  session.Run(sizes[0]);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run(sizes[1]); }),
              HasSubstr("Shared queue 'shared' has capacity 3 but requested capacity was 4"));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { session.Run(sizes[2]); }), HasSubstr("FIFOQueue 'shared'"));
}

TEST_F(QueueTest, WrongOptionsAreNamed) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::FIFOQueue(g_, {}); }), HasSubstr("at least one dtype"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::FIFOQueue(g_, {DType::kFloat32}, {.shapes = {Shape{-1}}}); }),
              HasSubstr("All shapes must be fully defined"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::FIFOQueue(g_, {DType::kFloat32}, {.capacity = 0}); }),
              HasSubstr("got 0"));
  const ops::FIFOQueue without_shapes(g_, {DType::kFloat32});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { without_shapes.DequeueMany(2); }),
              HasSubstr("QueueOptions::shapes"));
}

TEST_F(QueueTest, TheShuffleQueueKeepsItsMinimumUntilItIsClosed) {
  const ops::RandomShuffleQueue queue(g_, 2, {DType::kFloat32}, {.shapes = {Shape()}, .name = NodeName("r")}, 5);
  Node* put = queue.EnqueueMany({ops::Const(g_, Tensor::Vector<float>({0, 1, 2, 3, 4, 5, 6, 7}))});
  const Output take_six = queue.DequeueMany(6)[0];
  const Output take = queue.Dequeue()[0];
  Node* close = queue.Close();
  Session session(g_);
  session.Run(put);
  const std::vector<float> six = session.Run(take_six).ToVector<float>();
  EXPECT_NE(six, (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const auto seventh = Later(session, take);
  EXPECT_FALSE(seventh->ended());
  session.Run(close);
  std::set<float> all(six.begin(), six.end());
  all.insert(seventh->Wait()[0].scalar<float>());
  all.insert(session.Run(take).scalar<float>());
  EXPECT_EQ(all, (std::set<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_THAT(MessageOf<OutOfRangeError>([&] { session.Run(take); }), HasSubstr("RandomShuffleQueue 'r' is closed"));
}

TEST_F(QueueTest, ManyRunsLoseAndRepeatNothing) {
  constexpr int kRuns = 200;
  const Nodes q = MakeQueue(3);
  Session session(g_);
  std::vector<std::unique_ptr<WaitingRun>> puts;
  std::vector<std::unique_ptr<WaitingRun>> takes;
  for (int i = 0; i < kRuns; ++i) {
    puts.push_back(PutLater(session, q, static_cast<float>(i)));
    takes.push_back(Later(session, q.take));
  }
  for (const auto& put : puts) put->Wait();
  for (int i = 0; i < kRuns; ++i) {
    EXPECT_EQ(takes[static_cast<size_t>(i)]->Wait()[0].scalar<float>(), static_cast<float>(i));
  }
}

TEST_F(QueueTest, AQueueWorksBesideADeviceWithMemoryOfItsOwn) {
  SessionConfig config;
  config.device_count["TEST"] = 1;
  const DeviceScope device(g_, "/device:TEST:0");
  const ops::FIFOQueue queue(g_, {DType::kFloat32}, {.shapes = {Shape()}});
  Node* put = queue.Enqueue({x_ * 2.0f});
  const Output take = queue.Dequeue()[0] + 1.0f;
  Session session(g_, "", config);
  const auto later = Later(session, take);
  session.Run({{x_, Tensor::Scalar(3.0f)}}, {}, {put});
  EXPECT_EQ(later->Wait()[0].scalar<float>(), 7.0f);
}

}  // namespace
}  // namespace cohort
