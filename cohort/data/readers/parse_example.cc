// ParseExampleDataset: a Map whose function, ParseExample, converts serialized tf.Examples to tensors. It parses a
// record, looks up each wanted feature by its name, and checks dtype and number of values. For a batch of records, the
// results of the records are stacked.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/readers/readers.h"
#include "cohort/data/stack.h"
#include "cohort/data/stages/stages.h"
#include "cohort/proto/example.pb.h"

namespace cohort::data {
namespace {

const char* KindName(const proto::Feature& feature) {
  switch (feature.kind_case()) {
    case proto::Feature::kBytesList: return "string";
    case proto::Feature::kFloatList: return "float32";
    case proto::Feature::kInt64List: return "int64";
    default: return "no values";
  }
}

template <typename T, typename List>
Tensor TensorOf(const List& list, const Feature& wanted) {
  const auto count = static_cast<int64_t>(list.value_size());
  if (!wanted.variable_length && count != wanted.shape.num_elements()) {
    throw InvalidArgumentError(StrCat("[data] expected ", wanted.shape.num_elements(), " values (shape ", wanted.shape,
                                      ") of the feature '", wanted.name, "'; got ", count));
  }
  Tensor tensor(wanted.dtype, wanted.variable_length ? Shape{count} : wanted.shape);
  std::copy(list.value().begin(), list.value().end(), tensor.data<T>());
  return tensor;
}

Tensor Missing(const Feature& wanted) {
  if (wanted.variable_length) return Tensor(wanted.dtype, Shape{0});
  if (wanted.default_value) return *wanted.default_value;
  throw InvalidArgumentError(StrCat("[data] Feature: ", wanted.name, " (data type: ", wanted.dtype,
                                    ") is required but could not be found; give it a default value"));
}

Tensor Convert(const proto::Feature& feature, const Feature& wanted) {
  if (feature.kind_case() == proto::Feature::KIND_NOT_SET) return Missing(wanted);
  if (DTypeName(wanted.dtype) != KindName(feature)) {
    throw InvalidArgumentError(StrCat("[data] expected ", wanted.dtype, " values of the feature '", wanted.name,
                                      "'; got ", KindName(feature)));
  }
  switch (wanted.dtype) {
    case DType::kFloat32: return TensorOf<float>(feature.float_list(), wanted);
    case DType::kInt64: return TensorOf<int64_t>(feature.int64_list(), wanted);
    default: return TensorOf<std::string>(feature.bytes_list(), wanted);
  }
}

ElementSpec SpecOfFeatures(const std::vector<Feature>& features, bool batched) {
  ElementSpec spec;
  for (const Feature& feature : features) {
    spec.push_back({feature.dtype, feature.variable_length ? Shape{Shape::kUnknownDim} : feature.shape});
  }
  return batched ? BatchSpec(spec, Shape::kUnknownDim) : spec;
}

void CheckFeatures(const std::vector<Feature>& features, bool batched) {
  if (features.empty()) throw InvalidArgumentError("[data] expected one feature at least; got none");
  for (const Feature& feature : features) {
    if (feature.dtype != DType::kFloat32 && feature.dtype != DType::kInt64 && feature.dtype != DType::kString) {
      throw InvalidArgumentError(
          StrCat("[data] expected float32, int64 or string for the feature '", feature.name, "'; got ", feature.dtype));
    }
    if (feature.variable_length && batched) {
      throw InvalidArgumentError(
          StrCat("[data] expected features of fixed length for batches of examples; '", feature.name,
                 "' has a variable one; parse the records one by one, and call PaddedBatch after that"));
    }
    if (!feature.variable_length && !feature.shape.IsFullyDefined()) {
      throw InvalidArgumentError(
          StrCat("[data] expected a fully defined shape of the feature '", feature.name, "'; got ", feature.shape));
    }
    if (feature.default_value) CheckElement({*feature.default_value}, {{feature.dtype, feature.shape}});
  }
}

class ParseExample : public ElementFunction {
 public:
  ParseExample(std::vector<Feature> features, bool batched)
      : features_(std::move(features)), batched_(batched), spec_(SpecOfFeatures(features_, batched)) {}
  Element Call(const Element& element) const override {
    const Tensor& records = element.at(0);
    if (!batched_) return ParseOne(records.scalar<std::string>());
    std::vector<Element> rows;
    for (const std::string& record : records.values<std::string>()) rows.push_back(ParseOne(record));
    if (!rows.empty()) return Stack(rows);
    Element none;
    for (const Feature& feature : features_) none.emplace_back(feature.dtype, Shape{0}.Concat(feature.shape));
    return none;
  }
  const ElementSpec& output_spec() const override { return spec_; }
  std::string ToString() const override {
    std::vector<std::string> names;
    for (const Feature& feature : features_) names.push_back(feature.name);
    return StrCat("ParseExample[", StrJoin(names, ","), "]");
  }
  void Write(DescriptionWriter* out) const override {
    out->String("ParseExample");
    out->Int(batched_ ? 1 : 0);
    out->Int(static_cast<int64_t>(features_.size()));
    for (const Feature& feature : features_) {
      out->String(feature.name);
      out->Spec({{feature.dtype, feature.shape}});
      out->Int(feature.default_value ? 1 : 0);
      if (feature.default_value) out->TensorReference(*feature.default_value);
      out->Int(feature.variable_length ? 1 : 0);
    }
  }

 private:
  Element ParseOne(const std::string& record) const {
    proto::Example example;
    if (!example.ParseFromString(record)) {
      throw InvalidArgumentError(
          StrCat("[data] expected a serialized tf.Example; got ", record.size(), " bytes that are none"));
    }
    const auto& values = example.features().feature();
    Element element;
    for (const Feature& feature : features_) {
      const auto found = values.find(feature.name);
      element.push_back(found == values.end() ? Missing(feature) : Convert(found->second, feature));
    }
    return element;
  }

  const std::vector<Feature> features_;
  const bool batched_;
  const ElementSpec spec_;
};

}  // namespace

Dataset ParseExampleDataset(const Dataset& records, std::vector<Feature> features, const MapOptions& options) {
  const ElementSpec& spec = records.element_spec();
  const bool batched = spec.size() == 1 && spec[0].shape.rank() == 1;
  if (spec.size() != 1 || spec[0].dtype != DType::kString || (spec[0].shape.rank() != 0 && !batched)) {
    throw InvalidArgumentError(StrCat("[data] expected serialized examples, (string[]) or (string[?]); got ",
                                      ToString(spec), " from ", records.ToString()));
  }
  CheckFeatures(features, batched);
  return Dataset(MakeMap(records.node(), std::make_shared<ParseExample>(std::move(features), batched),
                         options.num_parallel_calls));
}

std::shared_ptr<const ElementFunction> ReadParseExample(DescriptionReader& in) {
  const bool batched = in.Bool();
  std::vector<Feature> features;
  for (int64_t left = in.Int(1, 1 << 20); left > 0; --left) {
    Feature& feature = features.emplace_back();
    feature.name = in.String();
    const ElementSpec spec = in.Spec();
    if (spec.size() != 1) throw DataLossError(StrCat("[data] expected one spec a feature; got ", spec.size()));
    feature.dtype = spec[0].dtype;
    feature.shape = spec[0].shape;
    if (in.Bool()) feature.default_value = in.TensorReference();
    feature.variable_length = in.Bool();
  }
  CheckFeatures(features, batched);
  return std::make_shared<ParseExample>(std::move(features), batched);
}

}  // namespace cohort::data
