#include "cohort/backends/cpu/cpu_variable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/device/testing/add_one.h"

namespace cohort {
namespace {

using testing::AddOne;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Matrix(int64_t rows, int64_t columns) {
  Tensor matrix(DType::kFloat32, Shape{rows, columns});
  for (int64_t i = 0; i < rows * columns; ++i) matrix.data<float>()[i] = static_cast<float>(i);
  return matrix;
}

TEST(CpuVariableTest, ReadBeforeTheFirstAssignNamesTheVariable) {
  CpuVariable v("layer/kernel", DType::kFloat32, Shape{2});
  EXPECT_FALSE(v.initialized());
  const std::string expected = "Attempting to use uninitialized value layer/kernel";
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { v.Read(); }), HasSubstr(expected));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { v.Update(AddOne); }), HasSubstr(expected));
  const Tensor index = Tensor::Scalar<int32_t>(0);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { v.Gather(index, HostAllocator()); }), HasSubstr(expected));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { v.UpdateRows(index, {}, [](auto, auto) {}); }),
              HasSubstr(expected));
  EXPECT_EQ(v.version(), 0);
}

TEST(CpuVariableTest, AssignChecksDtypeAndShape) {
  CpuVariable v("v", DType::kFloat32, Shape{-1, 2});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                v.Assign(Tensor::Vector<float>({1, 2}));
              }),
              HasSubstr("float32[2]"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                v.Assign(Tensor::Zeros(DType::kInt32, Shape{1, 2}));
              }),
              HasSubstr("int32[1,2]"));
  EXPECT_FALSE(v.initialized());
  v.Assign(Matrix(3, 2));
  v.Assign(Matrix(1, 2));
  EXPECT_EQ(v.Read().shape(), (Shape{1, 2}));
  EXPECT_EQ(v.version(), 2);
}

TEST(CpuVariableTest, DenseUpdateIsInPlaceOnlyWhereNobodyReads) {
  CpuVariable v("v", DType::kFloat32, Shape{2});
  v.Assign(Tensor::Vector<float>({1, 2}));
  const void* first = v.Read().raw_data();
  v.Update(AddOne);
  EXPECT_EQ(v.Read().raw_data(), first);
  const Tensor held = v.Read();
  v.Update(AddOne);
  EXPECT_NE(v.Read().raw_data(), first);
  EXPECT_THAT(held.ToVector<float>(), ElementsAre(2, 3));
  EXPECT_THAT(v.Read().ToVector<float>(), ElementsAre(3, 4));
  EXPECT_EQ(v.version(), 3);
}

TEST(CpuVariableTest, AnAssignedTensorOfSomebodyElseIsNotWrittenInto) {
  const Tensor constant = Tensor::Vector<float>({1, 2});
  CpuVariable a("a", DType::kFloat32, Shape{2});
  CpuVariable b("b", DType::kFloat32, Shape{2});
  a.Assign(constant);
  b.Assign(constant);
  a.Update(AddOne);
  b.UpdateRows(Tensor::Vector<int32_t>({1}), {},
               [](int64_t, std::span<void* const> rows) { *static_cast<float*>(rows[0]) = 9; });
  EXPECT_THAT(constant.ToVector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(a.Read().ToVector<float>(), ElementsAre(2, 3));
  EXPECT_THAT(b.Read().ToVector<float>(), ElementsAre(1, 9));
}

TEST(CpuVariableTest, AFailedCopyingUpdateLeavesTheValue) {
  CpuVariable v("v", DType::kFloat32, Shape{2});
  v.Assign(Tensor::Vector<float>({1, 2}));
  const Tensor held = v.Read();
  EXPECT_THROW(v.Update([](const Tensor&, Tensor& out) {
    out.data<float>()[0] = 7;
    throw InvalidArgumentError("no");
  }),
               InvalidArgumentError);
  EXPECT_THAT(v.Read().ToVector<float>(), ElementsAre(1, 2));
  EXPECT_EQ(v.version(), 1);
}

TEST(CpuVariableTest, UpdateTogetherChangesAllInTheOrderGiven) {
  CpuVariable a("a", DType::kFloat32, Shape{1});
  CpuVariable b("b", DType::kFloat32, Shape{1});
  a.Assign(Tensor::Vector<float>({1}));
  b.Assign(Tensor::Vector<float>({10}));
  for (const std::vector<VariableResource*>& order : {std::vector<VariableResource*>{&a, &b}, {&b, &a}}) {
    VariableResource::UpdateTogether(order, [](std::span<const Tensor> olds, std::span<Tensor> outs) {
      const float first = *olds[0].data<float>();
      const float second = *olds[1].data<float>();
      *outs[0].data<float>() = first + second;
      *outs[1].data<float>() = second + 1;
    });
  }
  EXPECT_THAT(a.Read().ToVector<float>(), ElementsAre(12));  // 1 + 10, then + 1
  EXPECT_THAT(b.Read().ToVector<float>(), ElementsAre(22));  // 10 + 1, then + 11
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                const std::vector<VariableResource*> twice = {&a, &b, &a};
                VariableResource::UpdateTogether(twice, [](auto, auto) { FAIL(); });
              }),
              HasSubstr("'a' twice"));
  a.Update(AddOne);  // and nothing stays locked
}

