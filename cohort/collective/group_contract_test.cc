// What a communicator promises, over each transport, for many numbers of members, each algorithm and engine, dtype,
// operation and size, in place and not. All sizes of a test run in one group: large and small ones mix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "cohort/collective/testing/group_harness.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using testing::Await;
using testing::Begin;
using ::testing::HasSubstr;
using testing::Layout;
using testing::Outcome;
using testing::TestCluster;
using testing::TestGroup;

constexpr int64_t kOdd = 37;
constexpr int64_t kLarge = 100'003;  // several messages a part, and work for the group's own threads

constexpr size_t kPeriod = 5;

// Element i that rank r brings: small whole numbers, so that every sum is exact in float32. They repeat after kPeriod.
double Element(int rank, int64_t i) {
  return static_cast<double>((i % static_cast<int64_t>(kPeriod) + 3 * rank) % 7 + 1);
}

double Reduced(ReduceOp op, int world, int64_t i) {
  double result = Element(0, i);
  for (int rank = 1; rank < world; ++rank) {
    const double next = Element(rank, i);
    if (op == ReduceOp::kProduct) result *= next;
    if (op == ReduceOp::kSum || op == ReduceOp::kMean) result += next;
    if (op == ReduceOp::kMin) result = std::min(result, next);
    if (op == ReduceOp::kMax) result = std::max(result, next);
  }
  return result;
}

template <typename T>
T As(double exact, ReduceOp op, int world) {
  if constexpr (std::is_integral_v<T>) {
    const auto whole = static_cast<T>(static_cast<int64_t>(exact));  // wraps around
    return op == ReduceOp::kMean ? static_cast<T>(whole / world) : whole;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return bfloat16(op == ReduceOp::kMean ? static_cast<float>(exact) / static_cast<float>(world)
                                          : static_cast<float>(exact));
  } else {
    return static_cast<T>(op == ReduceOp::kMean ? static_cast<T>(exact) / static_cast<T>(world)
                                                : static_cast<T>(exact));
  }
}

// The same as a value of its dtype: of bool whether it is odd.
template <typename T>
T ElementAs(int rank, int64_t i) {
  if constexpr (std::is_same_v<T, bool>) return std::fmod(Element(rank, i), 2) == 1;
  if constexpr (!std::is_same_v<T, bool>) return static_cast<T>(static_cast<float>(Element(rank, i)));
}

// Returns the tensor that has value(i) at each i. Requires: `value` repeats after kPeriod, as Element does. Otherwise
// most of the time of these tests would go into what they expect.
template <typename T, typename Value>
Tensor Repeated(const Shape& shape, const Value& value) {
  std::array<T, kPeriod> period;
  for (size_t i = 0; i < kPeriod; ++i) period[i] = value(static_cast<int64_t>(i));
  Tensor result(kDTypeOf<T>, shape);
  const auto count = static_cast<size_t>(result.num_elements());
  T* elements = result.data<T>();
  for (size_t i = 0; i < count; ++i) elements[i] = period[i % kPeriod];
  return result;
}

template <typename T>
Tensor InputOf(int rank, const Shape& shape) {
  return Repeated<T>(shape, [&](int64_t i) { return ElementAs<T>(rank, i); });
}

// Returns the reduction of the inputs of all members, from element `first` on.
template <typename T>
Tensor ReducedInputs(ReduceOp op, int world, const Shape& shape, int64_t first = 0) {
  return Repeated<T>(shape, [&](int64_t i) { return As<T>(Reduced(op, world, first + i), op, world); });
}

// Expects `expected`, bit for bit, and names the first element that differs.
template <typename T>
void ExpectElements(const Outcome& outcome, const Tensor& expected, const std::string& what) {
  ASSERT_TRUE(outcome.status.ok()) << what << ": " << outcome.status.ToString();
  ASSERT_EQ(outcome.value.dtype(), expected.dtype()) << what;
  ASSERT_EQ(outcome.value.shape(), expected.shape()) << what;
  const auto bits = [](const Tensor& tensor) {
    return std::string_view(static_cast<const char*>(tensor.raw_data()), tensor.bytes());
  };
  if (bits(outcome.value) == bits(expected)) return;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    ASSERT_EQ(outcome.value.data<T>()[i], expected.data<T>()[i]) << what << " element " << i;
  }
  ADD_FAILURE() << what << ": equal numbers, but other bits";
}

// check(T()) for every dtype that can be computed on.
template <typename Check>
void ForNumbers(const Check& check) {
  check(float());
  check(bfloat16());
  check(int32_t());
  check(double());
  check(int64_t());
  check(uint8_t());
}

