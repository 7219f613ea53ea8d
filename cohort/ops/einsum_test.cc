// What Einsum refuses, and sizes that are known only in the step. tests/ops/composite_cases.cc has its values.
#include "cohort/ops/einsum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;
using ::testing::Not;

class EinsumTest : public ::testing::Test {
 protected:
  Output Value(const Shape& shape) { return ops::Placeholder(graph_, DType::kFloat32, shape); }
  std::string Message(const std::string& equation, const std::vector<Output>& operands) {
    return MessageOf<InvalidArgumentError>([&] { ops::Einsum(equation, operands); });
  }
  Graph graph_;
};

TEST_F(EinsumTest, RefusesEquationsThatDoNotFit) {
  const Output matrix = Value({2, 3});
  EXPECT_THAT(Message("ij,jk->ik", {matrix}),
              AllOf(HasSubstr("one term for each of 1 operands"), HasSubstr("ij,jk->ik")));
  EXPECT_THAT(Message("ijk->i", {matrix}), HasSubstr("a letter for each dimension of operand 0, whose shape is [2,3]"));
  EXPECT_THAT(Message("...ijk->...", {matrix}), HasSubstr("a letter for each dimension of operand 0"));
  EXPECT_THAT(Message("i->i", {matrix}), HasSubstr("a letter for each dimension"));
  EXPECT_THAT(Message("i1->i", {matrix}), HasSubstr("expected letters"));
  EXPECT_THAT(Message("ij->i->j", {matrix}), HasSubstr("expected letters"));
  EXPECT_THAT(Message("......ij->i", {matrix}), HasSubstr("\"...\" at most once"));
  EXPECT_THAT(Message("ij->ik", {matrix}), HasSubstr("letters in the result that an operand has"));
  EXPECT_THAT(Message("ij->ii", {matrix}), HasSubstr("each letter once in the result"));
  EXPECT_THAT(Message("...j->j", {matrix}), HasSubstr("\"...\" in the result"));
  EXPECT_THAT(Message("ij,jk->ik", {matrix, Value({4, 2})}),
              HasSubstr("dimensions of one size for the letter 'j', but there are 3 and 4"));
  EXPECT_THAT(Message("ii->i", {matrix}), HasSubstr("the letter 'i', but there are 2 and 3"));
  EXPECT_THAT(Message("i->i", {Value(Shape::UnknownRank())}), HasSubstr("operands of known rank"));
  EXPECT_THAT(Message("->", {}), HasSubstr("at least one operand"));
}

TEST_F(EinsumTest, KnowsTheShapeIfTheOperandsHaveOne) {
  EXPECT_EQ(ops::Einsum("abcd,cbe->ade", {Value({2, 3, 4, 5}), Value({4, 3, 6})}).shape(), (Shape{2, 5, 6}));
  EXPECT_EQ(ops::Einsum("bij,bjk->bik", {Value({-1, 2, 3}), Value({-1, 3, 4})}).shape(), (Shape{-1, 2, 4}));
}

