// Tests MultiWorkerMirrored. Workers train one model together, each with a graph, a session and a server of its own.
// The workers are threads of this process (strategy_cluster.h). The tests compare their weights with those of one
// device, and check the errors for workers that differ.
#include "tests/cluster/strategy_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "cohort/cluster/port_reservation.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/data/readers/readers.h"
#include "cohort/distribute/input.h"
#include "cohort/distribute/worker_meeting.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/testing/updates.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"

namespace cohort {
namespace {

using distribute::CommunicationImplementation;
using keras::FitOptions;
using keras::Trained;
using keras::TrainingCase;
using ::testing::AllOf;
using ::testing::AnyOf;
using testing::ExpectOk;
using ::testing::HasSubstr;
using testing::MultiWorker;
using testing::WorkerLayout;

TEST_P(MultiWorker, UpdatesAsOneDevice) {
  for (int variant = 0; variant < 3; ++variant) {
    TrainingCase one;
    one.optimizer = variant == 0 ? keras::SGD({.learning_rate = 0.1, .momentum = 0.9})
                                 : keras::AdamW({.learning_rate = 0.01, .epsilon = 1e-3});
    one.examples = 21 + variant;
    one.batch_size = variant == 2 ? 3 : 9;  // with 3 there are fewer examples than replicas
    one.regularized = true;
    one.weighted = variant == 1;
    one.normalized = true;
    one.seed = 5 + variant;
    const Trained expected = Train(one, nullptr);
    ExpectOk(cluster_.AtEachWorker([&](int, const distribute::StrategyPtr& strategy) {
      const Trained got = Train(one, strategy);
      EXPECT_LT(DistanceOfUpdates(expected, got), 2e-5) << "variant " << variant;
      EXPECT_NEAR(got.loss, expected.loss, 1e-5 * std::abs(expected.loss));
      EXPECT_NEAR(got.metric, expected.metric, 1e-5);
      EXPECT_NEAR(got.evaluated, expected.evaluated, 1e-4 * std::abs(expected.evaluated));
    }));
  }
}

// Of these tables only rows travel.
TEST_P(MultiWorker, LookupsUpdateAsOnOneDevice) {
  const auto train = [](const keras::OptimizerPtr& optimizer, const distribute::StrategyPtr& strategy) {
    keras::Sequential model({keras::Input(Shape{3}, {.dtype = DType::kInt64}), keras::Embedding(20'000, 4),
                             keras::Flatten(), keras::Dense(1)},
                            {.seed = 3, .strategy = strategy});
    model.Compile({.optimizer = optimizer, .loss = "mse"});
    Tensor x(DType::kInt64, Shape{11, 3});
    for (int64_t i = 0; i < x.num_elements(); ++i) x.data<int64_t>()[i] = i * i % 17 * (i % 3 == 0 ? 1 : 1000);
    Trained trained;
    trained.before = model.GetWeights();
    model.Fit(x, SeededNoise(Shape{11, 1}, 2), {.batch_size = 5, .epochs = 2, .verbose = 0});
    trained.after = model.GetWeights();
    return trained;
  };
  for (const keras::OptimizerPtr& optimizer :
       {keras::SGD({.learning_rate = 0.1}), keras::Adagrad({.learning_rate = 0.1}),
        keras::Adam({.learning_rate = 0.1, .epsilon = 1e-3})}) {
    const Trained expected = train(optimizer, nullptr);
    ExpectOk(cluster_.AtEachWorker([&](int, const distribute::StrategyPtr& strategy) {
      EXPECT_LT(DistanceOfUpdates(expected, train(optimizer, strategy)), 2e-5) << optimizer->name();
    }));
  }
}

// Weights begin as the chief's. There is a second model beside the first one.
TEST_P(MultiWorker, InitialValuesAreTheChiefs) {
  std::vector<std::vector<Tensor>> weights(static_cast<size_t>(cluster_.workers()));
  ExpectOk(cluster_.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
    keras::Sequential first({keras::Input(Shape{3}), keras::Dense(4)}, {.seed = worker + 1, .strategy = strategy});
    keras::Sequential second({keras::Input(Shape{3}), keras::Dense(4)}, {.seed = worker + 7, .strategy = strategy});
    auto& mine = weights[static_cast<size_t>(worker)];
    mine = first.GetWeights();
    const std::vector<Tensor> others = second.GetWeights();
    EXPECT_NE(mine[0].ToVector<float>(), others[0].ToVector<float>());
    strategy->meeting().Barrier();
  }));
  for (const auto& mine : weights) EXPECT_EQ(mine[0].ToVector<float>(), weights[0][0].ToVector<float>());
}

// Each worker reads files of its own, which have different lengths. Some workers end earlier.
TEST_P(MultiWorker, FilesAreSharedAndWorkersEndTogether) {
  const testing::TempFolder folder;
  std::vector<std::string> files;
  int line = 0;
  for (int f = 0; f < 2 * cluster_.workers(); ++f) {
    files.push_back(folder / StrCat(f, ".csv"));
    std::ofstream out(files.back());
    for (int i = 0; i < 3 + 2 * f; ++i, ++line) out << 0.01 * line << "," << 0.02 * line - 1 << "\n";
  }
  std::vector<std::vector<Tensor>> weights(static_cast<size_t>(cluster_.workers()));
  ExpectOk(cluster_.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
    const data::Dataset rows = data::CsvDataset(files, {data::CsvColumn(), data::CsvColumn()}).Batch(6);
    keras::Sequential model({keras::Input(Shape{1}), keras::Dense(1)}, {.strategy = strategy});
    model.Compile({.optimizer = keras::SGD({.learning_rate = 0.1}),
                   .loss = "mse",
                   .metrics = {keras::MetricArgument(keras::MeanOf("half", [](const Output& t, const Output&) {
                     return ops::Add(ops::ZerosLike(t), ops::ScalarLike(t, 0.5));
                   }))}});
    const keras::History history = model.Fit(rows, {.epochs = 2, .verbose = 0});
    EXPECT_NEAR(history["half"].back(), 0.5, 1e-6);
    weights[static_cast<size_t>(worker)] = model.GetWeights();
  }));
  for (const auto& mine : weights) {
    ASSERT_FALSE(mine.empty());
    EXPECT_EQ(mine[0].ToVector<float>(), weights[0][0].ToVector<float>());
  }
}

