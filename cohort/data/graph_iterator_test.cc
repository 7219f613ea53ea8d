// Datasets inside of graphs: sessions of one process, sessions over two servers, the ends of steps that wait, and what
// is refused.
#include "cohort/data/graph_iterator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "cohort/backends/test/test_device.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/graph/iterator_resource.h"
#include "cohort/data/serialize.h"
#include "cohort/data/testing/drain.h"
#include "cohort/graph/graph_def.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/variables.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"
#include "tests/cluster/local_cluster.h"

namespace cohort::data {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LocalCluster;
using ::testing::StartsWith;

const bool kAllRegistered = RegisterAll();

// Numbers of which only every `step`-th one is kept. To find the next one takes many calls of a function.
Dataset EveryOneOf(int64_t step) {
  return Dataset::Range(int64_t{1} << 60).Filter([step](Graph& g, const std::vector<Output>& in) {
    return std::vector<Output>{ops::Equal(ops::FloorMod(in[0], ops::Const(g, step)), ops::Const(g, int64_t{0}))};
  });
}

// A dataset whose first element never comes.
Dataset Endless() {
  return Dataset::Range(int64_t{1} << 60).Filter([](Graph& g, const std::vector<Output>& in) {
    return std::vector<Output>{ops::Less(in[0], ops::Const(g, int64_t{0}))};
  });
}

int64_t Take(Session& session, const Output& next) { return session.Run(next).scalar<int64_t>(); }

class GraphIteratorTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(kAllRegistered); }
  Graph graph_;
};

TEST_F(GraphIteratorTest, GivesTheElementsInOrderAndThenTheEnd) {
  const Tensor x = Tensor::FromValues<float>({1, 2, 3, 4, 5, 6}, Shape{3, 2});
  const GraphIterator iterator =
      MakeGraphIterator(graph_, Dataset::FromTensorSlices({x, Tensor::Vector<int64_t>({7, 8, 9})}).Batch(2));
  const std::vector<Output> next = iterator.GetNext();
  ASSERT_EQ(next.size(), 2u);
  EXPECT_EQ(next[0].dtype(), DType::kFloat32);
  EXPECT_EQ(next[0].shape(), (Shape{-1, 2}));
  EXPECT_EQ(next[1].dtype(), DType::kInt64);
  EXPECT_EQ(next[1].shape(), (Shape{-1}));
  Session session(graph_);
  session.Run(iterator.initializer());
  auto batch = session.Run(next);
  EXPECT_EQ(batch[0].ToVector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(batch[1].ToVector<int64_t>(), (std::vector<int64_t>{7, 8}));
  batch = session.Run(next);
  EXPECT_EQ(batch[0].shape(), (Shape{1, 2}));
  EXPECT_EQ(batch[1].ToVector<int64_t>(), (std::vector<int64_t>{9}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(MessageOf<OutOfRangeError>([&] { session.Run(next); }),
                AllOf(HasSubstr("End of sequence"), HasSubstr("IteratorGetNext")));
  }
}

TEST_F(GraphIteratorTest, PadsBatches) {
  const Dataset vectors = Dataset::FromTensors({Tensor::Vector<int64_t>({1})})
                              .Concatenate(Dataset::FromTensors({Tensor::Vector<int64_t>({2, 3})}));
  const GraphIterator iterator = MakeGraphIterator(
      graph_, vectors.PaddedBatch(2, {.padding_values = {Tensor::Scalar(int64_t{-7})}, .drop_remainder = true}));
  const Output next = iterator.GetNext().at(0);
  EXPECT_EQ(next.shape(), (Shape{2, -1}));
  Session session(graph_);
  session.Run(iterator.initializer());
  EXPECT_THAT(session.Run(next).ToVector<int64_t>(), ElementsAre(1, -7, 2, 3));
  EXPECT_THROW(session.Run(next), OutOfRangeError);
}

TEST_F(GraphIteratorTest, LocalInitRunsTheInitializerAndStartsAgain) {
  const GraphIterator iterator = MakeGraphIterator(graph_, Dataset::Range(5, 9));
  const Output next = iterator.GetNext()[0];
  Node* init = ops::LocalVariablesInitializer(graph_);
  Node* global = ops::GlobalVariablesInitializer(graph_);
  Session session(graph_);
  session.Run(global);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { session.Run(next); }),
              AllOf(HasSubstr("'Iterator'"), HasSubstr("has not been initialized")));
  session.Run(init);
  EXPECT_EQ(Take(session, next), 5);
  EXPECT_EQ(Take(session, next), 6);
  session.Run(init);
  EXPECT_EQ(Take(session, next), 5);
}

