#include "cohort/data/serialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/readers/readers.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/testing/drain.h"

namespace cohort::data {
namespace {

using ::testing::HasSubstr;

std::vector<Dataset> AllKinds() {
  using D = Dataset;
  const Tensor numbers = Tensor::FromValues<int64_t>(std::vector<int64_t>{5, 4, 3, 2, 1, 0}, Shape{3, 2});
  return {
      D::FromTensorSlices({numbers, numbers}),
      D::FromTensors({numbers}).Repeat(2),
      D::Range(9, -4, -3),
      D::Zip({D::Range(3), D::FromTensorSlices({numbers})}),
      D::Range(3).Concatenate(D::Range(5)),
      D::Range(30).Shuffle(7).Batch(4, true).Prefetch(2),
      D::Range(30).Shuffle(7, -3, false).Repeat(2).Batch(4),
      D::Range(30).Batch(4).Unbatch().Cache(),
      D::Range(30).Repeat(2).Take(20).Skip(3).Shard(3, 1),
      D::Range(5).Skip(-1),
      D::FromTensors({numbers}).PaddedBatch(2),
      D::Zip({D::FromTensors({numbers}).Concatenate(D::FromTensors({Tensor::Zeros(DType::kInt64, Shape{1, 3})})),
              D::Range(2)})
          .PaddedBatch(3, {.padded_shapes = {{-1, 4}, {}}, .padding_values = {Tensor::Scalar(int64_t{9}), Tensor()}}),
      Rebatch(D::Range(11).Batch(4), {3, 1}),
      AutoShard(LegacyRebatch(D::Range(11).Batch(4), 3), 2, 1, AutoShardPolicy::kData),
  };
}

TEST(SerializeTest, EveryKindComesBack) {
  for (const Dataset& dataset : AllKinds()) {
    const Dataset copy = Deserialize(Serialize(dataset));
    EXPECT_EQ(copy.ToString(), dataset.ToString());
    EXPECT_EQ(copy.element_spec(), dataset.element_spec());
    EXPECT_EQ(Drain(copy), Drain(dataset)) << dataset.ToString();
  }
}

TEST(SerializeTest, TensorsAreOutsideAndOnce) {
  const Tensor large = Tensor::Zeros(DType::kInt64, Shape{1000});
  const Dataset slices = Dataset::FromTensorSlices({large});
  const SerializedDataset serialized = Serialize(slices.Concatenate(Dataset::FromTensorSlices({large.Clone()})));
  EXPECT_LT(serialized.description.size(), 100u);
  ASSERT_EQ(serialized.tensors.size(), 1u);
  EXPECT_EQ(serialized.tensors.begin()->second.raw_data(), large.raw_data());
}

TEST(SerializeTest, HashTellsTensorsApart) {
  std::set<uint64_t> hashes;
  std::vector<Tensor> tensors = {
      Tensor::Vector<int64_t>({1, 2}),         Tensor::Vector<int64_t>({2, 1}),
      Tensor::Vector<float>({1, 2}),           Tensor::Vector<std::string>({"ab"}),
      Tensor::Vector<std::string>({"a", "b"}), Tensor::Scalar("ab"),
      Tensor::Zeros(DType::kUint8, Shape{3}),  Tensor::Zeros(DType::kUint8, Shape{1, 3}),
      Tensor::Zeros(DType::kBool, Shape{3}),
  };
  for (const Tensor& tensor : tensors) {
    for (const auto& [hash, one] : Serialize(Dataset::FromTensors({tensor})).tensors) hashes.insert(hash);
  }
  EXPECT_EQ(hashes.size(), tensors.size());
}

TEST(SerializeTest, FunctionsOfTheProcessAreRefusedByName) {
  try {
    Serialize(Dataset::Range(3).Map(Times(2), kInt64Scalar).Batch(2));
    FAIL();
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("got a Map that calls a function of this process"));
  }
  EXPECT_THROW(Serialize(Dataset::Range(3).Filter([](const Element&) { return true; })), FailedPreconditionError);
  const Dataset made = Dataset::FromGenerator([] { return HostElementSource(); }, kInt64Scalar);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { Serialize(made); }), HasSubstr("got a FromGenerator"));
}

// The names of files may be elements, so a reader asks when it opens a file.
TEST(SerializeTest, EachFileIsCheckedBeforeItIsUsed) {
  const cohort::testing::TempFolder folder;
  WriteFileAtomically(folder / "open", "a\n");
  WriteFileAtomically(folder / "closed", "b\n");
  std::vector<std::string> asked;
  const auto check = [&](const std::string& path) {
    asked.push_back(path);
    if (path != folder / "open") throw PermissionDeniedError("not this one");
  };
  const Dataset lines = TextLineDataset(std::vector<std::string>{folder / "open", folder / "closed"});
  const auto iterator = Deserialize(Serialize(lines), check).MakeIterator();
  EXPECT_EQ(iterator->Next()[0].scalar<std::string>(), "a");
  EXPECT_THROW(iterator->Next(), PermissionDeniedError);
  EXPECT_EQ(asked, (std::vector<std::string>{folder / "open", folder / "closed"}));
  EXPECT_THROW(Deserialize(Serialize(Dataset::Range(3).Cache(folder / "kept")), check), PermissionDeniedError);
  EXPECT_EQ(asked.back(), folder / "kept.cache");
}

TEST(SerializeTest, DamageIsTold) {
  for (const Dataset& dataset : AllKinds()) {
    SerializedDataset serialized = Serialize(dataset);
    const std::string description = serialized.description;
    for (size_t size = 0; size < description.size(); ++size) {
      serialized.description = description.substr(0, size);
      EXPECT_THROW(Deserialize(serialized), Error) << dataset.ToString() << " cut to " << size;
    }
    for (size_t at = 0; at < description.size(); ++at) {
      serialized.description = description;
      serialized.description[at] = static_cast<char>(serialized.description[at] ^ 0x41);
      try {
        Deserialize(serialized);
      } catch (const Error&) {  // another dataset or an error, nothing worse
      }
    }
    serialized.description = description;
    if (serialized.tensors.empty()) continue;
    serialized.tensors.begin()->second = Tensor::Scalar(int64_t{77});
    EXPECT_THROW(Deserialize(serialized), DataLossError);
    serialized.tensors.clear();
    EXPECT_THROW(Deserialize(serialized), DataLossError);
  }
}

}  // namespace
}  // namespace cohort::data
