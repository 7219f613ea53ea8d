#include "cohort/checkpoint/saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "cohort/backends/register.h"
#include "cohort/checkpoint/ops.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/register.h"
#include "cohort/runtime/kernels/runtime_kernels.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const bool kRegistered = [] {
  RegisterOps();
  RegisterBackends();
  RegisterRuntimeKernels(KernelRegistry::Global());
  RegisterCheckpointOps(OpRegistry::Global());
  RegisterCheckpointKernels(KernelRegistry::Global());
  return true;
}();

class SaverTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_)) names.push_back(entry.path().filename().string());
    return names;
  }

  const testing::TempFolder folder_;
  const std::string dir_ = folder_ / "new";
};

ops::Variable Make(Graph& g, const std::string& name, const Tensor& initial) {
  return ops::Variable(g, initial, {.name = name, .trainable = true, .local = false, .dtype = initial.dtype()});
}

Tensor Ramp(int64_t n, float start) {
  std::vector<float> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), start);
  return Tensor::Vector(values);
}

// A model on two devices with values of several dtypes, one larger than a chunk.
struct Model {
  explicit Model(const SaverOptions& options = {}) {
    config.device_count["CPU"] = 2;
    {
      const DeviceScope device(graph, "/cpu:1");
      large = Make(graph, "large", Ramp(1'300'001, 0.5f));
      step = Make(graph, "global_step", Tensor::Scalar<int64_t>(0));
    }
    small = Make(graph, "small", Tensor::FromValues<double>({1, 2, 3, 4}, Shape{2, 2}));
    flag = Make(graph, "scope/flag", Tensor::Scalar(true));
    empty = Make(graph, "empty", Tensor(DType::kInt32, Shape{0, 3}));
    fed_step = ops::Placeholder(graph, DType::kInt64, Shape());
    assign_step = step.Assign(fed_step);
    init = ops::GlobalVariablesInitializer(graph);
    saver = std::make_unique<Saver>(graph, options);
    session = std::make_unique<Session>(graph, "", config);
  }

  void SetStep(int64_t value) { session->Run({{fed_step, Tensor::Scalar(value)}}, {}, {assign_step}); }
  int64_t Step() { return session->Run(step.value()).scalar<int64_t>(); }

  Graph graph;
  SessionConfig config;
  ops::Variable large, step, small, flag, empty;
  Output fed_step;
  Node* assign_step;
  Node* init;
  std::unique_ptr<Saver> saver;
  std::unique_ptr<Session> session;
};