TEST_F(GraphIteratorTest, OneCallOfGetNextIsOneElementOfAStep) {
  const GraphIterator iterator = MakeGraphIterator(graph_, Dataset::Range(100));
  const Output a = iterator.GetNext()[0], b = iterator.GetNext()[0];
  const Output twice = a + a, same = a - ops::Identity(a);
  Session session(graph_);
  session.Run(iterator.initializer());
  const auto values = session.Run({a, twice, same});
  EXPECT_EQ(values[0].scalar<int64_t>(), 0);
  EXPECT_EQ(values[1].scalar<int64_t>(), 0);
  const auto both = session.Run({a, b, twice, same});
  EXPECT_EQ(both[0].scalar<int64_t>() + both[1].scalar<int64_t>(), 1 + 2);
  EXPECT_EQ(both[2].scalar<int64_t>(), 2 * both[0].scalar<int64_t>());
  EXPECT_EQ(both[3].scalar<int64_t>(), 0);
  EXPECT_EQ(Take(session, b), 3);
}

TEST_F(GraphIteratorTest, StagesAndFunctionsOfGraphsGiveWhatTheHostGives) {
  const Dataset dataset = Dataset::Range(50)
                              .Shuffle(20, 7)
                              .Map(
                                  [](Graph& g, const std::vector<Output>& in) {
                                    return std::vector<Output>{in[0] * ops::Const(g, int64_t{3}), in[0]};
                                  },
                                  {.num_parallel_calls = 2})
                              .Repeat(2)
                              .Batch(8)
                              .Prefetch(2);
  const std::vector<Output> next = MakeGraphIterator(graph_, dataset).GetNext();
  Node* init = ops::LocalVariablesInitializer(graph_);
  Session session(graph_);
  session.Run(init);
  std::vector<std::vector<int64_t>> rows;
  EXPECT_THROW(
      {
        while (rows.size() < 1000) rows.push_back(Values(session.Run(next).values()));
      },
      OutOfRangeError);
  EXPECT_EQ(rows, Drain(dataset));
}

TEST_F(GraphIteratorTest, OptionalsTellTheEnd) {
  const GraphIterator iterator = MakeGraphIterator(graph_, Dataset::Range(1));
  const GraphOptional next = iterator.GetNextAsOptional();
  const Output has = next.HasValue(), value = next.GetValue()[0];
  EXPECT_EQ(value.dtype(), DType::kInt64);
  const GraphOptional made = OptionalFromValue({ops::Const(graph_, 2.5f), ops::Const(graph_, "a")});
  const Output made_has = made.HasValue(), made_value = made.GetValue()[1];
  const Output none_has = OptionalNone(graph_, iterator.element_spec()).HasValue();
  Session session(graph_);
  session.Run(iterator.initializer());
  const auto first = session.Run({has, value});
  EXPECT_TRUE(first[0].scalar<bool>());
  EXPECT_EQ(first[1].scalar<int64_t>(), 0);
  EXPECT_FALSE(session.Run(has).scalar<bool>());
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run(value); }),
              HasSubstr("expected an optional that has a value"));
  EXPECT_TRUE(session.Run(made_has).scalar<bool>());
  EXPECT_EQ(session.Run(made_value).scalar<std::string>(), "a");
  EXPECT_FALSE(session.Run(none_has).scalar<bool>());
}