// Every difference is an error at every worker, and the error names it.
TEST_P(MultiWorker, WorkersThatDoNotTrainAlikeAreNamed) {
  struct Difference {
    std::function<void(TrainingCase&)> change;
    std::vector<std::string> named;
  };
  const std::vector<Difference> differences = {
      {[](TrainingCase& c) { c.batch_size = 5; }, {"batch_size: 8", "batch_size: 5"}},
      {[](TrainingCase& c) { c.examples = 30; }, {"data: ", "22", "30"}},
      {[](TrainingCase& c) { c.epochs = 3; }, {"epochs: 0 to 2", "epochs: 0 to 3"}},
      {[](TrainingCase& c) { c.normalized = true; }, {"weight dense_1/kernel", "weight batch_normalization/gamma"}},
      {[](TrainingCase& c) { c.optimizer = keras::Adagrad(); }, {"optimizer: ", "SGD", "Adagrad"}},
      {[](TrainingCase& c) { c.regularized = true; }, {"layer 1: ", "\"kernel_regularizer\": null", "\"L2\""}},
      {[](TrainingCase& c) { c.by_weight = true; }, {"loss: ", "sum_over_batch_size", "mean_with_sample_weight"}},
      {[](TrainingCase& c) { c.seed = 2; }, {"contents of data: "}},
  };
  for (const Difference& difference : differences) {
    const std::vector<Status> outcomes =
        cluster_.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
          TrainingCase mine;
          mine.optimizer = keras::SGD();
          if (worker == 1) difference.change(mine);
          Train(mine, strategy);
        });
    for (const Status& status : outcomes) {
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
      EXPECT_THAT(status.message(), HasSubstr("/job:worker/replica:0/task:1"));
      for (const std::string& name : difference.named) EXPECT_THAT(status.message(), HasSubstr(name));
    }
  }
}

