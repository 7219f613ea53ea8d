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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;

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

TEST_F(EinsumTest, MultipliesIntegers) {
  const Output a = ops::Const(graph_, std::vector<int32_t>{1, 2, 3, 4}, Shape{2, 2});
  const Output b = ops::Const(graph_, std::vector<int32_t>{1, -1, 2, 1}, Shape{2, 2});
  EXPECT_THAT(Interpreter().Run1(ops::Einsum("ij,jk->ki", {a, b})).ToVector<int32_t>(), ElementsAre(5, 11, 1, 1));
}

}  // namespace
}  // namespace cohort