TEST_F(GraphIteratorTest, StepsAtTheSameTimeGetEveryElementOnce) {
  constexpr int kElements = 400;
  const GraphIterator iterator = MakeGraphIterator(graph_, Dataset::Range(kElements));
  const Output next = iterator.GetNext()[0];
  Session session(graph_);
  session.Run(iterator.initializer());
  std::vector<std::vector<int64_t>> taken(4);
  std::vector<std::thread> threads;
  for (std::vector<int64_t>& mine : taken) {
    threads.emplace_back([&] {
      EXPECT_THROW(
          {
            while (true) mine.push_back(Take(session, next));
          },
          OutOfRangeError);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& mine : taken) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<int64_t> expected(kElements);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST_F(GraphIteratorTest, AStageThatFailsIsNamedAndTheNextStepGoesOn) {
  const Dataset dataset =
      Dataset::FromTensorSlices({Tensor::Vector<int32_t>({1, 0, 2})}).Map([](Graph& g, const std::vector<Output>& in) {
        return std::vector<Output>{ops::FloorDiv(ops::Const(g, 10), in[0])};
      });
  const GraphIterator iterator = MakeGraphIterator(graph_, dataset);
  const Output next = iterator.GetNext()[0];
  Session session(graph_);
  session.Run(iterator.initializer());
  EXPECT_EQ(session.Run(next).scalar<int32_t>(), 10);
  EXPECT_THAT(ErrorOf([&] { session.Run(next); }),
              AllOf(StartsWith("InvalidArgument"), HasSubstr("from stage Map(map_fn)"), HasSubstr("IteratorGetNext")));
  EXPECT_EQ(session.Run(next).scalar<int32_t>(), 5);
}

TEST_F(GraphIteratorTest, GivesTheElementOfANumber) {
  const Dataset dataset = Dataset::FromTensorSlices({Tensor::Vector<int32_t>({1, 2, 0, 5, 10})})
                              .Map([](Graph& g, const std::vector<Output>& in) {
                                return std::vector<Output>{ops::FloorDiv(ops::Const(g, 10), in[0])};
                              })
                              .Prefetch(2);
  const GraphIterator iterator = MakeGraphIterator(graph_, dataset);
  const Output index = ops::Placeholder(graph_, DType::kInt64, Shape(), "index");
  const Output at = iterator.GetAt(index)[0];
  Session session(graph_);
  session.Run(iterator.initializer());
  const auto element = [&](int64_t number) {
    return session.Run(FeedList{{index, Tensor::Scalar(number)}}, {at})[0].scalar<int32_t>();
  };
  EXPECT_EQ(element(1), 5);
  EXPECT_EQ(element(0), 10);  // it was passed over a moment ago
  EXPECT_EQ(element(0), 10);  // the iterator begins again
  EXPECT_EQ(element(3), 2);   // past the element that fails, which counts
  EXPECT_THAT(ErrorOf([&] { element(2); }), HasSubstr("from stage Map(map_fn)"));
  EXPECT_EQ(element(4), 1);
  EXPECT_THAT(ErrorOf([&] { element(5); }), AllOf(StartsWith("OutOfRange"), HasSubstr("End of sequence")));
  EXPECT_THAT(ErrorOf([&] { element(9); }), StartsWith("OutOfRange"));
  EXPECT_THAT(ErrorOf([&] { element(-1); }), AllOf(StartsWith("InvalidArgument"), HasSubstr("got -1")));
  EXPECT_EQ(element(4), 1);
}

// A request that is cancelled either has its element already, or leaves it to the next request.
TEST_F(GraphIteratorTest, ARequestThatIsCancelledLosesNoElement) {
  const Dataset dataset = EveryOneOf(20'000);
  IteratorResource iterator("numbers", dataset.element_spec());
  const auto opened = std::make_shared<std::promise<RunAnswer>>();
  iterator.Initialize(Serialize(dataset), nullptr, nullptr,
                      [opened](RunAnswer answer) { opened->set_value(std::move(answer)); });
  ASSERT_TRUE(opened->get_future().get().status.ok());
  std::vector<int64_t> got;
  for (int cancelled = 0; got.size() < 4 && cancelled < 100'000;) {
    CancellationManager step;
    const auto promise = std::make_shared<std::promise<RunAnswer>>();
    iterator.GetNext(&step, [promise](RunAnswer answer) { promise->set_value(std::move(answer)); });
    std::future<RunAnswer> future = promise->get_future();
    if (future.wait_for(milliseconds(1)) != std::future_status::ready) {
      step.Cancel(Status(Code::kDeadlineExceeded, "too late"));
    }
    const RunAnswer answer = future.get();
    if (answer.status.ok()) {
      got.push_back(answer.element.at(0).scalar<int64_t>());
    } else {
      EXPECT_EQ(answer.status.ToString(), "DeadlineExceeded: too late");
      ++cancelled;
    }
  }
  EXPECT_THAT(got, ElementsAre(0, 20'000, 40'000, 60'000));
}

TEST_F(GraphIteratorTest, ClosingTheSessionEndsAStepThatWaits) {
  const GraphIterator iterator = MakeGraphIterator(graph_, Endless());
  const Output next = iterator.GetNext()[0];
  auto session = std::make_unique<Session>(graph_);
  session->Run(iterator.initializer());
  std::promise<Status> ended, second;
  session->RunAsync({{}, {next}, {}, {}}, [&](const Status& status, const RunResults&) { ended.set_value(status); });
  session->RunAsync({{}, {next}, {}, {}}, [&](const Status& status, const RunResults&) { second.set_value(status); });
  std::future<Status> first = ended.get_future();
  EXPECT_EQ(first.wait_for(milliseconds(20)), std::future_status::timeout);
  session->Close();  // returns when both have ended
  EXPECT_EQ(first.get().code(), Code::kCancelled);
  EXPECT_EQ(second.get_future().get().code(), Code::kCancelled);
  session.reset();  // and the dataset's thread ends, though the next element never comes
}

TEST_F(GraphIteratorTest, AStepThatWaitsDoesNotKeepTheIteratorFromStartingAgain) {
  const GraphIterator endless = MakeGraphIterator(graph_, Endless(), {.name = "a", .shared_name = "shared"});
  const GraphIterator range = MakeGraphIterator(graph_, Dataset::Range(3), {.name = "b", .shared_name = "shared"});
  const Output next = endless.GetNext()[0];
  Session session(graph_);
  session.Run(endless.initializer());
  EXPECT_THROW(session.Run({}, {next}, {}, {.timeout = milliseconds(5)}), DeadlineExceededError);
  session.Run(range.initializer());
  EXPECT_EQ(Take(session, next), 0);
  EXPECT_EQ(Take(session, range.GetNext()[0]), 1);
}

TEST_F(GraphIteratorTest, FunctionsOfTheHostAreRefused) {
  EXPECT_THAT(MessageOf<FailedPreconditionError>(
                  [&] { MakeGraphIterator(graph_, Dataset::Range(3).Map(Times(2), kInt64Scalar), {.name = "train"}); }),
              AllOf(HasSubstr("'train'"), HasSubstr("Map"), HasSubstr("function of this process"),
                    HasSubstr("Range(0, 3, 1)"), HasSubstr("graph function")));
  EXPECT_EQ(graph_.num_nodes(), 0);
}

TEST_F(GraphIteratorTest, SourcesInMemoryOverOneGibAreRefused) {
  const Tensor large(DType::kUint8, Shape{kMaxGraphSourceBytes / 1024 + 1, 1024});  // its pages are never touched
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { MakeGraphIterator(graph_, Dataset::FromTensorSlices({large})); }),
              AllOf(HasSubstr(StrCat("at most ", kMaxGraphSourceBytes)), HasSubstr(StrCat(large.bytes())),
                    HasSubstr("TFRecordDataset")));
  EXPECT_EQ(graph_.num_nodes(), 0);
}

TEST_F(GraphIteratorTest, TheSumOfTheSourcesCountsAndEachTensorCountsOnce) {
  const Tensor a = Tensor::Zeros(DType::kUint8, Shape{600}), b = Tensor::Zeros(DType::kUint8, Shape{2, 300});
  const Dataset one = Dataset::FromTensors({a}), two = Dataset::FromTensors({b});
  EXPECT_EQ(Serialize(Dataset::Zip({one, one}), 1000).tensors.size(), 1u);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Serialize(Dataset::Zip({one, two}), 1000); }), HasSubstr("1200"));
}

TEST_F(GraphIteratorTest, ADatasetOfOtherElementsIsRefused) {
  const GraphIterator numbers = MakeGraphIterator(graph_, Dataset::Range(3), {.name = "numbers"});
  const GraphIterator floats =
      MakeGraphIterator(graph_, Dataset::FromTensors({Tensor::Scalar(1.0f)}), {.name = "floats"});
  Node* wrong = graph_.Op("MakeIterator").Input(floats.initializer()->input(0)).Input(numbers.handle()).Finish();
  const GraphIterator named = MakeGraphIterator(graph_, Dataset::Range(3), {.name = "n", .shared_name = "numbers"});
  const GraphIterator same_name = MakeGraphIterator(graph_, Dataset::FromTensors({Tensor::Scalar(1.0f)}),
                                                    {.name = "other", .shared_name = "numbers"});
  const GraphIterator read_as_float(numbers.handle(), nullptr, floats.element_spec());
  const Output next = numbers.GetNext()[0], as_float = read_as_float.GetNext()[0];
  Session session(graph_);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run(wrong); }),
              AllOf(HasSubstr("'numbers'"), HasSubstr("int64[]"), HasSubstr("float32[]"), HasSubstr("FromTensors")));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { session.Run(next); }), HasSubstr("its initializer has failed"));
  session.Run(numbers.initializer());
  EXPECT_EQ(Take(session, next), 0);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run(as_float); }),
              AllOf(HasSubstr("(float32[])"), HasSubstr("(int64[])")));
  session.Run(named.initializer());
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run(same_name.initializer()); }),
              AllOf(HasSubstr("'numbers'"), HasSubstr("shared_name")));
}