keras::CallbackPtr Pass() { return keras::LambdaCallback({}); }

// If a worker stopped earlier than the others, they would wait for it. If it used another learning rate, the weights
// would differ.
TEST_P(MultiWorker, CallbacksThatActOnTheTrainingHaveToBeAlike) {
  using Callbacks = std::vector<keras::CallbackPtr>;
  struct Difference {
    std::function<Callbacks()> first, other;
    std::vector<std::string> named;
  };
  const testing::TempFolder folder;
  const std::string backup = folder / "backup";
  const auto backs_up = [&] { return keras::BackupAndRestore({.backup_dir = backup}); };
  const auto rate = [](int, double) { return 0.1; };
  const std::string kinds = "callbacks that act on the training: ";
  const std::vector<Difference> differences = {
      {[&] { return Callbacks{}; },
       [&] { return Callbacks{backs_up()}; },
       {kinds + "none", kinds + "BackupAndRestore"}},
      {[&] {
         return Callbacks{backs_up(), Pass()};
       },
       [] { return Callbacks{Pass()}; },
       {kinds + "none"}},
      {[] { return Callbacks{keras::EarlyStopping({.monitor = "loss"})}; },
       [] { return Callbacks{}; },
       {kinds + "EarlyStopping", kinds + "none"}},
      {[] { return Callbacks{keras::EarlyStopping({.monitor = "loss"})}; },
       [] { return Callbacks{keras::EarlyStopping({.monitor = "loss", .patience = 2})}; },
       {"options of EarlyStopping: ", "\"patience\": 0", "\"patience\": 2"}},
      {[] { return Callbacks{}; },
       [] { return Callbacks{keras::ReduceLROnPlateau({.monitor = "loss"})}; },
       {kinds + "ReduceLROnPlateau"}},
      {[&] {
         return Callbacks{keras::LearningRateScheduler(rate), keras::TerminateOnNaN()};
       },
       [&] {
         return Callbacks{keras::TerminateOnNaN(), keras::LearningRateScheduler(rate)};
       },
       {kinds + "LearningRateScheduler, TerminateOnNaN", kinds + "TerminateOnNaN, LearningRateScheduler"}},
  };
  for (const Difference& difference : differences) {
    const std::vector<Status> outcomes =
        cluster_.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
          TrainingCase one;
          one.optimizer = keras::SGD();
          FitOptions fit = {.batch_size = 8, .verbose = 0};
          fit.callbacks = worker == 1 ? difference.other() : difference.first();
          ModelOf(one, strategy)->Fit(DataOf(one), fit);
        });
    for (const Status& status : outcomes) {
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
      EXPECT_THAT(status.message(),
                  AllOf(HasSubstr("/job:worker/replica:0/task:0"), HasSubstr("/job:worker/replica:0/task:1")));
      for (const std::string& name : difference.named) EXPECT_THAT(status.message(), HasSubstr(name));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(backup)) << "nobody began to train";
}

TEST_P(MultiWorker, CallbacksThatOnlyWriteMayBeAtTheChiefAlone) {
  const testing::TempFolder folder;
  ExpectOk(cluster_.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
    TrainingCase one;
    one.optimizer = keras::SGD();
    FitOptions fit = {.batch_size = 8, .epochs = 2, .verbose = 0};
    if (worker == 0) {
      fit.callbacks = {
          Pass(), keras::CSVLogger(folder / "log.csv"),
          keras::ModelCheckpoint(
              {.filepath = folder / "best.keras", .monitor = "loss", .save_best_only = true, .save_every_batches = 1}),
          keras::TensorBoard({.log_dir = folder / "logs", .histogram_freq = 1, .update_every_batches = 1})};
    }
    fit.callbacks.push_back(keras::EarlyStopping({.monitor = "loss", .patience = 5, .verbose = worker}));
    ModelOf(one, strategy)->Fit(DataOf(one), fit);
  }));
  for (const char* written : {"log.csv", "best.keras", "logs"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / written)) << written;
  }
}

