// Tests which elements of a dataset each worker of a MultiWorkerMirrored training gets, for each of TensorFlow's
// policies. Workers are threads of this process. The words: `seen` is the list of numbers that a worker has read, and a
// step has one list for each replica of a worker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "cohort/core/testing/temp_folder.h"
#include "cohort/data/readers/readers.h"
#include "cohort/distribute/input.h"
#include "cohort/distribute/worker_meeting.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/keras.h"
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
using Steps = std::vector<std::vector<Numbers>>;  // one list for each replica of a worker

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

// Returns `seen`, cut to the sizes in turn.
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
  static constexpr int64_t kBatch = 7;  // the global batch size

  StrategyInput() {
    for (int f = 0; f < 2 * workers() + 1; ++f) {
      files_.push_back(folder_ / StrCat(f, ".csv"));
      std::ofstream out(files_.back());
      of_files_.push_back(Iota(numbers_, numbers_ + 2 + 3 * f));
      for (const int64_t number : of_files_.back()) out << number << "\n";
      numbers_ += static_cast<int64_t>(of_files_.back().size());
    }
  }

  int workers() const { return cluster_.workers(); }
  static int replicas() { return GetParam().replicas; }
  static int all_replicas() { return GetParam().workers * GetParam().replicas; }

  // Returns a dataset of all numbers, read from the files.
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
  // Returns the steps of a worker with DATA: each global batch is cut into equal parts, and worker w has the parts w, w
  // + workers, ...
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
  // Returns the sizes of worker w's batches. These are the sizes of all replicas of all workers, beginning with its
  // own.
  Numbers Sizes(int worker) const {
    Numbers sizes;
    for (int i = 0; i < all_replicas(); ++i) {
      const int replica = (worker * replicas() + i) % all_replicas();
      sizes.push_back(kBatch / all_replicas() + (replica < kBatch % all_replicas() ? 1 : 0));
    }
    return sizes;
  }
  // Returns what all workers read. Checks that they end together.
  std::vector<Steps> Seen(const std::function<DistributedDataset(const StrategyPtr&)>& make) const {
    std::vector<Steps> seen(static_cast<size_t>(workers()));
    ExpectOk(cluster_.AtEachWorker(
        [&](int worker, const StrategyPtr& strategy) { seen[static_cast<size_t>(worker)] = All(make(strategy)); }));
    for (const Steps& steps : seen) EXPECT_EQ(steps.size(), seen[0].size());
    return seen;
  }
  // Checks that worker w reads `numbers(w)`, in batches of its sizes, until the worker with the most numbers has ended.
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

  // Returns the numbers as examples of a model whose weights are a table with a row for each number. A function of the
  // host adds `offset` to each number. The offsets of two workers may differ: the workers compare only that each has a
  // function.
  static Dataset AsExamples(const Dataset& batches, int64_t offset) {
    const auto example = [offset](const std::vector<Tensor>& element) -> std::vector<Tensor> {
      const int64_t rows = element[0].num_elements();
      Tensor index(DType::kInt64, Shape{rows, 1}), target(DType::kFloat32, Shape{rows, 1});
      for (int64_t i = 0; i < rows; ++i) {
        index.data<int64_t>()[i] = element[0].data<int64_t>()[i] + offset;
        target.data<float>()[i] = -0.5f;
      }
      return {index, target};
    };
    return batches.Map(example, {{DType::kInt64, Shape{-1, 1}}, {DType::kFloat32, Shape{-1, 1}}});
  }
  // Returns a model that is a table of `rows` weights. Each look-up in training subtracts 1 / 1024 from a weight.
  static std::unique_ptr<keras::Sequential> Table(int64_t rows, const StrategyPtr& strategy) {
    auto model = std::make_unique<keras::Sequential>(
        std::vector<keras::SequentialItem>{keras::Input(Shape{1}, {.dtype = DType::kInt64}),
                                           keras::Embedding(rows, 1, {.embeddings_initializer = "zeros"}),
                                           keras::Flatten()},
        keras::ModelOptions{.strategy = strategy});
    model->Compile({.optimizer = keras::SGD({.learning_rate = 1.0 / 1024}),
                    .loss = keras::MeanSquaredError({.reduction = keras::Reduction::kSum})});
    return model;
  }
  // Returns how many times the model was trained on each row of its table.
  static std::vector<int> Lookups(keras::Sequential& table) {
    std::vector<int> counts;
    for (const float weight : table.GetWeights()[0].ToVector<float>()) {
      counts.push_back(static_cast<int>(std::lround(-1024 * weight)));
    }
    return counts;
  }
  // Returns how many times a training of one epoch has used each number at each worker: [worker * numbers_ + number].
  std::vector<int> TrainedOn(const Dataset& dataset, AutoShardPolicy policy) const {
    std::vector<std::vector<int>> counts(static_cast<size_t>(workers()));
    ExpectOk(cluster_.AtEachWorker([&](int worker, const StrategyPtr& strategy) {
      const auto table = Table(numbers_ * workers(), strategy);
      table->Fit(AsExamples(dataset, worker * numbers_), {.verbose = 0, .signal_check = false, .auto_shard = policy});
      counts[static_cast<size_t>(worker)] = Lookups(*table);
    }));
    for (const auto& mine : counts) EXPECT_EQ(mine, counts[0]);
    return counts[0];
  }
  // Checks that worker w has trained once on each of `numbers(w)`.
  void ExpectTrained(const std::string& what, const Dataset& dataset, AutoShardPolicy policy,
                     const std::function<Numbers(int)>& numbers) const {
    std::vector<int> expected(static_cast<size_t>(numbers_ * workers()), 0);
    for (int w = 0; w < workers(); ++w) {
      for (const int64_t number : numbers(w)) expected[static_cast<size_t>(w * numbers_ + number)] = 1;
    }
    EXPECT_EQ(TrainedOn(dataset, policy), expected) << what;
  }

  const testing::TempFolder folder_;
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