TEST_F(GraphIteratorTest, ASourceThatCannotBeOpenedFailsTheStepByName) {
  Node* bad = graph_.Op("DatasetFromDescription")
                  .Input(ops::Const(graph_, Tensor::Scalar(std::string("no dataset"))))
                  .Input(ops::Const(graph_, std::vector<int64_t>{}))
                  .Inputs({})
                  .Attr("Ttensors", std::vector<DType>{})
                  .Attr("output_types", std::vector<DType>{DType::kInt64})
                  .Attr("output_shapes", std::vector<Shape>{Shape()})
                  .Finish();
  const GraphIterator iterator = MakeGraphIterator(graph_, Dataset::Range(3));
  Node* init = graph_.Op("MakeIterator").Input(bad->output(0)).Input(iterator.handle()).Finish();
  Node* list_as_dataset = graph_.Op("MakeIterator")
                              .Input(OptionalNone(graph_, iterator.element_spec()).variant())
                              .Input(iterator.handle())
                              .Finish();
  Session session(graph_);
  EXPECT_THAT(ErrorOf([&] { session.Run(init); }), HasSubstr("MakeIterator"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run(list_as_dataset); }),
              HasSubstr("expected a dataset; got an optional without a value"));
  Node* without_tensor = graph_.Op("DatasetFromDescription")
                             .Input(ops::Const(graph_, Tensor::Scalar(std::string("no dataset"))))
                             .Input(ops::Const(graph_, std::vector<int64_t>{17}))
                             .Inputs({})
                             .Attr("Ttensors", std::vector<DType>{})
                             .Attr("output_types", std::vector<DType>{DType::kInt64})
                             .Attr("output_shapes", std::vector<Shape>{Shape()})
                             .Finish();
  Node* lacks_tensor = graph_.Op("MakeIterator").Input(without_tensor->output(0)).Input(iterator.handle()).Finish();
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { session.Run(lacks_tensor); }),
              HasSubstr("one hash for each of 0 tensors; got shapes [] and [1]"));
}