TEST_F(SaverTest, AnotherSessionGetsTheValuesThatWereSaved) {
  Model first;
  first.session->Run(first.init);
  first.SetStep(7);
  const std::string prefix = first.saver->Save(*first.session, Path("model.ckpt"), 7);
  EXPECT_EQ(prefix, Path("model.ckpt-7"));

  Model second;  // nothing is initialized here
  second.saver->Restore(*second.session, prefix);
  EXPECT_EQ(second.Step(), 7);
  EXPECT_EQ(second.session->Run(second.large.value()).ToVector<float>(), Ramp(1'300'001, 0.5f).ToVector<float>());
  EXPECT_EQ(second.session->Run(second.small.value()).ToVector<double>(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_TRUE(second.session->Run(second.flag.value()).scalar<bool>());
  EXPECT_EQ(second.session->Run(second.empty.value()).shape(), (Shape{0, 3}));
}

TEST_F(SaverTest, TheFileHoldsTheTensorsByNameInOneShard) {
  Model model;
  model.session->Run(model.init);
  const BundleReader reader(model.saver->Save(*model.session, Path("m")));
  EXPECT_EQ(reader.num_shards(), 1);
  std::vector<std::string> names;
  for (const auto& [name, entry] : reader.tensors()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("empty", "global_step", "large", "scope/flag", "small"));
  EXPECT_EQ(reader.Find("small").shape, (Shape{2, 2}));
  VerifyCheckpoint(reader.prefix());
}

TEST_F(SaverTest, AShardedSaveHoldsTheSameAndLeavesNoFolder) {
  Model model({.sharded = true});
  model.session->Run(model.init);
  model.SetStep(3);
  const std::string prefix = model.saver->Save(*model.session, Path("m"), 3);
  EXPECT_THAT(Files(),
              UnorderedElementsAre("checkpoint", "m-3.index", "m-3.data-00000-of-00002", "m-3.data-00001-of-00002"));
  Model other;
  other.saver->Restore(*other.session, prefix);
  EXPECT_EQ(other.Step(), 3);
  EXPECT_EQ(other.session->Run(other.large.value()).ToVector<float>(), Ramp(1'300'001, 0.5f).ToVector<float>());
}

TEST_F(SaverTest, KeepsTheNewestAndListsThem) {
  Model model({.max_to_keep = 2});
  model.session->Run(model.init);
  for (int64_t step = 1; step <= 4; ++step) {
    model.SetStep(step);
    model.saver->Save(*model.session, Path("m"), step);
  }
  EXPECT_THAT(Files(), UnorderedElementsAre("checkpoint", "m-3.index", "m-3.data-00000-of-00001", "m-4.index",
                                            "m-4.data-00000-of-00001"));
  const auto state = ReadCheckpointState(dir_);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->model_checkpoint_path, Path("m-4"));
  EXPECT_THAT(state->all_model_checkpoint_paths, ElementsAre(Path("m-3"), Path("m-4")));
  EXPECT_EQ(LatestCheckpoint(dir_), Path("m-4"));
}

TEST_F(SaverTest, ALaterProcessGoesOnDeletingWhatTheEarlierOneKept) {
  Model first({.max_to_keep = 2});
  first.session->Run(first.init);
  first.saver->Save(*first.session, Path("m"), 1);
  first.saver->Save(*first.session, Path("m"), 2);
  Model second({.max_to_keep = 2});
  second.saver->RecoverLastCheckpoints(dir_);
  EXPECT_EQ(second.saver->RestoreLatest(*second.session, dir_), Path("m-2"));
  second.saver->Save(*second.session, Path("m"), 3);
  EXPECT_THAT(second.saver->last_checkpoints(), ElementsAre(Path("m-2"), Path("m-3")));
  EXPECT_FALSE(fs::exists(Path("m-1.index")));
}

TEST_F(SaverTest, StepNumbersMayBePaddedAndPathsRelative) {
  Model model({.pad_step_number = true, .save_relative_paths = true, .latest_filename = "newest"});
  model.session->Run(model.init);
  EXPECT_EQ(model.saver->Save(*model.session, Path("m"), 42), Path("m-00000042"));
  std::ifstream file(Path("newest"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("model_checkpoint_path: \"m-00000042\""));
}

void Truncate(const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); }

void FlipBit(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(path) / 2);
  file.seekg(middle);
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(middle);
  file.put(byte);
}

TEST_F(SaverTest, TheNewestIntactOneIsRestoredWhenLaterOnesAreDamaged) {
  Model model;
  model.session->Run(model.init);
  for (int64_t step = 1; step <= 4; ++step) {
    model.SetStep(step);
    model.saver->Save(*model.session, Path("m"), step);
  }
  Truncate(Path("m-4.data-00000-of-00001"));
  FlipBit(Path("m-3.data-00000-of-00001"));
  FlipBit(Path("m-2.index"));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(model.saver->RestoreLatest(*model.session, dir_), Path("m-1"));
  const std::string log = ::testing::internal::GetCapturedStderr();
  for (const char* passed_over : {"m-4", "m-3", "m-2"}) EXPECT_THAT(log, HasSubstr(Path(passed_over)));
  EXPECT_EQ(model.Step(), 1);
}

TEST_F(SaverTest, ItIsAnErrorIfNoneOfTheNamedOnesIsIntact) {
  Model model;
  model.session->Run(model.init);
  model.SetStep(7);
  model.saver->Save(*model.session, Path("m"), 1);
  FlipBit(Path("m-1.data-00000-of-00001"));
  const std::string error = ErrorOf([&] { model.saver->RestoreLatest(*model.session, dir_); });
  EXPECT_THAT(error, HasSubstr("DataLoss"));
  EXPECT_THAT(error, HasSubstr(Path("m-1")));
  EXPECT_THAT(error, HasSubstr("is corrupt"));
  EXPECT_EQ(model.Step(), 7);
}

TEST_F(SaverTest, NothingToRestoreIsNoError) {
  Model model;
  EXPECT_EQ(model.saver->RestoreLatest(*model.session, dir_), "");
}