// The last worker fails. The others get an error with the cause and the number of that worker.
TEST_P(MultiWorker, WhatFailsAtOneWorkerIsToldToAll) {
  const int victim = cluster_.workers() - 1;
  const auto expect_told = [&](const char* cause, const std::function<void(keras::Sequential&, bool)>& work) {
    const std::vector<Status> outcomes =
        cluster_.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
          TrainingCase one;
          one.optimizer = keras::SGD();
          work(*ModelOf(one, strategy), worker == victim);
        });
    for (int w = 0; w < cluster_.workers(); ++w) {
      const Status& status = outcomes[static_cast<size_t>(w)];
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
      EXPECT_THAT(status.message(), HasSubstr(cause));
      if (w != victim) {
        EXPECT_THAT(status.message(), HasSubstr(StrCat("/job:worker/replica:0/task:", victim)));
      }
    }
  };
  TrainingCase one;
  expect_told("a callback's error", [&](keras::Sequential& model, bool fails) {
    const auto fail = [fails](int epoch, keras::Logs&) {
      if (fails && epoch == 1) throw InvalidArgumentError("a callback's error");
    };
    FitOptions fit = {.batch_size = 8, .epochs = 3, .verbose = 0};
    fit.callbacks = {keras::LambdaCallback({.on_epoch_end = fail})};
    model.Fit(DataOf(one), fit);
  });
  expect_told("outside the valid range", [&](keras::Sequential& model, bool fails) {
    const keras::ModelData data = DataOf(one);
    Tensor labels = data.y()[0].Clone();
    if (fails) labels.data<int64_t>()[0] = 3;
    const auto dataset = data::Dataset::FromTensorSlices({data.x()[0], labels}).Batch(8);
    model.Evaluate(dataset, {.verbose = 0, .auto_shard = data::AutoShardPolicy::kOff});
  });
}

// Checksums are gathered, for example. They may begin with any byte.
TEST_P(MultiWorker, AnyBytesCanBeGathered) {
  ExpectOk(cluster_.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
    for (int byte = 0; byte < 32; ++byte) {
      const std::string mine = StrCat(std::string(1, static_cast<char>(byte)), "x", worker);
      const std::vector<std::string> all = strategy->meeting().Gather(worker == 0 ? mine : "");
      EXPECT_EQ(all[0], mine.substr(0, 2) + "0");
      EXPECT_EQ(all[1], "");
    }
  }));
}

// Shuffles without a seed take the chief's seed. Before that, the workers compare whether each has such a shuffle.
TEST_P(MultiWorker, AShuffleThatOneWorkerLacksIsNamed) {
  const std::vector<Status> outcomes = cluster_.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
    const data::Dataset numbers = data::Dataset::Range(40);
    distribute::DistributeDataset(strategy, (worker == 1 ? numbers : numbers.Shuffle(40)).Batch(8));
  });
  for (const Status& status : outcomes) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
    EXPECT_THAT(status.message(), AllOf(HasSubstr("shuffles without a seed"), HasSubstr("got 1 at worker 0"),
                                        HasSubstr("and 0 at worker 1 (/job:worker/replica:0/task:1")));
  }
}

TEST_P(MultiWorker, WeightsThatDivergeAreNamed) {
  const std::vector<Status> outcomes = cluster_.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
    TrainingCase one;
    one.optimizer = keras::SGD();
    const auto model = ModelOf(one, strategy);
    model->Build(Shape{-1, 5});
    FitOptions fit = {.batch_size = 8, .verbose = 0, .replica_check_steps = 2};
    fit.callbacks = {keras::LambdaCallback({.on_train_batch_end = [&](int64_t batch, const keras::BatchLogs&) {
      if (worker != 1 || batch != 0) return;
      std::vector<Tensor> weights = model->GetWeights();
      weights[3].data<float>()[2] += 0.5f;
      model->SetWeights(weights);
    }})};
    model->Fit(DataOf(one), fit);
  });
  for (const Status& status : outcomes) {
    EXPECT_EQ(status.code(), Code::kDataLoss) << status.ToString();
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("weight 'dense_1/bias'"), HasSubstr("/task:1"), HasSubstr("2 updates")));
  }
}