// A dataset that differs in its stages, seeds or tensors is fed to the nodes of the one before.
TEST_F(GraphIteratorTest, AFurtherInitializerAddsNodesOnlyForTensorsOfOtherDtypes) {
  const Dataset numbers = Dataset::FromTensorSlices({Tensor::Vector<int64_t>({1, 2, 3})});
  const GraphIterator iterator = MakeGraphIterator(graph_, numbers.element_spec());
  const Output next = iterator.GetNext()[0];
  const GraphIteratorInitializer first = iterator.MakeInitializer(numbers);
  const int nodes = graph_.num_nodes();
  const GraphIteratorInitializer second =
      iterator.MakeInitializer(Dataset::FromTensorSlices({Tensor::Vector<int64_t>({7})}).Repeat(2), first);
  EXPECT_EQ(graph_.num_nodes(), nodes);
  EXPECT_EQ(second.node, first.node);
  EXPECT_NE(second.description, first.description);
  const GraphIteratorInitializer without_tensor = iterator.MakeInitializer(Dataset::Range(3), first);
  EXPECT_NE(without_tensor.node, first.node);
  Session session(graph_);
  const auto sum = [&](const GraphIteratorInitializer& initializer) {
    session.Run(initializer.feeds, {}, {initializer.node});
    int64_t total = 0;
    try {
      for (;;) total += Take(session, next);
    } catch (const OutOfRangeError&) {
    }
    return total;
  };
  EXPECT_EQ(sum(first), 6);
  EXPECT_EQ(sum(second), 14);
  EXPECT_EQ(sum(without_tensor), 3);
  EXPECT_EQ(sum(first), 6);
}

