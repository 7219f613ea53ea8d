#include "cohort/keras/regularizers.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

Output Scaled(Output value, double factor) { return ops::Mul(ops::ScalarLike(value, factor), value); }

}  // namespace

Regularizer::Regularizer(const std::string& name) {
  constexpr double kDefault = 0.01;
  if (name == "l1" || name == "L1") {
    *this = regularizers::L1();
  } else if (name == "l2" || name == "L2") {
    *this = regularizers::L2();
  } else if (name == "l1_l2" || name == "L1L2") {
    *this = regularizers::L1L2(kDefault, kDefault);
  } else {
    throw InvalidArgumentError(StrCat("[keras/regularizers] expected one of l1, l2, l1_l2; got '", name, "'"));
  }
}

namespace regularizers {

Regularizer L1(double l1) {
  return Regularizer([l1](Output weight) { return Scaled(ops::Sum(ops::Abs(weight)), l1); });
}

Regularizer L2(double l2) {
  return Regularizer([l2](Output weight) { return Scaled(ops::Sum(ops::Square(weight)), l2); });
}

Regularizer L1L2(double l1, double l2) {
  return Regularizer([first = L1(l1), second = L2(l2)](Output weight) {
    return ops::Add(first.Penalty(weight), second.Penalty(weight));
  });
}

}  // namespace regularizers
}  // namespace cohort::keras
