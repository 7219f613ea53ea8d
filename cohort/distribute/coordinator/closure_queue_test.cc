#include "cohort/distribute/coordinator/closure_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "cohort/core/testing/throws.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Next = ClosureQueue::Next;

ClosurePtr NewClosure() {
  auto closure = std::make_shared<Closure>();
  closure->function = std::make_shared<const ClosureFunction>("f", std::vector<ClosureFunction::OfWorker>(1));
  closure->result = std::make_shared<RemoteResult>();
  return closure;
}

ClosurePtr Add(ClosureQueue& queue) {
  const ClosurePtr closure = NewClosure();
  queue.Put(closure);
  return closure;
}

ClosurePtr TakeOne(ClosureQueue& queue, size_t worker) {
  ClosurePtr closure;
  EXPECT_EQ(queue.Take(worker, &closure), Next::kRun);
  return closure;
}

const Status kLost(Code::kUnavailable, "worker 0 is lost");

TEST(ClosureQueueTest, ClosuresAreGivenInOrderAndEnd) {
  ClosureQueue queue(2, 2);
  EXPECT_TRUE(queue.idle());
  const ClosurePtr first = Add(queue), second = Add(queue);
  EXPECT_EQ(first->number, 1);
  EXPECT_EQ(second->number, 2);
  EXPECT_EQ(TakeOne(queue, 0), first);
  EXPECT_EQ(TakeOne(queue, 1), second);
  EXPECT_FALSE(queue.idle());
  EXPECT_EQ(first->result->status(), RemoteValueStatus::kNotReady);
  queue.Finish(0, first, Status(), {});
  EXPECT_EQ(first->result->status(), RemoteValueStatus::kReady);
  queue.Finish(1, second, Status(), {});
  queue.AwaitIdle();
  EXPECT_TRUE(queue.idle());
}

// The end of a closure may take the next one, if it is of a function that is prepared.
TEST(ClosureQueueTest, TheEndOfAClosureGivesTheNextOne) {
  ClosureQueue queue(1, 1);
  const ClosurePtr first = Add(queue), second = Add(queue), third = Add(queue);
  TakeOne(queue, 0);
  third->function = second->function;
  EXPECT_EQ(queue.Finish(0, first, Status(), {}, first->function.get()), nullptr) << "another function is next";
  EXPECT_EQ(TakeOne(queue, 0), second);
  EXPECT_EQ(queue.Finish(0, second, Status(), {}, second->function.get()), third);
  queue.Break(0, kLost);
  const ClosurePtr fourth = Add(queue);
  fourth->function = third->function;
  EXPECT_EQ(queue.Finish(0, third, Status(), {}, third->function.get()), nullptr) << "the worker is broken";
}

TEST(ClosureQueueTest, AWorkerGetsNoMoreClosuresThanItMayRun) {
  ClosureQueue queue(1, 2);
  for (int i = 0; i < 3; ++i) Add(queue);
  const ClosurePtr first = TakeOne(queue, 0);
  TakeOne(queue, 0);
  auto third = std::async(std::launch::async, [&] { return TakeOne(queue, 0); });
  queue.Finish(0, first, Status(), {});
  EXPECT_EQ(third.get()->number, 3);
}

TEST(ClosureQueueTest, AnErrorCancelsWhatIsQueuedAndIsThrownOnce) {
  ClosureQueue queue(1, 2);
  const ClosurePtr first = Add(queue), second = Add(queue), third = Add(queue);
  TakeOne(queue, 0);
  TakeOne(queue, 0);
  queue.Finish(0, first, Status(Code::kInvalidArgument, "the data are wrong"), {});
  EXPECT_EQ(third->result->status(), RemoteValueStatus::kAborted);
  EXPECT_THAT(MessageOf<CancelledError>([&] { third->result->Get(); }),
              AllOf(HasSubstr("cancelled"), HasSubstr("the data are wrong")));
  EXPECT_EQ(second->result->status(), RemoteValueStatus::kNotReady);  // it runs to its end
  auto join =
      std::async(std::launch::async, [&] { return MessageOf<InvalidArgumentError>([&] { queue.AwaitIdle(); }); });
  queue.Finish(0, second, Status(), {});
  EXPECT_THAT(join.get(),
              AllOf(HasSubstr("the data are wrong"), HasSubstr("closure 1 of function 'f'"), HasSubstr("1 closures")));
  EXPECT_THROW(first->result->Get(), InvalidArgumentError);
  EXPECT_NO_THROW(second->result->Get());
  queue.AwaitIdle();
  EXPECT_EQ(Add(queue)->number, 4);
}