// Each worker makes the batches of its replicas itself. A worker that has no more takes part without rows.
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
  const auto of_data = [&](int worker) { return Flat(OfData(worker)); };
  ExpectTrained("data", FromRange().Batch(kBatch), AutoShardPolicy::kData, of_data);
  ExpectTrained("data", FromFiles().Batch(kBatch), AutoShardPolicy::kData, of_data);
  ExpectTrained("auto", FromRange().Batch(kBatch), AutoShardPolicy::kAuto, of_data);
}

// Each worker draws its own seeds. All workers use the chief's, in every epoch.
TEST_P(StrategyInput, AShuffleWithoutASeedCoversEachElementOnceAnEpoch) {
  constexpr int kEpochs = 3;
  std::vector<std::vector<Numbers>> seen(static_cast<size_t>(workers()));  // indexed by worker and epoch
  ExpectOk(cluster_.AtEachWorker([&](int worker, const StrategyPtr& strategy) {
    const DistributedDataset dataset = DistributeDataset(strategy, FromRange().Shuffle(numbers_).Batch(kBatch));
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      Numbers numbers;
      const auto iterator = dataset.MakeIterator({.epoch = epoch});
      for (distribute::PerReplica<std::vector<Tensor>> values; iterator->Next(&values);) {
        for (const std::vector<Tensor>& element : values) {
          for (const int64_t number : element.at(0).ToVector<int64_t>()) numbers.push_back(number);
        }
      }
      seen[static_cast<size_t>(worker)].push_back(std::move(numbers));
    }
  }));
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    Numbers all;
    for (const auto& of_worker : seen) {
      const Numbers& numbers = of_worker[static_cast<size_t>(epoch)];
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, Iota(0, numbers_)) << "epoch " << epoch;
  }
  EXPECT_NE(seen[0][0], seen[0][1]) << "each epoch has an order of its own";
}

TEST_P(StrategyInput, FitCoversAShuffleWithoutASeedOnceAnEpochAlsoAfterARestart) {
  const std::string backup = folder_ / "backup";
  for (const int stop_after : {-1, 2, 5}) {  // an epoch has 4 steps or more
    for (const bool again : {false, true}) {
      if (stop_after < 0 && again) continue;
      const std::vector<Status> outcomes = cluster_.AtEachWorker([&](int, const StrategyPtr& strategy) {
        const Dataset rows = FromRange().Shuffle(numbers_).Batch(kBatch);
        const Dataset validation = FromRange().Shuffle(3).Batch(2);
        const auto table = Table(numbers_, strategy);
        keras::FitOptions fit = {
            .epochs = 3, .verbose = 0, .validation_data = AsExamples(validation, 0), .signal_check = false};
        if (stop_after > 0) {
          fit.callbacks.push_back(keras::BackupAndRestore({.backup_dir = backup, .save_every_batches = 1}));
        }
        int steps = 0;
        fit.callbacks.push_back(keras::LambdaCallback({
            .on_epoch_end =
                [&](int epoch, keras::Logs&) {
                  EXPECT_EQ(Lookups(*table), std::vector<int>(static_cast<size_t>(numbers_), epoch + 1))
                      << "stopped after " << stop_after << (again ? ", again" : "");
                },
            .on_train_batch_end =
                [&](int64_t, const keras::BatchLogs&) {
                  if (again || ++steps != stop_after) return;
                  strategy->meeting().Barrier();  // the chief has written
                  throw CancelledError("the test stops here");
                },
        }));
        table->Fit(AsExamples(rows, 0), fit);
      });
      for (const Status& status : outcomes) {
        EXPECT_EQ(status.code(), stop_after < 0 || again ? Code::kOk : Code::kCancelled) << status.ToString();
      }
    }
  }
}

TEST_P(StrategyInput, FilesThatAreNoneAndTooFewOfThemAreNamed) {
  for (const Status& status : cluster_.AtEachWorker([&](int, const StrategyPtr& strategy) {
         DistributeDataset(strategy, FromRange().Batch(kBatch), AutoShardPolicy::kFile);
       })) {
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("unshardable source dataset"));
  }
  // The last worker has no file. The others get an error that says so.
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