std::string NameOf(const ::testing::TestParamInfo<Layout>& info) { return StrCat(info.param); }

class GroupContract : public ::testing::TestWithParam<Layout> {
 protected:
  using Call = std::function<void(Communicator&, Tensor, Communicator::Done)>;

  int world() const { return GetParam().world; }
  CollectiveId Next(const char* name) { return {++instance_, name}; }

  // Runs `check` with a group (group()) of each of `algorithms`.
  void ForEach(const std::vector<Algorithm>& algorithms, const std::function<void(Algorithm)>& check) {
    ASSERT_FALSE(algorithms.empty());
    for (const Algorithm algorithm : algorithms) {
      SCOPED_TRACE(AlgorithmName(algorithm));
      GroupOptions options;
      options.key = ++key_;
      options.algorithm = algorithm;
      options.segment_bytes = 32 * 1024;
      group_.emplace(cluster_, options);
      ASSERT_TRUE(group_->joined());
      check(algorithm);
      group_.reset();
      if (HasFatalFailure()) return;
    }
  }
  // For all-reduce.
  void ForEachAlgorithm(const std::function<void(Algorithm)>& check) {
    const bool alone = GetParam().device_type != kHostDeviceType && GetParam().transport != "local";
    ForEach(alone ? std::vector<Algorithm>{Algorithm::kAuto} : testing::AskableAlgorithms(), check);
  }
  // For other collectives, which have one implementation in each engine.
  void ForEachEngine(const std::function<void(Algorithm)>& check) {
    ForEach(testing::OneAlgorithmPerEngine(GetParam()), check);
  }
  TestGroup& group() { return *group_; }

  template <typename T>
  void CheckAllReduce(ReduceOp op, int64_t count, bool in_place) {
    const std::string what = StrCat(ReduceOpName(op), " of ", count, " ", kDTypeOf<T>, in_place ? " in place" : "");
    const CollectiveId id = Next("reduce");
    std::vector<Tensor> kept;
    const auto outcomes = group().Run([&](Communicator& member, Communicator::Done done) {
      Tensor input = InputOf<T>(member.rank(), Shape{count});
      if (!in_place) kept.push_back(input);
      member.AllReduceAsync(id, std::move(input), op, std::move(done));
    });
    const Tensor expected = ReducedInputs<T>(op, world(), Shape{count});
    for (int rank = 0; rank < world(); ++rank) {
      ExpectElements<T>(outcomes[static_cast<size_t>(rank)], expected, what);
      if (HasFatalFailure()) return;
      if (in_place) continue;
      ExpectElements<T>({Status(), kept[static_cast<size_t>(rank)]}, InputOf<T>(rank, Shape{count}),
                        "the input of " + what);
    }
  }

  template <typename T>
  void CheckAllReduces() {
    for (const int64_t count : {int64_t{0}, int64_t{1}, kOdd, kLarge}) {
      for (const bool in_place : {false, true}) {
        for (const ReduceOp op :
             {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kMean}) {
          if (count == kLarge && op != ReduceOp::kSum && op != ReduceOp::kMean) continue;
          CheckAllReduce<T>(op, count, in_place);
          if (HasFatalFailure()) return;
        }
      }
    }
  }

  // All members bring their elements, and keep them unless `in_place`.
  template <typename T>
  std::vector<Outcome> Bring(const Shape& shape, bool in_place, const Call& call) {
    std::vector<Tensor> kept;
    std::vector<Outcome> outcomes = group().Run([&](Communicator& member, Communicator::Done done) {
      Tensor input = InputOf<T>(member.rank(), shape);
      if (!in_place) kept.push_back(input);
      call(member, std::move(input), std::move(done));
    });
    for (size_t rank = 0; rank < kept.size(); ++rank) {
      ExpectElements<T>({Status(), kept[rank]}, InputOf<T>(static_cast<int>(rank), shape),
                        StrCat("the input of rank ", rank));
    }
    return outcomes;
  }

  template <typename T>
  void CheckBroadcast(int root, int64_t rows) {
    const Shape shape{rows, 2};
    const Tensor expected = InputOf<T>(root, shape);
    for (const bool in_place : {false, true}) {
      const CollectiveId id = Next("initial value");
      for (const Outcome& outcome :
           Bring<T>(shape, in_place, [&](Communicator&member, Tensor value, Communicator::Done done) {
             member.BroadcastAsync(id, std::move(value), root, std::move(done));
           })) {
        ExpectElements<T>(outcome, expected,
                          StrCat(kDTypeOf<T>, shape, " of root ", root, in_place ? " in place" : ""));
      }
    }
  }

