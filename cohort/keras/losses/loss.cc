// The functions that all losses share: sums, names, class weights.
#include "cohort/keras/losses/loss.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/names.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

// Returns the number of loss values. If each example has one row, the targets alone determine it. Replicas can then add
// their counts while they compute predictions.
Output CountOf(const Output& values, const Output& y_true) {
  const Shape& shape = values.shape();
  const bool rows_unknown = shape.has_rank() && shape.rank() > 0 && shape.dim(0) < 0 && y_true.shape().has_rank() &&
                            y_true.shape().rank() > 0 && y_true.shape().dim(0) < 0;
  if (!rows_unknown || !shape.Sub(1, shape.rank()).IsFullyDefined()) {
    return ops::Cast(ops::Size(values, DType::kInt64), DType::kFloat32);
  }
  const Output rows = ops::Squeeze(ops::Slice(ops::ShapeOf(y_true, DType::kInt64), {0}, {1}), {0});
  const auto each = static_cast<float>(shape.Sub(1, shape.rank()).num_elements());
  const Output count = ops::Cast(rows, DType::kFloat32);
  return each == 1.0f ? count : count * each;
}

class FunctionLoss final : public Loss {
 public:
  FunctionLoss(std::string name, std::function<Output(const Output&, const Output&)> per_example, Reduction reduction)
      : Loss(std::move(name), reduction), per_example_(std::move(per_example)) {}
  Output PerExample(const Output& y_true, const Output& y_pred) const override { return per_example_(y_true, y_pred); }

 private:
  const std::function<Output(const Output&, const Output&)> per_example_;
};

using MakeLoss = LossPtr (*)(const std::string& name);

template <typename Options, LossPtr (*kMake)(const Options&)>
LossPtr Named(const std::string& name) {
  Options options;
  options.name = name;
  return kMake(options);
}

constexpr MakeLoss kSparse = Named<SparseCrossentropyOptions, SparseCategoricalCrossentropy>;
constexpr MakeLoss kCategorical = Named<CrossentropyOptions, CategoricalCrossentropy>;
constexpr MakeLoss kBinary = Named<CrossentropyOptions, BinaryCrossentropy>;
constexpr MakeLoss kSquared = Named<LossOptions, MeanSquaredError>;
constexpr MakeLoss kAbsolute = Named<LossOptions, MeanAbsoluteError>;
constexpr MakeLoss kPercentage = Named<LossOptions, MeanAbsolutePercentageError>;
constexpr MakeLoss kLogarithmic = Named<LossOptions, MeanSquaredLogarithmicError>;
constexpr MakeLoss kLogCosh = Named<LossOptions, LogCosh>;
constexpr MakeLoss kPoisson = Named<LossOptions, Poisson>;
constexpr MakeLoss kHinge = Named<LossOptions, Hinge>;
constexpr MakeLoss kSquaredHinge = Named<LossOptions, SquaredHinge>;
constexpr MakeLoss kCosine = Named<LossOptions, CosineSimilarity>;
constexpr MakeLoss kDivergence = Named<LossOptions, KLDivergence>;
constexpr MakeLoss kBinaryFocal = Named<BinaryFocalCrossentropyOptions, BinaryFocalCrossentropy>;
constexpr MakeLoss kCategoricalFocal = Named<CategoricalFocalCrossentropyOptions, CategoricalFocalCrossentropy>;
constexpr MakeLoss kCategoricalHinge = Named<LossOptions, CategoricalHinge>;
constexpr MakeLoss kDice = Named<DiceOptions, Dice>;
constexpr MakeLoss kTversky = Named<TverskyOptions, Tversky>;
constexpr MakeLoss kHuber = Named<HuberOptions, Huber>;