TEST_F(GraphIteratorTest, AGraphDefKeepsTheIterator) {
  const GraphIterator iterator = MakeGraphIterator(
      graph_, Dataset::FromTensorSlices({Tensor::Vector<std::string>({"a", std::string("b\0c", 3)})}));
  const Output next = iterator.GetNext()[0];
  const Output number = MakeGraphIterator(graph_, Dataset::Range(3)).GetNext()[0];  // has no tensors
  const std::unique_ptr<Graph> copy = ParseGraphDef(SerializeGraphDef(graph_));
  EXPECT_EQ(copy->FindOutput(number.name()).dtype(), DType::kInt64);
  Session session(*copy);
  session.Run(copy->FindNode(iterator.initializer()->name()));
  const Output copied = copy->FindOutput(next.name());
  EXPECT_EQ(copied.shape(), Shape());
  EXPECT_EQ(session.Run(copied).scalar<std::string>(), "a");
  EXPECT_EQ(session.Run(copied).scalar<std::string>(), std::string("b\0c", 3));
}

// The elements lie in host memory, and the plan copies them to where they are used.
TEST_F(GraphIteratorTest, FeedsADeviceThatHasAMemoryOfItsOwn) {
  RegisterTestBackend();
  const DeviceScope device(graph_, "/device:TEST:0");
  const Tensor rows = Tensor::FromValues<float>({1, 2, 3, 4, 5, 6}, Shape{3, 2});
  const GraphIterator iterator = MakeGraphIterator(graph_, Dataset::FromTensorSlices({rows}).Batch(2));
  const Output doubled = iterator.GetNext()[0] * 2.0f;
  const GraphOptional next = iterator.GetNextAsOptional();
  const Output halved = next.GetValue()[0] * 0.5f, has = next.HasValue();
  SessionConfig config;
  config.device_count["TEST"] = 1;
  Session session(graph_, "", config);
  session.Run(iterator.initializer());
  EXPECT_EQ(session.Run(doubled).ToVector<float>(), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(session.Run(halved).ToVector<float>(), (std::vector<float>{2.5, 3}));
  EXPECT_FALSE(session.Run(has).scalar<bool>());
  EXPECT_THROW(session.Run(doubled), OutOfRangeError);
}

class GraphIteratorClusterTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(kAllRegistered); }
  // Makes an iterator on the worker.
  GraphIterator OnWorker(const Dataset& dataset, const std::string& shared_name = "") {
    const DeviceScope worker(graph_, "/job:worker/task:0");
    return MakeGraphIterator(graph_, dataset, {.shared_name = shared_name});
  }
  Graph graph_;
};