  template <typename T>
  void CheckAllGather(const Shape& shape) {
    Shape gathered = shape.rank() == 0 ? Shape{1} : shape;
    gathered.set_dim(0, gathered.dim(0) * world());
    const int64_t each = std::max<int64_t>(1, shape.num_elements());
    Tensor expected(kDTypeOf<T>, gathered);
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      expected.data<T>()[i] = ElementAs<T>(static_cast<int>(i / each), i % each);
    }
    for (const bool in_place : {false, true}) {
      const CollectiveId id = Next("gather");
      for (const Outcome& outcome :
           Bring<T>(shape, in_place, [&](Communicator&member, Tensor input, Communicator::Done done) {
             member.AllGatherAsync(id, std::move(input), std::move(done));
           })) {
        ExpectElements<T>(outcome, expected, StrCat(kDTypeOf<T>, shape, in_place ? " in place" : ""));
      }
    }
  }

  template <typename T>
  void CheckReduceScatter(ReduceOp op, int64_t rows) {
    for (const bool in_place : {false, true}) {
      const CollectiveId id = Next("scatter");
      const auto outcomes = Bring<T>(Shape{rows * world(), 3}, in_place,
                                     [&](Communicator& member, Tensor input, Communicator::Done done) {
                                       member.ReduceScatterAsync(id, std::move(input), op, std::move(done));
                                     });
      for (int rank = 0; rank < world(); ++rank) {
        ExpectElements<T>(outcomes[static_cast<size_t>(rank)],
                          ReducedInputs<T>(op, world(), Shape{rows, 3}, /*first=*/rank * rows * 3),
                          StrCat(ReduceOpName(op), " of ", rows, " rows of ", kDTypeOf<T>, " at rank ", rank,
                                 in_place ? " in place" : ""));
      }
    }
  }

  // All members bring `input`, which none may, and get to know it.
  void ExpectRefusal(const char* what, const Tensor& input, const char* expected, const Call& call) {
    const Shape shape = input.shape();
    for (const Outcome& outcome :
         group().Run([&](Communicator&member, Communicator::Done done) { call(member, input, std::move(done)); })) {
      EXPECT_EQ(outcome.status.code(), Code::kInvalidArgument) << what << ": " << outcome.status.ToString();
      EXPECT_THAT(outcome.status.message(),
                  AllOf(HasSubstr(StrCat("'", what, "'")), HasSubstr(StrCat("expected ", expected, " in host memory")),
                        HasSubstr(StrCat(input.dtype(), shape))));
      EXPECT_FALSE(outcome.value.defined());
    }
  }

 private:
  TestCluster cluster_{GetParam()};
  std::optional<TestGroup> group_;
  int64_t key_ = 0;
  int64_t instance_ = 0;
};

TEST_P(GroupContract, AllReduce) {
  ForEachAlgorithm([&](Algorithm) { ForNumbers([&](auto element) { CheckAllReduces<decltype(element)>(); }); });
}

TEST_P(GroupContract, Broadcast) {
  ForEachEngine([&](Algorithm) {
    for (int root = 0; root < world(); ++root) {
      for (const int64_t rows : {int64_t{0}, int64_t{1}, kOdd}) CheckBroadcast<float>(root, rows);
    }
    for (const int root : {0, world() - 1}) CheckBroadcast<float>(root, kLarge);
    const auto check = [&](auto element) {
      for (const int64_t rows : {int64_t{0}, int64_t{1}, kOdd}) CheckBroadcast<decltype(element)>(world() / 2, rows);
    };
    ForNumbers(check);
    check(bool());
  });
}

TEST_P(GroupContract, AllGather) {
  ForEachEngine([&](Algorithm) {
    const auto check = [&](auto element) {
      for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{kOdd}, Shape{3, 5}}) {
        CheckAllGather<decltype(element)>(shape);
      }
    };
    ForNumbers(check);
    check(bool());
    CheckAllGather<int64_t>(Shape{kLarge});
  });
}

TEST_P(GroupContract, ReduceScatter) {
  ForEachEngine([&](Algorithm) {
    ForNumbers([&](auto element) {
      using T = decltype(element);
      for (const int64_t rows : {int64_t{0}, int64_t{1}}) CheckReduceScatter<T>(ReduceOp::kSum, rows);
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kMean}) {
        CheckReduceScatter<T>(op, kOdd);
      }
    });
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) CheckReduceScatter<bfloat16>(op, 20'001);
  });
}