// This includes values that differ only in the updates of a later step.
TEST_P(MultiWorker, OptimizersAndStatisticsThatDivergeAreNamed) {
  const auto set = [](keras::Model& model, const std::string& name) {
    for (VariableInfo* info : model.graph().variables()) {
      if (info->name != name) continue;
      const ops::Variable variable(info);
      const Output other = variable.value() + ops::ScalarLike(variable.value(), 0.25);
      model.session().Run(variable.Assign(other));
      return;
    }
    ADD_FAILURE() << "no variable " << name;
  };
  for (const auto& which : {std::pair{"SGD/learning_rate", "optimizer variable 'SGD/learning_rate'"},
                            {"dense/kernel/SGD", "optimizer variable 'dense/kernel/SGD'"},
                            {"batch_normalization/moving_mean", "weight 'batch_normalization/moving_mean'"}}) {
    const char* variable = which.first;
    const char* named = which.second;
    const std::vector<Status> outcomes =
        cluster_.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
          TrainingCase one;
          one.optimizer = keras::SGD({.momentum = 0.9});
          one.normalized = true;
          const auto model = ModelOf(one, strategy);
          model->Fit(DataOf(one), {.batch_size = 8, .verbose = 0});
          if (worker == 1) set(*model, variable);
          model->Fit(DataOf(one), {.batch_size = 8, .verbose = 0});
        });
    for (const Status& status : outcomes) {
      EXPECT_EQ(status.code(), Code::kDataLoss) << status.ToString();
      EXPECT_THAT(status.message(), AllOf(HasSubstr(named), HasSubstr("/task:1"), HasSubstr("3 updates")));
    }
  }
}

TEST_P(MultiWorker, TheChiefAloneWrites) {
  const testing::TempFolder folder;
  ExpectOk(cluster_.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
    TrainingCase one;
    one.optimizer = keras::SGD();
    const auto model = ModelOf(one, strategy);
    const std::string mine = folder / StrCat(worker);
    std::filesystem::create_directories(mine);
    FitOptions fit = {.batch_size = 8, .epochs = 2, .verbose = 0};
    fit.callbacks = {
        keras::BackupAndRestore({.backup_dir = mine + "/backup"}), keras::CSVLogger(mine + "/log.csv"),
        keras::ModelCheckpoint({.filepath = mine + "/model.keras"}),
        keras::ModelCheckpoint(
            {.filepath = mine + "/{epoch}_{batch}.weights.h5", .save_weights_only = true, .save_every_batches = 2}),
        keras::TensorBoard({.log_dir = mine + "/logs", .update_every_batches = 1})};
    model->Fit(DataOf(one), fit);
    EXPECT_EQ(strategy->is_chief(), worker == 0);
    for (const char* written : {"/backup", "/log.csv", "/logs", "/model.keras", "/1_2.weights.h5"}) {
      EXPECT_EQ(std::filesystem::exists(mine + written), worker == 0) << written;
    }
    EXPECT_EQ(std::filesystem::is_empty(mine), worker != 0);
  }));
}

// The worker has ended without an error meanwhile.
TEST(MultiWorkerCalls, EvaluateAtTheChiefAloneSaysThatAllHaveToCallIt) {
  RegisterAll();
  const testing::StrategyCluster cluster(2, 1, "in_process");
  const std::vector<Status> outcomes = cluster.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
    TrainingCase one;
    one.optimizer = keras::SGD();
    const auto model = ModelOf(one, strategy);
    model->Fit(DataOf(one), {.batch_size = 8, .verbose = 0});
    if (worker == 0) model->Evaluate(DataOf(one), {.verbose = 0});
  });
  EXPECT_TRUE(outcomes[1].ok()) << outcomes[1].ToString();
  EXPECT_EQ(outcomes[0].code(), Code::kUnavailable) << outcomes[0].ToString();
  EXPECT_THAT(outcomes[0].message(),
              AllOf(HasSubstr("expected all workers to call Evaluate together"), HasSubstr("rank 1 ("),
                    HasSubstr("every worker make the same calls in the same order")));
}