TEST_F(EinsumTest, SizesThatAreKnownInTheStepMustAgree) {
  const auto run = [](const std::string& equation, const std::vector<Shape>& declared, const std::vector<Shape>& fed) {
    Graph graph;
    std::vector<Output> operands;
    Interpreter::Feeds feeds;
    for (size_t i = 0; i < fed.size(); ++i) {
      operands.push_back(ops::Placeholder(graph, DType::kFloat32, declared[i]));
      feeds.emplace_back(operands[i], Tensor(DType::kFloat32, fed[i]));
    }
    return Interpreter().Run1(ops::Einsum(equation, operands), feeds).shape();
  };
  const auto unknown = [](const std::vector<Shape>& shapes) {
    std::vector<Shape> declared;
    for (const Shape& shape : shapes) declared.push_back(Shape::UnknownDims(shape.rank()));
    return declared;
  };
  struct Row {
    const char* equation;
    std::vector<Shape> good;
    Shape good_result;
    std::vector<Shape> bad;
    const char* message;
  };
  const Row rows[] = {
      {"ijk,jkl->il", {{2, 3, 4}, {3, 4, 5}}, {2, 5}, {{2, 3, 4}, {4, 3, 5}}, "[4,3,5] (60 elements) to [3,3,5]"},
      {"bij,bjk->bik", {{5, 2, 3}, {5, 3, 4}}, {5, 2, 4}, {{1, 2, 3}, {5, 3, 4}}, "[5,3,4] (60 elements) to [1,3,4]"},
      {"bij,bjk->bik", {{5, 2, 3}, {5, 3, 4}}, {5, 2, 4}, {{5, 2, 3}, {1, 3, 4}}, "[1,3,4] (12 elements) to [5,3,4]"},
      {"i,i->i", {{3}, {3}}, {3}, {{3}, {1}}, "[1] (1 elements) to [3]"},
      {"ii->i", {{3, 3}}, {3}, {{2, 3}}, "[2,3] (6 elements) to [2,2]"},
      {"ij,kj,jl->ikl", {{2, 3}, {4, 3}, {3, 5}}, {2, 4, 5}, {{2, 3}, {4, 3}, {1, 5}}, "[1,5] (5 elements) to [3,5]"},
      {"...ij,...jk->...ik", {{7, 2, 3}, {3, 4}}, {7, 2, 4}, {{7, 2, 3}, {1, 4}}, "[1,4] (4 elements) to [3,4]"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(run(row.equation, unknown(row.good), row.good), row.good_result) << row.equation;
    const std::string message = MessageOf<InvalidArgumentError>([&] { run(row.equation, unknown(row.bad), row.bad); });
    EXPECT_THAT(message, HasSubstr(row.message)) << row.equation;
    // It is the same if one operand has the shape that it says.
    for (size_t i = 0; row.bad.size() > 1 && i < row.bad.size(); ++i) {
      std::vector<Shape> declared = unknown(row.bad);
      declared[i] = row.bad[i];
      EXPECT_THROW(run(row.equation, declared, row.bad), InvalidArgumentError) << row.equation << ", " << i;
    }
  }
}

TEST_F(EinsumTest, TheNodeThatComparesSizesHasTheLetter) {
  ops::Einsum("bij,bjk->bik", {Value({-1, 2, 3}), Value({-1, 3, 4})});
  std::vector<std::string> names;
  for (const Node* node : graph_.nodes()) names.push_back(node->name());
  EXPECT_THAT(names, Contains("one_size_of_b"));
  EXPECT_THAT(names, Not(Contains("one_size_of_j")));
}

TEST_F(EinsumTest, TakesTheSizeThatOneOperandKnows) {
  const Output product = ops::Einsum("bij,bjk->bik", {Value({-1, 2, -1}), Value({5, 3, 4})});
  EXPECT_EQ(product.shape(), (Shape{5, 2, 4}));
  const auto count = [&](const Shape& a, const Shape& b) {
    const int before = graph_.num_nodes();
    ops::Einsum("ij,jk->ik", {Value(a), Value(b)});
    return graph_.num_nodes() - before;
  };
  // Letters that occur once, and known sizes, need no further nodes.
  EXPECT_EQ(count({-1, 3}, {3, -1}), count({2, 3}, {3, 4}));
}

TEST_F(EinsumTest, MultipliesIntegers) {
  const Output a = ops::Const(graph_, std::vector<int32_t>{1, 2, 3, 4}, Shape{2, 2});
  const Output b = ops::Const(graph_, std::vector<int32_t>{1, -1, 2, 1}, Shape{2, 2});
  EXPECT_THAT(Interpreter().Run1(ops::Einsum("ij,jk->ki", {a, b})).ToVector<int32_t>(), ElementsAre(5, 11, 1, 1));
}

}  // namespace
}  // namespace cohort
