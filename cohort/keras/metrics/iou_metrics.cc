// IoU and its like. The state is the confusion matrix: element (t, p) is the weight of the elements that have the label
// t and the prediction p.
#include <algorithm>
#include <numeric>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/elementwise_loss.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/metrics/metric_config.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"
#include "cohort/ops/partition.h"

namespace cohort::keras {
namespace {

// The state is a matrix of so many rows and columns, whose elements an int32 can count.
constexpr int64_t kMostClasses = 46'340;

void CheckClasses(int64_t num_classes) {
  if (num_classes >= 1 && num_classes <= kMostClasses) return;
  throw InvalidArgumentError(
      StrCat("[keras/metric] expected num_classes in [1, ", kMostClasses, "]; got ", num_classes));
}

using Ids = std::vector<int64_t>;

// What the classes of Keras's metrics have in common.
struct IouSettings {
  const char* class_name;
  int num_classes;
  Ids target_class_ids;
  IouOptions options;
  std::optional<double> threshold;  // of BinaryIoU
};

class IouMetric final : public Metric {
 public:
  explicit IouMetric(const IouSettings& settings) : Metric(settings.options.name), settings_(settings) {
    const auto fail = [&](const std::string& expected, const std::string& got) {
      throw InvalidArgumentError(
          StrCat("[keras/metric] ", settings_.class_name, " expected ", expected, "; got ", got));
    };
    CheckClasses(settings_.num_classes);
    const Ids& ids = settings_.target_class_ids;
    const auto in_range = [&](int64_t id) { return id >= 0 && id < settings_.num_classes; };
    if (ids.empty() || !std::all_of(ids.begin(), ids.end(), in_range)) {
      fail(StrCat("target_class_ids in [0, ", settings_.num_classes, ")"), StrCat("{", StrJoin(ids, ", "), "}"));
    }
  }

  MetricDirection direction() const override { return MetricDirection::kUp; }
  std::vector<MetricState> States() const override {
    return {{"total_confusion_matrix", Shape{settings_.num_classes, settings_.num_classes}}};
  }
  std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                 const Output& sample_weight) const override;
  Output Result(const std::vector<Output>& states) const override;
  ConfigValue Serialized() const override;

 private:
  // Returns class numbers, int64.
  Output Labels(const Output& y_true) const {
    return settings_.options.sparse_y_true ? CastTo(y_true, DType::kInt64) : ops::ArgMax(y_true, -1);
  }
  Output Predictions(const Output& y_pred) const {
    if (settings_.threshold) {
      const Output p = CastTo(y_pred, DType::kFloat32);
      return ops::Cast(ops::GreaterEqual(p, ops::ScalarLike(p, *settings_.threshold)), DType::kInt64);
    }
    return settings_.options.sparse_y_pred ? CastTo(y_pred, DType::kInt64) : ops::ArgMax(y_pred, -1);
  }

