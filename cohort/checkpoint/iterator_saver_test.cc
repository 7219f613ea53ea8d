#include "cohort/checkpoint/iterator_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "cohort/backends/register.h"
#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/graph/iterator_ops.h"
#include "cohort/data/graph_iterator.h"
#include "cohort/ops/register.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/kernels/runtime_kernels.h"

namespace cohort {
namespace {

using data::Dataset;
using data::GraphIterator;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const bool kDatasetsRegistered = [] {
  RegisterOps();
  RegisterBackends();
  RegisterRuntimeKernels(KernelRegistry::Global());
  RegisterDatasetOps(OpRegistry::Global());
  RegisterDatasetKernels(KernelRegistry::Global());
  return true;
}();

// A program that takes numbers out of an iterator, and saves the position of the iterator.
struct Reader {
  explicit Reader(const Dataset& dataset, const std::string& name = "train")
      : iterator(data::MakeGraphIterator(graph, dataset, {.name = name})),
        next(iterator.GetNext()[0]),
        saver(graph),
        init(ops::LocalVariablesInitializer(graph)),
        session(graph) {}
  int64_t Next() { return session.Run(next).scalar<int64_t>(); }

  Graph graph;
  const GraphIterator iterator;
  const Output next;
  const IteratorSaver saver;
  Node* const init;
  Session session;
};

class IteratorSaverTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(kDatasetsRegistered); }
  const testing::TempFolder folder_;
  const std::string prefix_ = folder_ / "model.ckpt-7";
};

TEST_F(IteratorSaverTest, AnotherProgramGoesOnWhereTheFirstOneWas) {
  const Dataset numbers = Dataset::Range(100).Shuffle(10).Prefetch(3);  // the seed is drawn, and differs
  std::vector<int64_t> expected;
  {
    Reader first(numbers);
    first.session.Run(first.init);
    for (int i = 0; i < 5; ++i) first.Next();
    first.saver.Save(first.session, prefix_);
    for (int i = 0; i < 5; ++i) expected.push_back(first.Next());
  }
  Reader second(Dataset::Range(100).Shuffle(10).Prefetch(3));
  EXPECT_TRUE(second.saver.Restore(second.session, prefix_));
  second.session.Run(second.init);
  std::vector<int64_t> got;
  for (int i = 0; i < 5; ++i) got.push_back(second.Next());
  EXPECT_EQ(got, expected);
  // After an element was taken, the initializer starts again.
  Reader third(Dataset::Range(100));
  third.session.Run(third.init);
  third.Next();
  third.saver.Save(third.session, prefix_);
  third.Next();
  EXPECT_TRUE(third.saver.Restore(third.session, prefix_));  // of an iterator that is initialized
  EXPECT_EQ(third.Next(), 1);
  third.session.Run(third.init);
  EXPECT_EQ(third.Next(), 0);
}

TEST_F(IteratorSaverTest, AFileIsLeftOutOrBesideOrDeletedWithItsCheckpoint) {
  Reader reader(Dataset::Range(3));
  reader.saver.Save(reader.session, prefix_);  // the iterator is not initialized
  EXPECT_FALSE(FileExists(prefix_ + ".iterators"));
  EXPECT_FALSE(reader.saver.Restore(reader.session, prefix_));
  reader.session.Run(reader.init);
  reader.saver.Save(reader.session, prefix_);
  EXPECT_TRUE(FileExists(prefix_ + ".iterators"));
  EXPECT_EQ(LatestCheckpoint(folder_ / ""), "");  // the file is no checkpoint
  WriteFileAtomically(prefix_ + "0.iterators", "of another checkpoint");
  DeleteCheckpoint(prefix_);
  EXPECT_FALSE(FileExists(prefix_ + ".iterators"));
  EXPECT_TRUE(FileExists(prefix_ + "0.iterators"));
}

TEST_F(IteratorSaverTest, AnotherPipelineOrNameBeginsAtTheStart) {
  Reader first(Dataset::Range(9));
  first.session.Run(first.init);
  first.Next();
  first.saver.Save(first.session, prefix_);
  Reader other(Dataset::Range(5, 9));
  EXPECT_TRUE(other.saver.Restore(other.session, prefix_));
  ::testing::internal::CaptureStderr();
  other.session.Run(other.init);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("'train' begins at the start"), HasSubstr("Range(0, 9, 1)"), HasSubstr("Range(5, 9, 1)")));
  EXPECT_EQ(other.Next(), 5);
  Reader renamed(Dataset::Range(9), "eval");
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(renamed.saver.Restore(renamed.session, prefix_));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("has no position of it"));
  renamed.session.Run(renamed.init);
  EXPECT_EQ(renamed.Next(), 0);
}

TEST_F(IteratorSaverTest, DamagedFilesAreTold) {
  Reader reader(Dataset::Range(9));
  reader.session.Run(reader.init);
  reader.saver.Save(reader.session, prefix_);
  const std::string path = reader.saver.PathFor(prefix_), bytes = ReadFile(path);
  for (size_t length = 0; length < bytes.size(); ++length) {
    WriteFileAtomically(path, bytes.substr(0, length));
    EXPECT_THAT(MessageOf<DataLossError>([&] { reader.saver.Restore(reader.session, prefix_); }), HasSubstr(path));
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    WriteFileAtomically(path, damaged);
    EXPECT_THROW(reader.saver.Restore(reader.session, prefix_), DataLossError) << "byte " << i;
  }
}

TEST_F(IteratorSaverTest, EachProcessSavesItsOwn) {
  Graph graph;
  const auto on = [&](const std::string& device, const std::string& name) {
    const DeviceScope scope(graph, device);
    data::MakeGraphIterator(graph, Dataset::Range(3), {.name = name});
  };
  on("", "unplaced");
  on("/job:ps/task:1", "on_ps");
  on("/job:worker/task:0/device:CPU:0", "on_0");
  on("/job:worker/task:1", "on_1");
  const IteratorSaver chief(graph, {.task = "/job:worker/task:0"});
  const IteratorSaver worker(graph, {.task = "/job:worker/replica:0/task:1", .is_chief = false});
  EXPECT_THAT(chief.iterators(), ElementsAre("unplaced", "on_ps", "on_0"));
  EXPECT_THAT(worker.iterators(), ElementsAre("unplaced", "on_1"));
  EXPECT_EQ(chief.PathFor("dir/m-1"), "dir/m-1.iterators-worker-0");
  EXPECT_EQ(worker.PathFor("dir/m-1"), "dir/m-1.iterators-worker-1");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { IteratorSaver(graph, {.task = "/job:worker"}); }),
              HasSubstr("'/job:worker'"));
}

}  // namespace
}  // namespace cohort
