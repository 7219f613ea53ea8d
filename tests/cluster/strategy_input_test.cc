// What each worker of a MultiWorkerMirrored training gets to see of a dataset, by each of TensorFlow's policies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "cohort/data/readers/readers.h"
#include "cohort/distribute/input.h"
#include "cohort/keras/keras.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "tests/cluster/strategy_cluster.h"

namespace cohort {
namespace {

using data::AutoShardPolicy;
using data::Dataset;
using distribute::DistributeDataset;
using distribute::DistributeDatasetsFromFunction;
using distribute::DistributedDataset;
using distribute::StrategyPtr;
using testing::ExpectOk;
using ::testing::HasSubstr;

using Numbers = std::vector<int64_t>;
using Steps = std::vector<std::vector<Numbers>>;  // of each replica of a worker

Numbers Iota(int64_t begin, int64_t end) {
  Numbers numbers(static_cast<size_t>(end - begin));
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

Steps All(const DistributedDataset& dataset) {
  Steps steps;
  const auto iterator = dataset.MakeIterator();
  for (distribute::PerReplica<std::vector<Tensor>> values; iterator->Next(&values);) {
    steps.emplace_back();
    for (const std::vector<Tensor>& element : values) steps.back().push_back(element.at(0).ToVector<int64_t>());
  }
  return steps;
}

Numbers Flat(const Steps& steps) {
  Numbers all;
  for (const auto& step : steps) {
    for (const Numbers& part : step) all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// `seen`, cut to the sizes in turn.
Steps InSizes(const Numbers& seen, const Numbers& sizes, int replicas, size_t num_steps) {
  Steps steps(num_steps);
  size_t at = 0, turn = 0;
  for (auto& step : steps) {
    for (int r = 0; r < replicas; ++r) {
      const size_t end = std::min(seen.size(), at + static_cast<size_t>(sizes[turn++ % sizes.size()]));
      step.emplace_back(seen.begin() + static_cast<std::ptrdiff_t>(at),
                        seen.begin() + static_cast<std::ptrdiff_t>(end));
      at = end;
    }
  }
  return steps;
}

class StrategyInput : public testing::MultiWorker {
 protected:
  static constexpr int64_t kBatch = 7;  // global

  StrategyInput() {
    std::filesystem::create_directories(folder_);
    for (int f = 0; f < 2 * workers() + 1; ++f) {
      files_.push_back(StrCat(folder_, "/", f, ".csv"));
      std::ofstream out(files_.back());
      of_files_.push_back(Iota(numbers_, numbers_ + 2 + 3 * f));
      for (const int64_t number : of_files_.back()) out << number << "\n";
      numbers_ += static_cast<int64_t>(of_files_.back().size());
    }
  }
  ~StrategyInput() override { std::filesystem::remove_all(folder_); }

  int workers() const { return cluster_.workers(); }
  static int replicas() { return GetParam().replicas; }
  static int all_replicas() { return GetParam().workers * GetParam().replicas; }

  // All numbers, of the files or not.
  Dataset FromFiles() const { return data::CsvDataset(files_, {{.dtype = DType::kInt64}}); }
  Dataset FromRange() const { return Dataset::Range(numbers_); }
  Numbers OfFiles(int worker) const {
    Numbers numbers;
    for (size_t f = static_cast<size_t>(worker); f < files_.size(); f += static_cast<size_t>(workers())) {
      numbers.insert(numbers.end(), of_files_[f].begin(), of_files_[f].end());
    }
    return numbers;
  }
  Numbers OfHint(int worker) const {
    Numbers numbers;
    for (int64_t i = worker; i < numbers_; i += workers()) numbers.push_back(i);
    return numbers;
  }
  // Each global batch is cut into equal parts, of which worker w has number w, w + workers, ...
  Steps OfData(int worker) const {
    Steps steps;
    for (int64_t begin = 0; begin < numbers_; begin += kBatch) {
      const int64_t end = std::min(numbers_, begin + kBatch);
      const int64_t each = (end - begin + all_replicas() - 1) / all_replicas();
      steps.emplace_back();
      for (int part = worker; part < all_replicas(); part += workers()) {
        steps.back().push_back(Iota(std::min(end, begin + part * each), std::min(end, begin + (part + 1) * each)));
      }
    }
    return steps;
  }
  // The sizes of worker w's batches: those of all replicas of all workers, beginning with its own.
  Numbers Sizes(int worker) const {
    Numbers sizes;
    for (int i = 0; i < all_replicas(); ++i) {
      const int replica = (worker * replicas() + i) % all_replicas();
      sizes.push_back(kBatch / all_replicas() + (replica < kBatch % all_replicas() ? 1 : 0));
    }
    return sizes;
  }
  // What all workers see; they end together.
  std::vector<Steps> Seen(const std::function<DistributedDataset(const StrategyPtr&)>& make) const {
    std::vector<Steps> seen(static_cast<size_t>(workers()));
    ExpectOk(cluster_.AtEachWorker(
        [&](int worker, const StrategyPtr& strategy) { seen[static_cast<size_t>(worker)] = All(make(strategy)); }));
    for (const Steps& steps : seen) EXPECT_EQ(steps.size(), seen[0].size());
    return seen;
  }
  // Worker w sees `numbers(w)`, in batches of its sizes, to the end of the one that has most.
  void ExpectRebatched(const std::string& what, const Dataset& dataset, AutoShardPolicy policy,
                       const std::function<Numbers(int)>& numbers) const {
    const std::vector<Steps> seen =
        Seen([&](const StrategyPtr& strategy) { return DistributeDataset(strategy, dataset, policy); });
    for (int w = 0; w < workers(); ++w) {
      const Steps& steps = seen[static_cast<size_t>(w)];
      EXPECT_EQ(Flat(steps), numbers(w)) << what << ", worker " << w;
      EXPECT_EQ(steps, InSizes(numbers(w), Sizes(w), replicas(), steps.size())) << what << ", worker " << w;
    }
  }

  // How often a training of one epoch has seen each number at each worker ([worker * numbers_ + number]); where
  // `tagged` is false, at all of them. Its weights are a table of which each look-up takes 1 / 1024 away.
  std::vector<int> TrainedOn(const Dataset& dataset, AutoShardPolicy policy, bool tagged) const {
    std::vector<std::vector<int>> counts(static_cast<size_t>(workers()));
    ExpectOk(cluster_.AtEachWorker([&](int worker, const StrategyPtr& strategy) {
      const int64_t tag = tagged ? worker * numbers_ : 0;
      const Dataset examples = dataset.Map([tag](Graph& graph, const std::vector<Output>& args) {
        const Output row = args[0] + ops::Const(graph, tag);
        return std::vector<Output>{ops::ExpandDims(row, -1),
                                   ops::ExpandDims(ops::Cast(row, DType::kFloat32) * 0.0f - 0.5f, -1)};
      });
      keras::Sequential model(
          {keras::Input(Shape{1}, {.dtype = DType::kInt64}),
           keras::Embedding(numbers_ * workers(), 1, {.embeddings_initializer = "zeros"}), keras::Flatten()},
          {.strategy = strategy});
      model.Compile({.optimizer = keras::SGD({.learning_rate = 1.0 / 1024}),
                     .loss = keras::MeanSquaredError({.reduction = keras::Reduction::kSum})});
      model.Fit(examples, {.verbose = 0, .signal_check = false, .auto_shard = policy});
      for (const float weight : model.GetWeights()[0].ToVector<float>()) {
        counts[static_cast<size_t>(worker)].push_back(static_cast<int>(std::lround(-1024 * weight)));
      }
    }));
    for (const auto& mine : counts) EXPECT_EQ(mine, counts[0]);
    return counts[0];
  }
  // Worker w has trained on `numbers(w)`, once on each.
  void ExpectTrained(const std::string& what, const Dataset& dataset, AutoShardPolicy policy,
                     const std::function<Numbers(int)>& numbers) const {
    std::vector<int> expected(static_cast<size_t>(numbers_ * workers()), 0);
    for (int w = 0; w < workers(); ++w) {
      for (const int64_t number : numbers(w)) expected[static_cast<size_t>(w * numbers_ + number)] = 1;
    }
    EXPECT_EQ(TrainedOn(dataset, policy, true), expected) << what;
  }

  const std::string folder_ = StrCat(::testing::TempDir(), "cohort_strategy_input_", getpid());
  std::vector<std::string> files_;
  std::vector<Numbers> of_files_;
  int64_t numbers_ = 0;
};

TEST_P(StrategyInput, PoliciesThatCutBatchesAnew) {
  const auto all = [&](int) { return Iota(0, numbers_); };
  const auto of_files = [&](int worker) { return OfFiles(worker); };
  const auto of_hint = [&](int worker) { return OfHint(worker); };
  ExpectRebatched("off", FromFiles().Batch(kBatch), AutoShardPolicy::kOff, all);
  ExpectRebatched("off", FromRange().Batch(kBatch), AutoShardPolicy::kOff, all);
  ExpectRebatched("file", FromFiles().Batch(kBatch), AutoShardPolicy::kFile, of_files);
  ExpectRebatched("auto", FromFiles().Batch(kBatch), AutoShardPolicy::kAuto, of_files);
  for (const Dataset& numbers : {FromRange(), FromFiles()}) {
    ExpectRebatched("hint", numbers.Shard(data::kShardHint, data::kShardHint).Batch(kBatch), AutoShardPolicy::kHint,
                    of_hint);
    ExpectRebatched("no hint", numbers.Batch(kBatch), AutoShardPolicy::kHint, all);
  }
}

TEST_P(StrategyInput, DataSharesEachBatch) {
  for (const auto& [dataset, policy] : {std::pair{FromRange(), AutoShardPolicy::kData},
                                        {FromFiles(), AutoShardPolicy::kData},
                                        {FromRange(), AutoShardPolicy::kAuto}}) {
    const std::vector<Steps> seen = Seen([&, which = policy, source = dataset](const StrategyPtr& strategy) {
      return DistributeDataset(strategy, source.Batch(kBatch), which);
    });
    for (int w = 0; w < workers(); ++w) EXPECT_EQ(seen[static_cast<size_t>(w)], OfData(w)) << "worker " << w;
  }
}

// Batches of one replica, made by the workers themselves; who has no more takes part without rows.
TEST_P(StrategyInput, FunctionsMakeTheInputOfTheirWorker) {
  const std::vector<Steps> seen = Seen([&](const StrategyPtr& strategy) {
    return DistributeDatasetsFromFunction(strategy, [&](const distribute::InputContext& context) {
      EXPECT_EQ(context.num_input_pipelines, workers());
      EXPECT_EQ(context.input_pipeline_id, strategy->worker());
      EXPECT_EQ(context.num_replicas_in_sync, all_replicas());
      EXPECT_EQ(context.GetPerReplicaBatchSize(2 * all_replicas()), 2);
      EXPECT_THROW(context.GetPerReplicaBatchSize(2 * all_replicas() + 1), InvalidArgumentError);
      return Dataset::Range(10 * context.input_pipeline_id, 13 * context.input_pipeline_id + 5).Batch(2);
    });
  });
  for (int w = 0; w < workers(); ++w) {
    const Steps& steps = seen[static_cast<size_t>(w)];
    EXPECT_EQ(Flat(steps), Iota(10 * w, 13 * w + 5));
    EXPECT_EQ(steps, InSizes(Iota(10 * w, 13 * w + 5), {2}, replicas(), steps.size())) << "worker " << w;
  }
}

TEST_P(StrategyInput, FitTrainsOnWhatThePolicySelects) {
  const auto all = [&](int) { return Iota(0, numbers_); };
  const auto of_files = [&](int worker) { return OfFiles(worker); };
  const auto of_hint = [&](int worker) { return OfHint(worker); };
  ExpectTrained("off", FromRange().Batch(kBatch), AutoShardPolicy::kOff, all);
  ExpectTrained("off", FromFiles().Batch(kBatch), AutoShardPolicy::kOff, all);
  ExpectTrained("file", FromFiles().Batch(kBatch), AutoShardPolicy::kFile, of_files);
  ExpectTrained("auto", FromFiles().Batch(kBatch), AutoShardPolicy::kAuto, of_files);
  ExpectTrained("hint", FromRange().Shard(data::kShardHint, data::kShardHint).Batch(kBatch), AutoShardPolicy::kHint,
                of_hint);
  std::vector<int> once(static_cast<size_t>(numbers_ * workers()), 0);
  std::fill_n(once.begin(), numbers_, 1);
  EXPECT_EQ(TrainedOn(FromRange().Batch(kBatch), AutoShardPolicy::kData, false), once);
  EXPECT_EQ(TrainedOn(FromFiles().Batch(kBatch), AutoShardPolicy::kData, false), once);
  EXPECT_EQ(TrainedOn(FromRange().Batch(kBatch), AutoShardPolicy::kAuto, false), once);
}

TEST_P(StrategyInput, FilesThatAreNoneAndTooFewOfThemAreNamed) {
  for (const Status& status : cluster_.AtEachWorker([&](int, const StrategyPtr& strategy) {
         DistributeDataset(strategy, FromRange().Batch(kBatch), AutoShardPolicy::kFile);
       })) {
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("unshardable source dataset"));
  }
  // The last worker has no file; the others hear that it is gone.
  const Dataset one_file = data::CsvDataset({files_[0]}, {{.dtype = DType::kInt64}}).Batch(kBatch);
  const std::vector<Status> outcomes = cluster_.AtEachWorker([&](int worker, const StrategyPtr& strategy) {
    const Dataset mine = worker + 1 < workers() ? FromFiles().Batch(kBatch) : one_file;
    All(DistributeDataset(strategy, mine, AutoShardPolicy::kFile));
  });
  for (int w = 0; w + 1 < workers(); ++w) {
    const Status& status = outcomes[static_cast<size_t>(w)];
    EXPECT_EQ(status.code(), Code::kUnavailable) << status.ToString();
  }
  EXPECT_EQ(outcomes.back().code(), Code::kInvalidArgument) << outcomes.back().ToString();
  EXPECT_THAT(outcomes.back().message(), HasSubstr(StrCat("got 1, so that worker ", workers() - 1, " has none")));
}

INSTANTIATE_TEST_SUITE_P(All, StrategyInput,
                         ::testing::Values(testing::WorkerLayout{"in_process", 2, 1},
                                           testing::WorkerLayout{"in_process", 2, 2},
                                           testing::WorkerLayout{"grpc", 3, 1}),
                         [](const auto& info) { return StrCat(info.param); });

}  // namespace
}  // namespace cohort