TEST(CpuVariableTest, GatherTakesIndicesOfAnyShape) {
  CpuVariable v("v", DType::kFloat32, Shape{3, 2});
  v.Assign(Matrix(3, 2));
  const Tensor rows = v.Gather(Tensor::FromValues<int64_t>({2, 0, 2, 1}, Shape{2, 2}), HostAllocator());
  EXPECT_EQ(rows.shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(rows.ToVector<float>(), ElementsAre(4, 5, 0, 1, 4, 5, 2, 3));
  EXPECT_EQ(v.Gather(Tensor::Scalar<int32_t>(1), HostAllocator()).shape(), (Shape{2}));
  EXPECT_EQ(v.Gather(Tensor::Vector<int32_t>({}), HostAllocator()).shape(), (Shape{0, 2}));
}

TEST(CpuVariableTest, IndicesAreCheckedBeforeAnythingChanges) {
  CpuVariable v("v", DType::kFloat32, Shape{3, 1});
  v.Assign(Matrix(3, 1));
  int changed = 0;
  for (const int64_t bad : {int64_t{3}, int64_t{-1}, int64_t{1} << 40}) {
    const Tensor indices = Tensor::Vector<int64_t>({0, 1, bad});
    const std::string expected = "indices[2] = " + std::to_string(bad) + " is not in [0, 3)";
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { v.Gather(indices, HostAllocator()); }), HasSubstr(expected));
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { v.UpdateRows(indices, {}, [&](auto, auto) { ++changed; }); }),
                HasSubstr(expected));
  }
  EXPECT_EQ(changed, 0);
  EXPECT_EQ(v.version(), 1);
  EXPECT_THROW(v.Gather(Tensor::Vector<float>({0}), HostAllocator()), InvalidArgumentError);
}

TEST(CpuVariableTest, UpdateRowsHandsOverTheRowsOfTheSlotsToo) {
  CpuVariable v("v", DType::kFloat32, Shape{70, 2});
  CpuVariable slot("slot", DType::kFloat64, Shape{70});
  v.Assign(Tensor::Zeros(DType::kFloat32, Shape{70, 2}));
  slot.Assign(Tensor::Zeros(DType::kFloat64, Shape{70}));
  CpuVariable* const slots[] = {&slot};
  std::vector<int64_t> positions;
  // 5 and 69 share a stripe; 5 comes twice
  v.UpdateRows(Tensor::Vector<int32_t>({5, 69, 0, 5}), slots, [&](int64_t position, std::span<void* const> rows) {
    positions.push_back(position);
    *static_cast<double*>(rows[1]) += 1;
    static_cast<float*>(rows[0])[1] += static_cast<float>(*static_cast<double*>(rows[1]));
  });
  EXPECT_THAT(positions, ElementsAre(0, 1, 2, 3));
  const Tensor values = v.Read();
  EXPECT_EQ(values.data<float>()[5 * 2 + 1], 3);
  EXPECT_EQ(values.data<float>()[69 * 2 + 1], 1);
  EXPECT_EQ(values.data<float>()[1], 1);
  EXPECT_EQ(slot.Read().data<double>()[5], 2);
  EXPECT_EQ(v.version(), 2);
  EXPECT_EQ(slot.version(), 2);
}

TEST(CpuVariableTest, UpdateRowsRefusesSlotsThatDoNotFit) {
  CpuVariable v("v", DType::kFloat32, Shape{4, 2});
  CpuVariable slot("short", DType::kFloat32, Shape{3, 2});
  v.Assign(Matrix(4, 2));
  slot.Assign(Matrix(3, 2));
  CpuVariable* const bad[] = {&slot};
  CpuVariable* const twice[] = {&v};
  const Tensor indices = Tensor::Vector<int32_t>({0});
  const auto never = [](int64_t, std::span<void* const>) { FAIL(); };
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { v.UpdateRows(indices, bad, never); }),
              HasSubstr("expected 4 rows in slot 'short'"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { v.UpdateRows(indices, twice, never); }), HasSubstr("'v' twice"));
}

TEST(CpuVariableTest, RowModeCopiesWholeReadsAndAssigns) {
  CpuVariable v("v", DType::kFloat32, Shape{200, 3});
  const Tensor initial = Matrix(200, 3);
  v.Assign(initial);
  const Tensor before = v.Read();
  v.Gather(Tensor::Scalar<int32_t>(0), HostAllocator());
  const Tensor copy = v.Read();
  EXPECT_EQ(copy.ToVector<float>(), initial.ToVector<float>());
  v.UpdateRows(Tensor::Vector<int32_t>({199}), {},
               [](int64_t, std::span<void* const> rows) { *static_cast<float*>(rows[0]) = -1; });
  EXPECT_EQ(before.data<float>()[199 * 3], 199 * 3);
  EXPECT_EQ(copy.data<float>()[199 * 3], 199 * 3);
  EXPECT_EQ(v.Read().data<float>()[199 * 3], -1);
  v.Update(AddOne);
  EXPECT_EQ(v.Read().data<float>()[199 * 3], 0);
  v.Assign(initial);
  v.Update(AddOne);
  EXPECT_EQ(initial.data<float>()[1], 1);
  EXPECT_EQ(v.Read().data<float>()[1], 2);
}

TEST(CpuVariableTest, AScalarHasNoRows) {
  CpuVariable v("step", DType::kInt64, Shape());
  v.Assign(Tensor::Scalar<int64_t>(3));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { v.Gather(Tensor::Scalar<int32_t>(0), HostAllocator()); }),
              HasSubstr("'step' of int64[]"));
  EXPECT_EQ(v.Read().scalar<int64_t>(), 3);
}

}  // namespace
}  // namespace cohort
