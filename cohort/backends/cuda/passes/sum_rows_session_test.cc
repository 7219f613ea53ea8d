// Sessions on GPUs whose optimizers sum repeated rows, compared with the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cohort/backends/cuda/testing/both_devices.h"
#include "cohort/backends/cuda/testing/session_fixture.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/state.h"
#include "cohort/ops/training.h"
#include "cohort/ops/variables.h"

namespace cohort::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SumRowsSessionTest : public CardsTest {};

constexpr int64_t kRows = 11, kColumns = 3;

Tensor Numbers(DType dtype, const Shape& shape, float first, float step) {
  Tensor values(DType::kFloat32, shape);
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    values.data<float>()[i] = first + step * static_cast<float>(i * 7 % 23);
  }
  if (dtype == DType::kFloat32) return values;
  Tensor wide(DType::kFloat64, shape);
  for (int64_t i = 0; i < values.num_elements(); ++i) wide.data<double>()[i] = values.data<float>()[i];
  return wide;
}

// How the updates of a table follow from the sums of its rows.
using MakeUpdate = std::function<Node*(const ops::Variable& table, const ops::Variable& slot, const Output& sums,
                                       const Output& rows, const Output& rate)>;

// A table that is updated by fed rows.
struct Table {
  Graph g;
  Output ids, values;
  ops::Variable table, slot;
  Node* update;

  Table(const std::string& device, DType dtype, DType index, const MakeUpdate& make) {
    const DeviceScope scope(g, device);
    ids = ops::Placeholder(g, index, Shape{-1}, "ids");
    values = ops::Placeholder(g, dtype, Shape{-1, kColumns}, "values");
    table = ops::Variable(g, Numbers(dtype, Shape{kRows, kColumns}, -1, 0.1f), {.name = "table"});
    slot = ops::Variable(g, Numbers(dtype, Shape{kRows, kColumns}, 0.1f, 0.01f), {.name = "slot"});
    const ops::UniqueResult unique = ops::Unique(ids);
    const Output sums = ops::UnsortedSegmentSum(values, unique.idx, ops::Size(unique.y));
    update = make(table, slot, sums, unique.y, ops::Const(g, ops::NumberTensor(dtype, 0.25)));
  }
  void Initialize(Session& session) { session.Run({}, {}, {table.initializer(), slot.initializer()}); }
  std::vector<Tensor> Both(Session& session) { return session.Run({}, {table.Read(), slot.Read()}); }
};

Node* Adagrad(const ops::Variable& table, const ops::Variable& slot, const Output& sums, const Output& rows,
              const Output& rate) {
  return ops::ResourceSparseApplyAdagrad(table.handle(), slot.handle(), rate, sums, rows);
}
Node* DescentOfClipped(const ops::Variable& table, const ops::Variable&, const Output& sums, const Output& rows,
                       const Output& rate) {
  const Output clipped = ops::Mul(sums, rate / ops::Sqrt(ops::Sum(ops::Square(sums))));
  return ops::ResourceScatterSub(table.handle(), rows, ops::Mul(clipped, rate));
}

TEST_F(SumRowsSessionTest, UpdatesAreThoseOfTheCpu) {
  for (const MakeUpdate& make : {MakeUpdate(Adagrad), MakeUpdate(DescentOfClipped)}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const DType index : {DType::kInt32, DType::kInt64}) {
        std::vector<std::vector<Tensor>> results;
        for (const char* device : {"/device:CPU:0", "/device:GPU:0"}) {
          Table t(device, dtype, index, make);
          Session session(t.g, "", Config());
          t.Initialize(session);
          // All rows at once, one row often (more than a chunk of the sum), and sizes around powers of two.
          for (const int64_t n : {1, 2, 11, 64, 65, 129, 300}) {
            for (const int64_t rows : {int64_t{1}, int64_t{2}, kRows}) {
              Tensor ids(index, Shape{n});
              for (int64_t i = 0; i < n; ++i) {
                const int64_t id = kRows - 1 - (i * i + i / 3) % rows;
                index == DType::kInt32 ? ids.data<int32_t>()[i] = static_cast<int32_t>(id)
                                       : ids.data<int64_t>()[i] = id;
              }
              session.Run({{t.ids, ids}, {t.values, Numbers(dtype, Shape{n, kColumns}, -0.1f, 0.01f)}}, {}, {t.update});
            }
          }
          results.push_back(t.Both(session));
        }
        for (int i = 0; i < 2; ++i) {
          ExpectSameTensor(results[0][static_cast<size_t>(i)], results[1][static_cast<size_t>(i)],
                           10 * ToleranceOf(dtype), StrCat(dtype, " ", index, " ", i));
        }
      }
    }
  }
}