const NameTable<MakeLoss>& LossTable() {
  static const NameTable<MakeLoss> table("loss", {
                                                     {"SparseCategoricalCrossentropy", kSparse},
                                                     {"sparse_categorical_crossentropy", kSparse},
                                                     {"CategoricalCrossentropy", kCategorical},
                                                     {"categorical_crossentropy", kCategorical},
                                                     {"BinaryCrossentropy", kBinary},
                                                     {"binary_crossentropy", kBinary},
                                                     {"bce", kBinary},
                                                     {"BCE", kBinary},
                                                     {"MeanSquaredError", kSquared},
                                                     {"mean_squared_error", kSquared},
                                                     {"mse", kSquared},
                                                     {"MSE", kSquared},
                                                     {"MeanAbsoluteError", kAbsolute},
                                                     {"mean_absolute_error", kAbsolute},
                                                     {"mae", kAbsolute},
                                                     {"MAE", kAbsolute},
                                                     {"MeanAbsolutePercentageError", kPercentage},
                                                     {"mean_absolute_percentage_error", kPercentage},
                                                     {"mape", kPercentage},
                                                     {"MAPE", kPercentage},
                                                     {"MeanSquaredLogarithmicError", kLogarithmic},
                                                     {"mean_squared_logarithmic_error", kLogarithmic},
                                                     {"msle", kLogarithmic},
                                                     {"MSLE", kLogarithmic},
                                                     {"LogCosh", kLogCosh},
                                                     {"log_cosh", kLogCosh},
                                                     {"Poisson", kPoisson},
                                                     {"poisson", kPoisson},
                                                     {"Hinge", kHinge},
                                                     {"hinge", kHinge},
                                                     {"SquaredHinge", kSquaredHinge},
                                                     {"squared_hinge", kSquaredHinge},
                                                     {"CosineSimilarity", kCosine},
                                                     {"cosine_similarity", kCosine},
                                                     {"KLDivergence", kDivergence},
                                                     {"kl_divergence", kDivergence},
                                                     {"kld", kDivergence},
                                                     {"KLD", kDivergence},
                                                     {"Huber", kHuber},
                                                     {"huber", kHuber},
                                                     {"BinaryFocalCrossentropy", kBinaryFocal},
                                                     {"binary_focal_crossentropy", kBinaryFocal},
                                                     {"CategoricalFocalCrossentropy", kCategoricalFocal},
                                                     {"categorical_focal_crossentropy", kCategoricalFocal},
                                                     {"CategoricalHinge", kCategoricalHinge},
                                                     {"categorical_hinge", kCategoricalHinge},
                                                     {"Dice", kDice},
                                                     {"dice", kDice},
                                                     {"Tversky", kTversky},
                                                     {"tversky", kTversky},
                                                 });
  return table;
}

}  // namespace

LossSums Loss::Sums(const Output& y_true, const Output& y_pred, const Output& sample_weight, const Output& mask) const {
  const NameScope scope(y_pred.graph(), name_);
  const Aligned aligned = AlignRanks(y_true, y_pred);
  Output values = CastTo(PerExample(aligned.first, aligned.second), DType::kFloat32);
  LossSums sums;
  Output weights;
  if (sample_weight.valid()) {
    weights = AlignWeights(values, sample_weight);
    values = ops::Mul(values, weights);
  }
  Output counts;
  if (mask.valid()) {
    counts = MaskWeights(values, mask);
    values = ops::Mul(values, counts);
    weights = weights.valid() ? ops::Mul(weights, counts) : counts;
  }
  sums.sum = ops::Sum(values);
  if (reduction_ == Reduction::kMeanWithSampleWeight && weights.valid()) {
    sums.weight = ops::Sum(ops::Mul(ops::OnesLike(values), weights));  // broadcast as they are used
  } else if (reduction_ == Reduction::kSumOverBatchSize && counts.valid()) {
    sums.weight = ops::Sum(ops::Mul(ops::OnesLike(values), counts));
  } else if (reduction_ != Reduction::kSum) {
    sums.weight = CountOf(values, y_true);
  }
  return sums;
}

ConfigValue Loss::Serialized() const {
  throw UnimplementedError(
      StrCat("[keras/loss] '", name_, "' is a loss of the program's own, which a file cannot describe"));
}

LossPtr LossFromFunction(std::string name, std::function<Output(const Output&, const Output&)> per_example,
                         Reduction reduction) {
  return std::make_shared<FunctionLoss>(std::move(name), std::move(per_example), reduction);
}

LossPtr LossByName(const std::string& name) {
  // Keras shows a loss by the name of its function.
  const MakeLoss make = LossTable().Find(name);
  return make("");
}

std::vector<std::string> LossNames() { return LossTable().names(); }

Output ClassWeights(const std::map<int64_t, double>& weights, const Output& y_true) {
  Graph& graph = y_true.graph();
  const NameScope scope(graph, "class_weight");
  if (!weights.empty() && weights.begin()->first < 0) {
    throw InvalidArgumentError(
        StrCat("[keras/loss] expected classes from 0 in class_weight; got ", weights.begin()->first));
  }
  // Has one entry more than there are classes, for classes without a weight.
  const int64_t others = weights.empty() ? 0 : weights.rbegin()->first + 1;
  std::vector<float> table(static_cast<size_t>(others + 1), 1.0f);
  for (const auto& [label, weight] : weights) table[static_cast<size_t>(label)] = static_cast<float>(weight);
  Output labels = y_true;
  const Shape& shape = y_true.shape();
  if (shape.has_rank() && shape.rank() > 1 && shape.dim(shape.rank() - 1) != 1) {
    labels = ops::ArgMax(labels, -1);
  } else if (shape.has_rank() && shape.rank() > 1) {
    labels = ops::Squeeze(labels, {-1});
  }
  labels = CastTo(labels, DType::kInt64);
  return ops::Gather(ops::Const(graph, table), ops::Minimum(labels, ops::Const(graph, others)));
}

}  // namespace cohort::keras
