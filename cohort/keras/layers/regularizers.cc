#include "cohort/keras/layers/regularizers.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/files/serialization.h"
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

ConfigValue Regularizer::Serialized() const {
  if (!valid() || !serialized_.is_null()) return serialized_;
  throw UnimplementedError(
      "[keras/regularizers] expected a regularizer of Keras's; got one of the program's own, which a file cannot "
      "describe");
}

namespace regularizers {
namespace {

Output SumOfAbsolutes(Output weight, double l1) { return Scaled(ops::Sum(ops::Abs(weight)), l1); }
Output SumOfSquares(Output weight, double l2) { return Scaled(ops::Sum(ops::Square(weight)), l2); }

}  // namespace

Regularizer L1(double l1) {
  return Regularizer([l1](Output weight) { return SumOfAbsolutes(weight, l1); },
                     SerializedObject("keras.regularizers", "L1", {{"l1", l1}}));
}

Regularizer L2(double l2) {
  return Regularizer([l2](Output weight) { return SumOfSquares(weight, l2); },
                     SerializedObject("keras.regularizers", "L2", {{"l2", l2}}));
}

Regularizer L1L2(double l1, double l2) {
  return Regularizer([l1, l2](Output weight) { return ops::Add(SumOfAbsolutes(weight, l1), SumOfSquares(weight, l2)); },
                     SerializedObject("keras.regularizers", "L1L2", {{"l1", l1}, {"l2", l2}}));
}

}  // namespace regularizers
namespace {

Regularizer ReadRegularizer(ConfigReader& reader) {
  double l1 = 0, l2 = 0;
  reader.Read("l1", l1);
  reader.Read("l2", l2);
  if (reader.class_name() == "L1") return regularizers::L1(l1);
  return reader.class_name() == "L2" ? regularizers::L2(l2) : regularizers::L1L2(l1, l2);
}

}  // namespace

Regularizer DeserializeRegularizer(const ConfigValue& value) {
  if (value.is_null()) return {};
  const std::string name = NameIn(value);
  if (!name.empty()) return name;
  static const ConfigMakers<Regularizer> makers(
      "regularizer", {{"L1", ReadRegularizer}, {"L2", ReadRegularizer}, {"L1L2", ReadRegularizer}});
  return MakeFromConfig("regularizer", makers, value);
}

}  // namespace cohort::keras