// The update barrier of the session lets both wait for all sums.
TEST_F(SumRowsSessionTest, TheTablesOfAnOptimizerAreUpdatedInOneLaunch) {
  int64_t launches[2] = {};
  std::vector<Tensor> values[2];
  for (const bool apart : {false, true}) {
    Graph g;
    const DeviceScope scope(g, "/device:GPU:0");
    const Output rate = ops::Const(g, 0.25f);
    const Output ids = ops::Placeholder(g, DType::kInt32, Shape{-1}), rows = ops::Placeholder(g, DType::kFloat32);
    std::vector<Output> reads;
    std::vector<Node*> updates, initializers;
    for (const char* name : {"a", "b"}) {
      const ops::Variable table(g, Numbers(DType::kFloat32, Shape{kRows, kColumns}, -1, 0.1f), {.name = name});
      const ops::Variable slot(g, Numbers(DType::kFloat32, Shape{kRows, kColumns}, 0.1f, 0.01f),
                               {.name = StrCat(name, "/slot")});
      const ops::UniqueResult unique = ops::Unique(ops::Identity(ids));
      const Output sums = ops::UnsortedSegmentSum(ops::Identity(rows), unique.idx, ops::Size(unique.y));
      updates.push_back(Adagrad(table, slot, sums, unique.y, apart ? ops::Identity(rate) : rate));
      initializers.insert(initializers.end(), {table.initializer(), slot.initializer()});
      reads.insert(reads.end(), {table.value(), slot.value()});
    }
    Session session(g, "", Config());
    session.Run({}, {}, initializers);
    const int64_t before = counts_->launches();
    session.Run({{ids, Tensor::Vector<int32_t>({3, 1, 3, 0})},
                 {rows, Numbers(DType::kFloat32, Shape{4, kColumns}, -0.1f, 0.01f)}},
                {}, updates);
    launches[apart] = counts_->launches() - before;
    values[apart] = session.Run({}, reads);
  }
  for (size_t i = 0; i < 4; ++i) ExpectSameTensor(values[false][i], values[true][i], 0, StrCat("value ", i));
  // Of two nodes each would update one table, and all indices would be checked before the first update.
  EXPECT_EQ(launches[true] - launches[false], 1 + 2);
}

TEST_F(SumRowsSessionTest, WithoutRowsNothingChanges) {
  Table t("/device:GPU:0", DType::kFloat32, DType::kInt32, Adagrad);
  Session session(t.g, "", Config());
  t.Initialize(session);
  const std::vector<Tensor> before = t.Both(session);
  session.Run({{t.ids, Tensor(DType::kInt32, Shape{0})}, {t.values, Tensor(DType::kFloat32, Shape{0, kColumns})}}, {},
              {t.update});
  const std::vector<Tensor> after = t.Both(session);
  for (size_t i = 0; i < 2; ++i) ExpectSameTensor(before[i], after[i], 0, "no rows");
}

// The number that stands for no row inside of the step is no row if a program gives it.
TEST_F(SumRowsSessionTest, AnIndexThatIsNoRowIsNamedAndNothingChanges) {
  Table t("/device:GPU:0", DType::kFloat32, DType::kInt64, Adagrad);
  Session session(t.g, "", Config());
  t.Initialize(session);
  const std::vector<Tensor> before = t.Both(session);
  const std::pair<int64_t, std::string> bad[] = {{kRows, "11"},
                                                 {-3, "-3"},
                                                 {int64_t{1} << 61, StrCat(int64_t{1} << 61)},
                                                 {std::numeric_limits<int64_t>::max(), "9223372036854775807"},
                                                 {std::numeric_limits<int64_t>::min(), "-1"}};
  for (const auto& [id, named] : bad) {
    const Tensor ids = Tensor::Vector<int64_t>({2, 2, id, 5});
    EXPECT_THAT(
        MessageOf<InvalidArgumentError>([&] {
          session.Run({{t.ids, ids}, {t.values, Numbers(DType::kFloat32, Shape{4, kColumns}, 1, 1)}}, {}, {t.update});
        }),
        AllOf(HasSubstr(StrCat("indices[2] = ", named)), HasSubstr("table")))
        << id;
    const std::vector<Tensor> after = t.Both(session);
    for (size_t i = 0; i < 2; ++i) ExpectSameTensor(before[i], after[i], 0, StrCat("index ", id));
  }
}

TEST_F(SumRowsSessionTest, RowsAndIndicesOfDifferentNumbersAreAnError) {
  Table t("/device:GPU:0", DType::kFloat32, DType::kInt32, Adagrad);
  Session session(t.g, "", Config());
  t.Initialize(session);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                session.Run({{t.ids, Ints({1, 2, 2})}, {t.values, Numbers(DType::kFloat32, Shape{2, kColumns}, 1, 1)}},
                            {}, {t.update});
              }),
              HasSubstr("one index for each row of a gradient; got [3] for [2,3]"));
}

}  // namespace
}  // namespace cohort::cuda