  const IouSettings settings_;
};

std::vector<Output> IouMetric::Increments(const Output& y_true, const Output& y_pred,
                                          const Output& sample_weight) const {
  const Aligned aligned = AlignRanks(Labels(y_true), Predictions(y_pred));
  const Output &labels = aligned.first, &predictions = aligned.second;
  if (!labels.shape().IsCompatibleWith(predictions.shape())) {
    throw InvalidArgumentError(StrCat(
        "[keras/metric] '", name(), "' expected as many labels as predictions; got y_true ", y_true.shape(),
        " and y_pred ", y_pred.shape(), "; sparse_y_true and sparse_y_pred say which of them have class numbers"));
  }
  Output weights = ops::Cast(ops::OnesLike(predictions), DType::kFloat64);
  if (sample_weight.valid()) {
    weights = ops::Mul(weights, CastTo(AlignWeights(predictions, sample_weight), DType::kFloat64));
  }
  const auto is_class = [&](const Output& ids) {
    return ops::LogicalAnd(ops::GreaterEqual(ids, ops::ScalarLike(ids, 0)),
                           ops::Less(ids, ops::ScalarLike(ids, settings_.num_classes)));
  };
  Output counts = ops::LogicalAnd(is_class(labels), is_class(predictions));
  if (const auto& ignored = settings_.options.ignore_class) {
    counts = ops::LogicalAnd(counts, ops::NotEqual(labels, ops::ScalarLike(labels, static_cast<double>(*ignored))));
  }
  const int64_t n = settings_.num_classes;
  const Output element = labels * n + predictions;
  const auto flat = [&](const Output& values) {
    return ops::Reshape(ops::SelectV2(counts, values, ops::ZerosLike(values)), {-1});
  };
  const Output size = ops::Const(y_pred.graph(), static_cast<int32_t>(n * n));
  return {ops::Reshape(ops::UnsortedSegmentSum(flat(weights), flat(element), size), {n, n})};
}

Output IouMetric::Result(const std::vector<Output>& states) const {
  const int64_t n = settings_.num_classes;
  const Output& matrix = states.at(0);
  Graph& graph = matrix.graph();
  std::vector<int64_t> diagonal;
  for (const int64_t id : settings_.target_class_ids) diagonal.push_back(id * (n + 1));
  const Output ids = ops::Const(graph, settings_.target_class_ids);
  const Output both = ops::Gather(ops::Reshape(matrix, {-1}), ops::Const(graph, diagonal), 0);
  const Output either = ops::Gather(ops::Sum(matrix, {0}), ids, 0) + ops::Gather(ops::Sum(matrix, {1}), ids, 0) - both;
  const Output occurs = ops::Greater(either, ops::ScalarLike(either, 1e-9));
  const Output ratios = ops::SelectV2(occurs, both / (either + kLossEpsilon), ops::ZerosLike(either));
  return ops::Sum(ratios) / (ops::Sum(ops::Cast(occurs, DType::kFloat64)) + kLossEpsilon);
}

ConfigValue IouMetric::Serialized() const {
  const std::string class_name = settings_.class_name;
  const IouOptions& options = settings_.options;
  ConfigValue::Object config = {{"name", name()}, {"dtype", "int64"}};
  const bool is_binary = class_name == "BinaryIoU", is_one_hot = class_name.starts_with("OneHot");
  if (!is_binary) config.emplace_back("num_classes", settings_.num_classes);
  if (class_name.find("Mean") == std::string::npos) {
    config.emplace_back("target_class_ids",
                        ConfigValue::List(settings_.target_class_ids.begin(), settings_.target_class_ids.end()));
  }
  if (is_binary) {
    config.emplace_back("threshold", *settings_.threshold);
  } else {
    config.emplace_back("ignore_class", options.ignore_class ? ConfigValue(*options.ignore_class) : ConfigValue());
    if (!is_one_hot) config.emplace_back("sparse_y_true", options.sparse_y_true);
    config.emplace_back("sparse_y_pred", options.sparse_y_pred);
    config.emplace_back("axis", -1);
  }
  return SerializedObject("keras.metrics", class_name, std::move(config));
}

Ids AllClasses(int num_classes) {
  CheckClasses(num_classes);
  Ids ids(static_cast<size_t>(num_classes));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

IouOptions Named(IouOptions options, const char* fallback) {
  if (options.name.empty()) options.name = fallback;
  return options;
}

IouOptions OneHot(const OneHotIouOptions& options, const char* fallback) {
  return Named({options.ignore_class, false, options.sparse_y_pred, options.name}, fallback);
}

// Options with the name of the file.
template <typename Options>
Options ReadIou(ConfigReader& reader) {
  Options options;
  options.name = ReadMetricName(reader, "");
  reader.ReadBy("ignore_class", [&](const ConfigValue& value) { options.ignore_class = value.AsInt(); });
  reader.Read("sparse_y_pred", options.sparse_y_pred);
  reader.OnlyDefault("axis", -1);
  return options;
}

IouOptions ReadSparseIou(ConfigReader& reader) {
  auto options = ReadIou<IouOptions>(reader);
  reader.Read("sparse_y_true", options.sparse_y_true);
  return options;
}

int ReadClasses(ConfigReader& reader) {
  const int64_t classes = reader.Required("num_classes").AsInt();
  CheckClasses(classes);
  return static_cast<int>(classes);
}

Ids ReadIds(ConfigReader& reader) {
  Ids ids;
  for (const ConfigValue& id : reader.Required("target_class_ids").AsList()) ids.push_back(id.AsInt());
  return ids;
}

MetricPtr ReadBinaryIou(ConfigReader& reader) {
  BinaryIouOptions options;
  options.name = ReadMetricName(reader, "");
  options.target_class_ids = ReadIds(reader);
  reader.Read("threshold", options.threshold);
  return BinaryIoU(options);
}

}  // namespace

MetricPtr IoU(int num_classes, const std::vector<int64_t>& target_class_ids, const IouOptions& options) {
  return std::make_shared<IouMetric>(IouSettings{"IoU", num_classes, target_class_ids, Named(options, "io_u"), {}});
}
MetricPtr MeanIoU(int num_classes, const IouOptions& options) {
  return std::make_shared<IouMetric>(
      IouSettings{"MeanIoU", num_classes, AllClasses(num_classes), Named(options, "mean_io_u"), {}});
}
MetricPtr OneHotIoU(int num_classes, const std::vector<int64_t>& target_class_ids, const OneHotIouOptions& options) {
  return std::make_shared<IouMetric>(
      IouSettings{"OneHotIoU", num_classes, target_class_ids, OneHot(options, "one_hot_io_u"), {}});
}
MetricPtr OneHotMeanIoU(int num_classes, const OneHotIouOptions& options) {
  return std::make_shared<IouMetric>(
      IouSettings{"OneHotMeanIoU", num_classes, AllClasses(num_classes), OneHot(options, "one_hot_mean_io_u"), {}});
}
MetricPtr BinaryIoU(const BinaryIouOptions& options) {
  IouOptions common;
  common.name = options.name;
  return std::make_shared<IouMetric>(
      IouSettings{"BinaryIoU", 2, options.target_class_ids, Named(common, "binary_io_u"), options.threshold});
}

std::vector<MetricMaker> IouMakers() {
  return {
      {"IoU", [](ConfigReader& r) { return IoU(ReadClasses(r), ReadIds(r), ReadSparseIou(r)); }},
      {"MeanIoU", [](ConfigReader& r) { return MeanIoU(ReadClasses(r), ReadSparseIou(r)); }},
      {"OneHotIoU",
       [](ConfigReader& r) { return OneHotIoU(ReadClasses(r), ReadIds(r), ReadIou<OneHotIouOptions>(r)); }},
      {"OneHotMeanIoU", [](ConfigReader& r) { return OneHotMeanIoU(ReadClasses(r), ReadIou<OneHotIouOptions>(r)); }},
      {"BinaryIoU", ReadBinaryIou}};
}

}  // namespace cohort::keras