TEST(ClosureQueueTest, AnErrorTellsTheWorkersToCancelWhatTheyRun) {
  ClosureQueue queue(3, 2);
  const ClosurePtr first = Add(queue), second = Add(queue);
  TakeOne(queue, 0);
  TakeOne(queue, 1);
  queue.Finish(0, first, Status(Code::kInvalidArgument, "the data are wrong"), {});
  ClosurePtr closure;
  EXPECT_EQ(queue.Take(1, &closure), Next::kCancel);
  EXPECT_THAT(std::string(queue.why_cancelled().message()), HasSubstr("the data are wrong"));
  auto join =
      std::async(std::launch::async, [&] { return MessageOf<InvalidArgumentError>([&] { queue.AwaitIdle(); }); });
  queue.Finish(1, second, queue.why_cancelled(), {});
  EXPECT_THAT(join.get(), AllOf(HasSubstr("closure 1 of"), HasSubstr("and 1 that ran")));
  EXPECT_EQ(second->result->status(), RemoteValueStatus::kAborted);
  // The error has been thrown, so nobody cancels the next closure.
  for (const size_t worker : {0, 1, 2}) {
    const ClosurePtr next = Add(queue);
    EXPECT_EQ(TakeOne(queue, worker), next);
  }
}

// The end of a closure has started the next one after the worker's thread had cancelled what ran.
TEST(ClosureQueueTest, AClosureThatWasStartedTooLateIsCancelledToo) {
  ClosureQueue queue(2, 1);
  const ClosurePtr first = Add(queue), failing = Add(queue), next = NewClosure();
  next->function = first->function;
  queue.Put(next);
  TakeOne(queue, 0);
  TakeOne(queue, 1);
  EXPECT_EQ(queue.Finish(0, first, Status(), {}, first->function.get()), next);
  queue.Finish(1, failing, Status(Code::kInvalidArgument, "the data are wrong"), {});
  ClosurePtr closure;
  EXPECT_EQ(queue.Take(0, &closure), Next::kCancel);
  queue.Started(0, next);
  EXPECT_EQ(queue.Take(0, &closure), Next::kCancel);
  queue.Finish(0, next, queue.why_cancelled(), {});
  queue.Started(0, next);  // it has ended, so there is nothing to cancel
  EXPECT_THROW(queue.AwaitIdle(), InvalidArgumentError);
  const ClosurePtr later = Add(queue);
  EXPECT_EQ(TakeOne(queue, 0), later);
  queue.Started(0, later);
  EXPECT_EQ(queue.Finish(0, later, Status(), {}), nullptr);
  const ClosurePtr last = Add(queue);
  EXPECT_EQ(TakeOne(queue, 0), last);
}

TEST(ClosureQueueTest, AReturnedClosureRunsOnAnotherWorkerFirst) {
  ClosureQueue queue(2, 2);
  const ClosurePtr first = Add(queue), second = Add(queue);
  Add(queue);
  TakeOne(queue, 0);
  TakeOne(queue, 0);
  queue.Return(0, second, kLost);
  queue.Return(0, first, Status(Code::kUnavailable, "again"));
  ClosurePtr closure;
  EXPECT_EQ(queue.Take(0, &closure), Next::kRecover);
  EXPECT_EQ(queue.why_broken(0).message(), kLost.message());
  EXPECT_EQ(TakeOne(queue, 1), first);
  EXPECT_EQ(TakeOne(queue, 1), second);
  queue.Repaired(0);
  EXPECT_EQ(TakeOne(queue, 0)->number, 3);
}

TEST(ClosureQueueTest, AClosureIsNotRunAgainAfterAnError) {
  ClosureQueue queue(2, 1);
  const ClosurePtr first = Add(queue), second = Add(queue);
  TakeOne(queue, 0);
  TakeOne(queue, 1);
  queue.Finish(0, first, Status(Code::kInternal, "bad"), {});
  queue.Return(1, second, kLost);
  EXPECT_EQ(second->result->status(), RemoteValueStatus::kAborted);
  EXPECT_THROW(queue.AwaitIdle(), InternalError);
  queue.AwaitIdle();
}

TEST(ClosureQueueTest, AFullQueueWaitsForRoom) {
  ClosureQueue queue(1, 1, /*limit=*/2);
  Add(queue);
  Add(queue);
  auto third = std::async(std::launch::async, [&] { return Add(queue); });
  EXPECT_EQ(TakeOne(queue, 0)->number, 1);
  EXPECT_EQ(third.get()->number, 3);
}

TEST(ClosureQueueTest, AFailureOfTheCoordinatorIsThrownAgainAndAgain) {
  ClosureQueue queue(1, 1);
  const ClosurePtr first = Add(queue);
  auto join = std::async(std::launch::async, [&] { return MessageOf<UnavailableError>([&] { queue.AwaitIdle(); }); });
  queue.Fail(Status(Code::kUnavailable, "ps 0 is gone"));
  EXPECT_THAT(join.get(), HasSubstr("ps 0 is gone"));
  EXPECT_EQ(first->result->status(), RemoteValueStatus::kAborted);
  EXPECT_THROW(Add(queue), UnavailableError);
  EXPECT_THROW(queue.AwaitIdle(), UnavailableError);
}

TEST(ClosureQueueTest, StopWakesEverybody) {
  ClosureQueue queue(1, 1);
  auto worker = std::async(std::launch::async, [&] {
    ClosurePtr closure;
    return queue.Take(0, &closure);
  });
  auto pause = std::async(std::launch::async, [&] { return queue.Pause(std::chrono::hours(1)); });
  queue.Stop();
  EXPECT_EQ(worker.get(), Next::kStop);
  EXPECT_FALSE(pause.get());
  EXPECT_THROW(Add(queue), FailedPreconditionError);
}

}  // namespace
}  // namespace cohort::distribute