// What cannot be sent or computed on is refused by name, and the group goes on.
TEST_P(GroupContract, OtherDTypesAreRefused) {
  ForEachEngine([&](Algorithm) {
    constexpr auto kSum = ReduceOp::kSum;
    const Call reduce = [](Communicator& member, Tensor input, Communicator::Done done) {
      member.AllReduceAsync({1, "reduce"}, std::move(input), kSum, std::move(done));
    };
    const Call scatter = [](Communicator& member, Tensor input, Communicator::Done done) {
      member.ReduceScatterAsync({2, "scatter"}, std::move(input), kSum, std::move(done));
    };
    const Call gather = [](Communicator& member, Tensor input, Communicator::Done done) {
      member.AllGatherAsync({3, "gather"}, std::move(input), std::move(done));
    };
    const Call broadcast = [](Communicator& member, Tensor input, Communicator::Done done) {
      member.BroadcastAsync({4, "broadcast"}, std::move(input), 0, std::move(done));
    };
    for (const int64_t rows : {int64_t{0}, int64_t{world()}}) {
      const Tensor texts(DType::kString, Shape{rows});
      for (const Tensor& tensor : {texts, Tensor::Zeros(DType::kBool, Shape{rows})}) {
        ExpectRefusal("reduce", tensor, "numbers", reduce);
        ExpectRefusal("scatter", tensor, "numbers", scatter);
      }
      ExpectRefusal("gather", texts, "numbers or truth values", gather);
      ExpectRefusal("broadcast", texts, "numbers or truth values", broadcast);
    }
    for (const Call& call : {reduce, scatter, gather, broadcast}) {
      for (const Outcome& outcome : Bring<float>(Shape{world()}, false, call)) EXPECT_TRUE(outcome.status.ok());
    }
  });
}

TEST_P(GroupContract, NobodyPassesABarrierBeforeAllHaveCome) {
  ForEachEngine([&](Algorithm) {
    for (int round = 0; round < 20; ++round) {
      const CollectiveId id = {1, "barrier"};
      std::vector<std::future<Outcome>> early;
      const int last = round % world();
      for (const auto& member : group().members()) {
        if (member->rank() == last) continue;
        early.push_back(Begin([&](Communicator::Done done) { member->BarrierAsync(id, std::move(done)); }));
      }
      for (auto& future : early) EXPECT_EQ(future.wait_for(std::chrono::milliseconds(1)), std::future_status::timeout);
      auto late = Begin([&](Communicator::Done done) {
        group().members()[static_cast<size_t>(last)]->BarrierAsync(id, std::move(done));
      });
      EXPECT_TRUE(Await(late).status.ok());
      for (auto& future : early) EXPECT_TRUE(Await(future).status.ok());
    }
  });
}

// Members start the same collectives in different orders, several at a time, large and small.
TEST_P(GroupContract, CallsOverlapInAnyOrder) {
  ForEachAlgorithm([&](Algorithm) {
    const std::vector<int64_t> counts = {50'000, 7, 3000, 1, 120'000, 0, 900, 64};
    for (int round = 0; round < 2; ++round) {
      std::vector<std::vector<std::future<Outcome>>> futures(static_cast<size_t>(world()));
      for (const auto& member : group().members()) {
        auto& own = futures[static_cast<size_t>(member->rank())];
        own.resize(counts.size());
        for (size_t step = 0; step < counts.size(); ++step) {
          const size_t at = (step * 3 + static_cast<size_t>(member->rank())) % counts.size();
          const CollectiveId id = {static_cast<int64_t>(at), "mixed"};
          own[at] = Begin([&](Communicator::Done done) {
            member->AllReduceAsync(id, InputOf<float>(member->rank(), Shape{counts[at]}), ReduceOp::kSum,
                                   std::move(done));
          });
        }
      }
      for (auto& own : futures) {
        for (size_t at = 0; at < counts.size(); ++at) {
          ExpectElements<float>(Await(own[at]), ReducedInputs<float>(ReduceOp::kSum, world(), Shape{counts[at]}),
                                StrCat("count ", counts[at]));
        }
      }
    }
  });
}

