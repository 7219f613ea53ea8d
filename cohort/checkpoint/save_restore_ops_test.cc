#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cohort/backends/register.h"
#include "cohort/checkpoint/ops.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/register.h"
#include "cohort/runtime/kernels/runtime_kernels.h"
#include "cohort/runtime/session.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

class SaveRestoreOpsTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  Output Strings(const std::vector<std::string>& texts) { return ops::Const(g_, texts); }
  const testing::TempFolder folder_;
  const std::string dir_ = folder_ / "new";
  Graph g_;
};

TEST_F(SaveRestoreOpsTest, WholeTensorsAndSlicesComeBack) {
  const Output prefix = ops::Const(g_, Path("m"));
  const Output rows = ops::Const(g_, std::vector<float>{1, 2, 3, 4}, Shape{2, 2});
  Node* save = ops::SaveV2(prefix, Strings({"w", "v", "n"}), Strings({"5 2 1,2:0,2", "", ""}),
                           {rows, ops::Const(g_, std::vector<int64_t>{7, 8}), ops::Const(g_, "text")});
  const std::vector<Output> restored =
      ops::RestoreV2(prefix, Strings({"w", "n", "v", "w"}), Strings({"5 2 2,1:0,2", "", "", "5 2 1,2:1,1"}),
                     {DType::kFloat32, DType::kString, DType::kInt64, DType::kFloat32});
  EXPECT_EQ(restored[0].shape(), (Shape{1, 2}));
  EXPECT_FALSE(restored[2].shape().has_rank());
  Session session(g_);
  session.Run(save);
  const std::vector<Tensor> values = session.Run(restored);
  EXPECT_EQ(values[0].ToVector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(values[1].scalar<std::string>(), "text");
  EXPECT_EQ(values[2].ToVector<int64_t>(), (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(values[3].ToVector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(BundleReader(Path("m")).Find("w").shape, (Shape{5, 2}));
}

TEST_F(SaveRestoreOpsTest, MistakesAreNamed) {
  const Output prefix = ops::Const(g_, Path("m"));
  const Output value = ops::Const(g_, std::vector<float>{1, 2});
  EXPECT_THAT(ErrorOf([&] { ops::SaveV2(prefix, Strings({"a", "b"}), Strings({""}), {value}); }), HasSubstr("got 2"));
  Node* save = ops::SaveV2(prefix, Strings({"a"}), Strings({""}), {value});
  const Output missing = ops::RestoreV2(prefix, Strings({"b"}), Strings({""}), {DType::kFloat32})[0];
  const Output other_type = ops::RestoreV2(prefix, Strings({"a"}), Strings({""}), {DType::kInt32})[0];
  const Output other_shape = ops::RestoreV2(prefix, Strings({"a"}), Strings({"3 0,1"}), {DType::kFloat32})[0];
  const Output no_file = ops::RestoreV2(ops::Const(g_, Path("x")), Strings({"a"}), Strings({""}), {DType::kFloat32})[0];
  Session session(g_);
  session.Run(save);
  EXPECT_THAT(ErrorOf([&] { session.Run(missing); }), HasSubstr("Key b not found in checkpoint"));
  EXPECT_THAT(ErrorOf([&] { session.Run(other_type); }), HasSubstr("expected dtype int32; got float32"));
  EXPECT_THAT(ErrorOf([&] { session.Run(other_shape); }), HasSubstr("expected full shape [3]; got [2]"));
  EXPECT_THAT(ErrorOf([&] { session.Run(no_file); }), HasSubstr("NotFound"));
}

TEST_F(SaveRestoreOpsTest, AProbeTellsAFolderThatIsNotShared) {
  const auto probe = [&](const std::string& path, const std::string& content) {
    return g_.Op("_CheckpointProbe")
        .Name("CheckpointProbe")
        .Input(ops::Const(g_, path))
        .Input(ops::Const(g_, content))
        .Finish();
  };
  Node* right = probe(Path("probe"), "abc");
  Node* other = probe(Path("probe"), "xyz");
  Node* none = probe(Path("none"), "abc");
  CreateDirectories(dir_);
  WriteFileAtomically(Path("probe"), "abc");
  Session session(g_);
  session.Run(right);
  for (Node* bad : {other, none}) {
    const std::string error = ErrorOf([&] { session.Run(bad); });
    EXPECT_THAT(error, HasSubstr("FailedPrecondition"));
    EXPECT_THAT(error, HasSubstr("/job:localhost"));
    EXPECT_THAT(error, HasSubstr("share"));
  }
}

TEST_F(SaveRestoreOpsTest, ASnapshotThatIsNotThereIsNamed) {
  const Output read =
      g_.Op("_SnapshotRead").Name("SnapshotRead").Input(ops::Const(g_, std::vector<int64_t>{99, 0, 0, 4})).Finish1();
  Node* drop = g_.Op("_SnapshotDrop").Name("SnapshotDrop").Input(ops::Const(g_, int64_t{99})).Finish();
  Session session(g_);
  EXPECT_THAT(ErrorOf([&] { session.Run(read); }), HasSubstr("snapshot 99"));
  session.Run(drop);
}

}  // namespace
}  // namespace cohort