TEST_F(GraphIteratorClusterTest, TheDatasetRunsOnTheTaskOfTheIterator) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  const Tensor x = Tensor::FromValues<float>({1, 2, 3, 4, 5, 6}, Shape{3, 2});
  const GraphIterator iterator = OnWorker(Dataset::FromTensorSlices({x}).Map(
      [](Graph&, const std::vector<Output>& in) { return std::vector<Output>{in[0] * 2.0f}; }));
  EXPECT_EQ(iterator.initializer()->input(0).node->input(0).node->device(), "/job:worker/task:0");
  const Output next = iterator.GetNext()[0];
  Output sum;
  {
    const DeviceScope ps(graph_, "/job:ps/task:0");
    sum = ops::Sum(next);
  }
  Node* init = ops::LocalVariablesInitializer(graph_);
  Session session(graph_, cluster.target("ps", 0));
  session.Run(init);
  EXPECT_EQ(session.Run(sum).scalar<float>(), 2.0f * 3);
  EXPECT_EQ(session.Run(sum).scalar<float>(), 2.0f * 7);
  {  // Another session has an iterator of its own.
    Session other(graph_, cluster.target("worker", 0));
    EXPECT_THROW(other.Run(sum), FailedPreconditionError);
    other.Run(init);
    EXPECT_EQ(other.Run(sum).scalar<float>(), 2.0f * 3);
  }
  EXPECT_EQ(session.Run(sum).scalar<float>(), 2.0f * 11);
  EXPECT_THAT(MessageOf<OutOfRangeError>([&] { session.Run(sum); }),
              AllOf(HasSubstr("End of sequence"), HasSubstr("/job:worker/replica:0/task:0")));
}

TEST_F(GraphIteratorClusterTest, SessionsShareAnIteratorByItsName) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  const GraphIterator iterator = OnWorker(Dataset::Range(9), "shared");
  const Output next = iterator.GetNext()[0];
  auto first = std::make_unique<Session>(graph_, cluster.target("ps", 0));
  Session second(graph_, cluster.target("worker", 0));
  first->Run(iterator.initializer());
  EXPECT_EQ(Take(*first, next), 0);
  EXPECT_EQ(Take(second, next), 1);
  EXPECT_EQ(Take(*first, next), 2);
  first.reset();
  EXPECT_EQ(Take(second, next), 3);
}

TEST_F(GraphIteratorClusterTest, ClosedSessionsAndLostTasksEndAStepThatWaits) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}});
  const GraphIterator iterator = OnWorker(Endless());
  const Output next = iterator.GetNext()[0];
  Session session(graph_, cluster.target("ps", 0));
  session.Run(iterator.initializer());
  {
    Session closed(graph_, cluster.target("ps", 0));
    closed.Run(iterator.initializer());
    std::promise<Status> ended;
    closed.RunAsync({{}, {next}, {}, {}}, [&](const Status& status, const RunResults&) { ended.set_value(status); });
    closed.Close();
    EXPECT_EQ(ended.get_future().get().code(), Code::kCancelled);
  }
  std::promise<Status> ended;
  session.RunAsync({{}, {next}, {}, {}}, [&](const Status& status, const RunResults&) { ended.set_value(status); });
  cluster.Stop("worker", 0);  // returns although the dataset never gives an element
  const Status lost = ended.get_future().get();
  session.Close();  // the callback has returned
  EXPECT_THAT(lost.ToString(),
              AllOf(AnyOf(StartsWith("Unavailable"), StartsWith("Aborted")), HasSubstr("/job:worker")));
}

}  // namespace
}  // namespace cohort::data