TEST_F(SaverTest, ADamagedOneThatIsAskedForIsAnErrorBeforeAnythingIsAssigned) {
  Model model;
  model.session->Run(model.init);
  model.SetStep(1);
  const std::string prefix = model.saver->Save(*model.session, Path("m"), 1);
  model.SetStep(2);
  FlipBit(prefix + ".data-00000-of-00001");  // inside `large`, which stands after `global_step`
  EXPECT_THAT(ErrorOf([&] { model.saver->Restore(*model.session, prefix); }), HasSubstr("DataLoss"));
  EXPECT_EQ(model.Step(), 2);
  EXPECT_THAT(ErrorOf([&] { model.saver->Restore(*model.session, Path("other")); }), HasSubstr("NotFound"));
}

TEST_F(SaverTest, WhatDoesNotFitIsNamed) {
  Graph g;
  const ops::Variable w = Make(g, "w", Ramp(6, 0));
  Saver saver(g);
  Session session(g);
  session.Run(w.initializer());
  const std::string prefix = saver.Save(session, Path("m"));
  const auto error_with = [&](const std::string& name, const Tensor& initial) {
    Graph other;
    Make(other, name, initial);
    Saver reader(other);
    Session other_session(other);
    return ErrorOf([&] { reader.Restore(other_session, prefix); });
  };
  EXPECT_THAT(error_with("x", Ramp(6, 0)), HasSubstr("NotFound: Key x not found in checkpoint"));
  const std::string shape = error_with("w", Ramp(5, 0));
  EXPECT_THAT(shape, HasSubstr("Assign requires shapes of both tensors to match"));
  EXPECT_THAT(shape, HasSubstr("[5]"));
  EXPECT_THAT(shape, HasSubstr("[6]"));
  EXPECT_THAT(error_with("w", Tensor::Vector<int32_t>({1, 2, 3, 4, 5, 6})), HasSubstr("float32[6]"));
}

// TensorFlow's `tf.Variable(0, name='global_step')` is of int32, and ours of int64.
TEST_F(SaverTest, AWiderIntegerTakesAStoredOne) {
  Graph g;
  Make(g, "step", Tensor::Scalar<int32_t>(-7));
  Make(g, "bytes", Tensor::Vector<uint8_t>({0, 255}));
  Saver saver(g);
  Session session(g);
  session.Run(ops::GlobalVariablesInitializer(g));
  const std::string prefix = saver.Save(session, Path("m"));

  Graph wide;
  const ops::Variable step = Make(wide, "step", Tensor::Scalar<int64_t>(0));
  const ops::Variable bytes = Make(wide, "bytes", Tensor::Vector<int32_t>({0, 0}));
  Saver reader(wide);
  Session wide_session(wide);
  reader.Restore(wide_session, prefix);
  EXPECT_EQ(wide_session.Run(step.value()).scalar<int64_t>(), -7);
  EXPECT_EQ(wide_session.Run(bytes.value()).ToVector<int32_t>(), (std::vector<int32_t>{0, 255}));
  const std::string back = reader.Save(wide_session, Path("wide"));
  EXPECT_THAT(ErrorOf([&] { saver.Restore(session, back); }), HasSubstr("as uint8[2]; got int32[2]"));

  Graph floating;
  Make(floating, "step", Tensor::Scalar(0.0));
  Saver other(floating);
  Session other_session(floating);
  EXPECT_THAT(ErrorOf([&] { other.Restore(other_session, prefix); }), HasSubstr("as float64[]; got int32[]"));
}

TEST_F(SaverTest, AVariableWithoutAValueFailsTheSaveAndLeavesNoFile) {
  Model model;
  EXPECT_THAT(ErrorOf([&] { model.saver->Save(*model.session, Path("m"), 1); }), HasSubstr("uninitialized value"));
  EXPECT_THAT(Files(), ElementsAre());
  model.session->Run(model.init);
  model.saver->Save(*model.session, Path("m"), 1);
}

// A snapshot shares the values with the variables. So if it stays, their memory is not freed when they change.
TEST_F(SaverTest, ASaveThatFailsOnOneDeviceKeepsNoSnapshotOfAnother) {
  constexpr int64_t kCount = 1'000'000;
  Graph g;
  SessionConfig config;
  config.device_count["CPU"] = 2;
  const auto on = [&](const char* device, const std::string& name, const Tensor& initial) {
    const DeviceScope scope(g, device);
    return Make(g, name, initial);
  };
  const ops::Variable held = on("/cpu:0", "held", Ramp(kCount, 0));
  on("/cpu:1", "missing", Ramp(2, 0));
  const Output fed = ops::Placeholder(g, DType::kFloat32, Shape{kCount});
  Node* assign = held.Assign(fed);
  Saver saver(g);
  Session session(g, "", config);
  const auto bytes_after_a_change = [&] {
    session.Run({{fed, Ramp(kCount, 1)}}, {}, {assign});
    return HostAllocatorStats().bytes_in_use;
  };
  bytes_after_a_change();
  const int64_t before = bytes_after_a_change();
  EXPECT_THAT(ErrorOf([&] { saver.Save(session, Path("m")); }), HasSubstr("uninitialized value"));
  EXPECT_LT(bytes_after_a_change(), before + kCount);  // a quarter of the value
}

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &saved_);
    rlimit limit = saved_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &saved_); }

 private:
  rlimit saved_{};
};