TEST_P(GroupContract, EveryMemberHasTheSameBits) {
  ForEachAlgorithm([&](Algorithm) {
    for (const int64_t count : {int64_t{50}, int64_t{30'000}}) {
      const CollectiveId id = Next("noise");
      const auto outcomes = group().Run([&](Communicator& member, Communicator::Done done) {
        Tensor input(DType::kFloat32, Shape{count});
        for (int64_t i = 0; i < count; ++i)
          input.data<float>()[i] = std::sin(static_cast<float>(i * 7 + member.rank() * 1000));
        member.AllReduceAsync(id, std::move(input), ReduceOp::kSum, std::move(done));
      });
      for (const Outcome& outcome : outcomes) {
        ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
        EXPECT_EQ(outcome.value.ToVector<float>(), outcomes[0].value.ToVector<float>());
      }
    }
  });
}

TEST_P(GroupContract, ATensorThatNobodyElseHoldsIsReducedInItsPlace) {
  ForEachAlgorithm([&](Algorithm algorithm) {
    // Each of its rounds writes to memory of its own. The results of devices are copies of what lies in their memory.
    if (algorithm == Algorithm::kDoubling || GetParam().device_type != kHostDeviceType) return;
    std::vector<const void*> places;
    const auto outcomes = group().Run([&](Communicator& member, Communicator::Done done) {
      Tensor input = InputOf<float>(member.rank(), Shape{kLarge});
      places.push_back(input.raw_data());
      member.AllReduceAsync({1, "in place"}, std::move(input), ReduceOp::kSum, std::move(done));
    });
    // If nothing is sent, all members get one result.
    const bool shared = GetParam().transport == "local" && !HasPlan(algorithm);
    for (size_t i = 0; i < outcomes.size(); ++i) EXPECT_EQ(outcomes[i].value.raw_data(), places[shared ? 0 : i]);
  });
}

// Every member plans from the hosts that all have named in their joins.
TEST(GroupHosts, LargeTensorsGoByTheHierarchyWhereSeveralHostsHaveSeveralProcesses) {
  const auto algorithm_of = [](const Layout& layout, int64_t count) {
    TestCluster cluster(layout);
    TestGroup group(cluster, {});
    EXPECT_TRUE(group.joined());
    std::vector<std::string> said;
    for (const Outcome& outcome : group.Run([&](Communicator&member, Communicator::Done done) {
           const int64_t own = member.rank() == 3 ? count + 1 : count;
           member.AllReduceAsync({1, "w"}, InputOf<float>(member.rank(), Shape{own}), ReduceOp::kSum, std::move(done));
         })) {
      said.push_back(outcome.status.message());
    }
    return said;
  };
  Layout layout = {"in_process", 4, 1};
  for (const std::string& why : algorithm_of(layout, kLarge)) EXPECT_THAT(why, HasSubstr("by HALVING_DOUBLING"));
  layout.per_host = 2;
  for (const std::string& why : algorithm_of(layout, kLarge)) EXPECT_THAT(why, HasSubstr("by HIERARCHICAL"));
  for (const std::string& why : algorithm_of(layout, kOdd)) EXPECT_THAT(why, HasSubstr("by DOUBLING"));
  layout.per_host = 1;
  for (const std::string& why : algorithm_of(layout, kLarge)) EXPECT_THAT(why, HasSubstr("by HALVING_DOUBLING"));
  // In a single process nothing is sent.
  for (const std::string& why : algorithm_of({"local", 4}, kLarge)) EXPECT_THAT(why, HasSubstr("by SHARED"));
}

std::vector<Layout> Layouts() {
  std::vector<Layout> layouts;
  for (const char* transport : {"local", "in_process", "grpc"}) {
    for (const int world : {1, 2, 3, 4, 7}) layouts.push_back({transport, world, 1});
  }
  for (const int world : {4, 7}) layouts.push_back({"grpc", world, 2});
  layouts.push_back({"in_process", 7, 3});
  // Hosts: 2 by 2 by 2; 2 by 2 by 1, where the hierarchy is chosen for the hosts' sake; 3 and 1 processes of 2 and 1.
  for (const char* transport : {"in_process", "grpc"}) layouts.push_back({transport, 8, 2, Algorithm::kAuto, 2});
  layouts.push_back({"grpc", 4, 1, Algorithm::kAuto, 2});
  layouts.push_back({"in_process", 7, 2, Algorithm::kAuto, 3});
  // GPUs on two cards, by turns.
  for (const int world : {1, 2, 3, 5}) layouts.push_back({"local", world, 1, Algorithm::kAuto, 0, "GPU"});
  // NCCL, between hosts with one or two cards each. On one host, processes share the first card, so that plans serve
  // them.
  // The hosts are not real, so NCCL would refuse the cards of this machine.
  if (!cuda::TestsRunOnCard()) {
    for (const char* transport : {"in_process", "grpc"})
      layouts.push_back({transport, 3, 1, Algorithm::kAuto, 1, "GPU"});
    layouts.push_back({"in_process", 4, 2, Algorithm::kAuto, 1, "GPU"});
  }
  layouts.push_back({"in_process", 2, 1, Algorithm::kAuto, 0, "GPU"});
  return layouts;
}

INSTANTIATE_TEST_SUITE_P(All, GroupContract, ::testing::ValuesIn(Layouts()), NameOf);

}  // namespace
}  // namespace cohort::collective