TEST(MultiWorkerTimeout, ACollectiveThatTakesLongerNamesWhoIsWaitedFor) {
  RegisterAll();
  const testing::StrategyCluster cluster(2, 1, "grpc", {.timeout = std::chrono::milliseconds(500)});
  std::promise<void> others_ended;
  std::shared_future<void> end = others_ended.get_future().share();
  const std::vector<Status> outcomes = cluster.AtEachWorker([&](int worker, const distribute::StrategyPtr& strategy) {
    struct AtEnd {
      ~AtEnd() {
        if (worker == 0) ended.set_value();
      }
      int worker;
      std::promise<void>& ended;
    } const at_end{worker, others_ended};
    TrainingCase one;
    one.optimizer = keras::SGD();
    FitOptions fit = {.batch_size = 8, .epochs = 1, .verbose = 0};
    fit.callbacks = {keras::LambdaCallback({.on_train_batch_begin = [&](int64_t batch) {
      if (worker == 1 && batch == 1) end.wait_for(std::chrono::seconds(60));
    }})};
    ModelOf(one, strategy)->Fit(DataOf(one), fit);
  });
  EXPECT_EQ(outcomes[0].code(), Code::kDeadlineExceeded) << outcomes[0].ToString();
  EXPECT_THAT(outcomes[0].message(), AllOf(HasSubstr("500 ms"), HasSubstr("waits for rank 1"), HasSubstr(", round ")));
  EXPECT_FALSE(outcomes[1].ok());
}

std::vector<WorkerLayout> Layouts() {
  constexpr auto kGloo = CommunicationImplementation::kGloo;
  std::vector<WorkerLayout> layouts = {{"in_process", 2, 1},
                                       {"grpc", 2, 1},
                                       {"in_process", 2, 2},
                                       {"grpc", 3, 1},
                                       {"in_process", 3, 1, CommunicationImplementation::kRing}};
  if (distribute::IsBuilt(kGloo)) layouts.insert(layouts.end(), {{"grpc", 3, 1, kGloo}, {"grpc", 2, 2, kGloo}});
  return layouts;
}

INSTANTIATE_TEST_SUITE_P(All, MultiWorker, ::testing::ValuesIn(Layouts()),
                         [](const auto& info) { return StrCat(info.param); });

TEST(MultiWorkerAlone, TrainsByItselfWithAWarning) {
  ::testing::internal::CaptureStderr();
  const auto strategy = distribute::MultiWorkerMirrored({.resolver = TFConfigClusterResolver(std::string("{}"))});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("trains alone"));
  EXPECT_EQ(strategy->num_workers(), 1);
  EXPECT_TRUE(strategy->is_chief());
  EXPECT_EQ(strategy->session_target(), "");
}

// Workers are numbered by their places. These are not their indices if a job lacks some indices.
TEST(MultiWorkerAlone, AJobThatLacksIndices) {
  PortReservation first, second;
  for (const int index : {1, 4}) {
    const auto strategy = distribute::MultiWorkerMirrored(
        {.resolver = TFConfigClusterResolver(StrCat(R"({"cluster": {"worker": {"1": ")", first.Address(),
                                                    R"(", "4": ")", second.Address(),
                                                    R"("}}, "task": {"type": "worker", "index": )", index, "}}"))});
    EXPECT_EQ(strategy->worker(), index == 4);
    EXPECT_EQ(strategy->is_chief(), index == 1);
    EXPECT_EQ(strategy->devices(),
              std::vector<std::string>{StrCat("/job:worker/replica:0/task:", index, "/device:CPU:0")});
  }
}

TEST(MultiWorkerAlone, TasksThatDoNotTrain) {
  const auto make = [](const char* task) {
    return distribute::MultiWorkerMirrored(
        {.resolver = TFConfigClusterResolver(
             StrCat(R"({"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"], "ps": ["127.0.0.1:3"]})", task, "}"))});
  };
  for (const auto& [task, named] :
       {std::pair{R"(, "task": {"type": "ps", "index": 0})", "/job:ps/task:0"}, std::pair{"", "type and index"}}) {
    try {
      make(task);
      FAIL() << task;
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), HasSubstr(named));
    }
  }
}

}  // namespace
}  // namespace cohort