TEST_F(SaverTest, AFullDiskIsAnErrorAndTheEarlierCheckpointStays) {
  for (const bool sharded : {false, true}) {
    Model model({.sharded = sharded});
    model.session->Run(model.init);
    model.SetStep(1);
    model.saver->Save(*model.session, Path("m"), 1);
    model.SetStep(2);
    const std::vector<std::string> before = Files();
    {
      const FileSizeLimit limit(100'000);
      EXPECT_THAT(ErrorOf([&] { model.saver->Save(*model.session, Path("m"), 2); }), HasSubstr("ResourceExhausted"));
    }
    EXPECT_THAT(Files(), ::testing::UnorderedElementsAreArray(before));
    EXPECT_EQ(model.saver->RestoreLatest(*model.session, dir_), Path("m-1"));
    EXPECT_EQ(model.Step(), 1);
    model.saver->Save(*model.session, Path("m"), 3);
    fs::remove_all(dir_);
  }
}

TEST_F(SaverTest, ACheckpointIsACutBetweenSteps) {
  Graph g;
  const ops::Variable a = Make(g, "a", Ramp(1000, 0));
  const ops::Variable b = Make(g, "b", Ramp(1000, 0));
  const Output one = ops::Const(g, std::vector<float>(1000, 1.0f));
  Node* train = ops::Group(g, {a.AssignAdd(one), b.AssignAdd(one)});
  Node* init = ops::GlobalVariablesInitializer(g);
  Saver saver(g);
  Session session(g);
  session.Run(init);
  std::atomic<bool> stop{false};
  std::atomic<int64_t> steps{0};
  std::vector<std::thread> trainers;
  for (int i = 0; i < 2; ++i) {
    trainers.emplace_back([&] {
      while (!stop) {
        session.Run(train);
        ++steps;
      }
    });
  }
  while (steps < 10) std::this_thread::yield();
  float last = 0;
  for (int i = 0; i < 20; ++i) {
    const BundleReader reader(saver.Save(session, Path("cut")));
    const std::vector<float> values = reader.Read("a").ToVector<float>();
    EXPECT_EQ(values, reader.Read("b").ToVector<float>());
    EXPECT_EQ(values[999] - values[0], 999);
    EXPECT_GE(values[0], last);
    last = values[0];
  }
  stop = true;
  for (std::thread& trainer : trainers) trainer.join();
  EXPECT_GE(last, 10);
}

TEST_F(SaverTest, SavesWhatItIsToldTo) {
  Graph g;
  const ops::Variable w = Make(g, "w", Ramp(2, 0));
  Make(g, "v", Ramp(2, 0));
  ops::Variable(g, Tensor::Scalar(1.0f), {.name = "mine", .local = true});
  EXPECT_THAT(Saver(g, {.var_list = {w}}).variables(), ElementsAre(w.info()));
  EXPECT_EQ(Saver(g).variables().size(), 2u);  // not the local one
  EXPECT_THROW(Saver(g, {.var_list = {w, w}}), InvalidArgumentError);
  Graph empty;
  EXPECT_THROW(Saver{empty}, InvalidArgumentError);
  Saver saver(g);
  Session session(g);
  EXPECT_THROW(saver.Save(session, Path("dir/")), InvalidArgumentError);
}

TEST_F(SaverTest, StringsAreSavedToo) {
  Graph g;
  const ops::Variable s = Make(g, "s", Tensor::Vector<std::string>({"one", std::string("t\0o", 3), ""}));
  Saver saver(g);
  Session session(g);
  session.Run(s.initializer());
  const std::string prefix = saver.Save(session, Path("m"));
  Session other(g);
  saver.Restore(other, prefix);
  EXPECT_EQ(other.Run(s.value()).ToVector<std::string>(),
            (std::vector<std::string>{"one", std::string("t\0o", 3), ""}));
}

}  // namespace
}  // namespace cohort
