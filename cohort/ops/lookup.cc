#include "cohort/ops/lookup.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

template <typename T>
void CheckDifferent(const Tensor& vocabulary) {
  std::unordered_map<T, int64_t> places;
  const T* entries = vocabulary.data<T>();
  for (int64_t i = 0; i < vocabulary.num_elements(); ++i) {
    const auto [place, added] = places.emplace(entries[i], i);
    if (!added) {
      throw InvalidArgumentError(StrCat("expected a vocabulary without two equal entries; entries ", place->second,
                                        " and ", i, " are both \"", entries[i], "\""));
    }
  }
}

// Bucketize with boundaries in another order, also in a graph that was read from a file.
std::vector<Shape> BucketizeShape(ShapeContext& c) {
  const auto& boundaries = c.attr<std::vector<float>>("boundaries");
  const auto is_nan = [](float boundary) { return std::isnan(boundary); };
  if (!std::is_sorted(boundaries.begin(), boundaries.end()) ||
      std::any_of(boundaries.begin(), boundaries.end(), is_nan)) {
    throw InvalidArgumentError("expected boundaries in ascending order");
  }
  return {c.input(0)};
}

std::vector<Shape> VocabularyShape(ShapeContext& c) {
  const Tensor& vocabulary = c.attr<Tensor>("vocabulary");
  if (vocabulary.dtype() != c.input_dtype(0) || vocabulary.shape().rank() != 1) {
    throw InvalidArgumentError(StrCat("expected a vocabulary that is a vector of ", c.input_dtype(0),
                                      ", as the values; got ", vocabulary.dtype(), vocabulary.shape()));
  }
  return {c.input(0)};
}

std::vector<Shape> SearchShape(ShapeContext& c) {
  const Shape sequence = c.WithRank(0, 2), values = c.WithRank(1, 2);
  if (!Shape{sequence.dim(0)}.IsCompatibleWith(Shape{values.dim(0)})) {
    throw InvalidArgumentError(
        StrCat("expected as many rows of values as of sorted_inputs; got shapes ", values, " and ", sequence));
  }
  return {values};
}

OpDef SearchOp(const char* name, const char* doc) {
  return OpDef(name)
      .Input("sorted_inputs: T")
      .Input("values: T")
      .Output("output: out_type")
      .Attr("T: {int32, int64, float, double}")
      .Attr("out_type: {int32, int64} = DT_INT32")
      .ShapeRule(SearchShape)
      .NotDifferentiable("the result is an index")
      .Doc(doc);
}

std::vector<Shape> CrossShape(ShapeContext& c) {
  if (c.attr<int64_t>("N") != 0 || !c.attr<bool>("hashed_output") || c.attr<DType>("out_type") != DType::kInt64) {
    throw UnimplementedError(
        "SparseCross makes hashes of dense inputs; it has neither sparse inputs nor texts as results");
  }
  if (c.num_inputs() == 0) throw InvalidArgumentError("expected at least one input to cross; got none");
  Shape rows = {-1};
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Shape shape = c.WithRank(i, 2), other = {shape.dim(0)};
    if (c.input_dtype(i) != DType::kString && c.input_dtype(i) != DType::kInt64) {
      throw InvalidArgumentError(StrCat("expected strings or int64 to cross; got ", c.input_dtype(i)));
    }
    if (!rows.IsCompatibleWith(other)) {
      throw InvalidArgumentError(StrCat("expected inputs with equal numbers of rows; got ", rows, " and ", other));
    }
    if (!rows.IsFullyDefined()) rows = other;
  }
  return {Shape{-1, 2}, Shape{-1}, Shape{2}};
}

constexpr const char* kNoGradient = "the result is an index";

}  // namespace

Output StringToHashBucketFast(Output input, int64_t num_buckets, const NodeName& name) {
  return Op("StringToHashBucketFast", {input}, name).Attr("num_buckets", num_buckets).Finish1();
}
Output StringToHashBucketStrong(Output input, int64_t num_buckets, const std::array<int64_t, 2>& key,
                                const NodeName& name) {
  return Op("StringToHashBucketStrong", {input}, name)
      .Attr("num_buckets", num_buckets)
      .Attr("key", std::vector<int64_t>(key.begin(), key.end()))
      .Finish1();
}
Output AsString(Output input, const NodeName& name) { return Op("AsString", {input}, name).Finish1(); }

Output VocabularyLookup(Output values, const Tensor& vocabulary, std::optional<int64_t> default_value,
                        const NodeName& name) {
  CheckVocabulary(vocabulary);
  return Op("VocabularyLookup", {values}, name)
      .Attr("vocabulary", vocabulary)
      .Attr("default_value", default_value.value_or(-1))
      .Attr("fail_unknown", !default_value.has_value())
      .Finish1();
}

void CheckVocabulary(const Tensor& vocabulary) {
  if (vocabulary.shape().rank() == 1 && vocabulary.dtype() == DType::kString)
    return CheckDifferent<std::string>(vocabulary);
  if (vocabulary.shape().rank() == 1 && vocabulary.dtype() == DType::kInt64) return CheckDifferent<int64_t>(vocabulary);
  throw InvalidArgumentError(StrCat("expected a vocabulary that is a vector of strings or int64; got ",
                                    vocabulary.dtype(), vocabulary.shape()));
}

Output SearchSorted(Output sorted_sequence, Output values, bool right, const NodeName& name) {
  return Op(right ? "UpperBound" : "LowerBound", {sorted_sequence, values}, name)
      .Attr("out_type", DType::kInt64)
      .Finish1();
}

Output Bucketize(Output input, const std::vector<float>& boundaries, const NodeName& name) {
  return Op("Bucketize", {input}, name).Attr("boundaries", boundaries).Finish1();
}

SparseIntegers CrossHashed(const std::vector<Output>& inputs, int64_t num_buckets, int64_t hash_key,
                           const NodeName& name) {
  if (inputs.empty()) throw InvalidArgumentError("[ops] CrossHashed needs at least one input");
  if (num_buckets < 1) throw InvalidArgumentError(StrCat("[ops] expected num_buckets >= 1; got ", num_buckets));
  const std::vector<Output> none;
  Node* node = inputs[0]
                   .graph()
                   .Op("SparseCross")
                   .Name(name)
                   .Inputs(none)  // indices, values and shapes of sparse inputs
                   .Inputs(none)
                   .Inputs(none)
                   .Inputs(inputs)
                   .Attr("hashed_output", true)
                   .Attr("num_buckets", num_buckets)
                   .Attr("hash_key", hash_key)
                   .Attr("out_type", DType::kInt64)
                   .Attr("internal_type", DType::kInt64)
                   .Finish();
  return {node->output(0), node->output(1), node->output(2)};
}

}  // namespace cohort::ops

namespace cohort {
namespace {

void RegisterSparseCross(OpRegistry& registry) {
  using namespace ops;
  registry.Register(OpDef("SparseCross")
                        .Input("indices: N * int64")
                        .Input("values: sparse_types")
                        .Input("shapes: N * int64")
                        .Input("dense_inputs: dense_types")
                        .Output("output_indices: int64")
                        .Output("output_values: out_type")
                        .Output("output_shape: int64")
                        .Attr("N: int >= 0")
                        .Attr("hashed_output: bool")
                        .Attr("num_buckets: int >= 0")
                        .Attr("hash_key: int")
                        .Attr("sparse_types: list(type) >= 0")
                        .Attr("dense_types: list(type) >= 0")
                        .Attr("out_type: {int64, string}")
                        .Attr("internal_type: {int64, string}")
                        .ShapeRule(CrossShape)
                        .DataDependentShape()
                        .NotDifferentiable(kNoGradient)
                        .Doc("The hashes of all combinations of the inputs' values in each row."));
}

}  // namespace

void RegisterLookupOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(OpDef("StringToHashBucketFast")
                        .Input("input: string")
                        .Output("output: int64")
                        .Attr("num_buckets: int >= 1")
                        .ShapeRule(UnchangedShape)
                        .NotDifferentiable(kNoGradient)
                        .Doc("The Fingerprint64 of each string, modulo num_buckets."));
  registry.Register(OpDef("StringToHashBucketStrong")
                        .Input("input: string")
                        .Output("output: int64")
                        .Attr("num_buckets: int >= 1")
                        .Attr("key: list(int) >= 2")
                        .ShapeRule(UnchangedShape)
                        .NotDifferentiable(kNoGradient)
                        .Doc("The SipHash-2-4 of each string under a key of two numbers, modulo num_buckets."));
  registry.Register(OpDef("AsString")
                        .Input("input: T")
                        .Output("output: string")
                        .Attr("T: {uint8, int32, int64, bool}")
                        .ShapeRule(UnchangedShape)
                        .NotDifferentiable("the result is a text")
                        .Doc("Each integer in decimal digits; true or false for a bool."));
  registry.Register(
      OpDef("VocabularyLookup")
          .Input("values: T")
          .Output("indices: int64")
          .Attr("vocabulary: tensor")
          .Attr("default_value: int = -1")
          .Attr("fail_unknown: bool = false")
          .Attr("T: {string, int64}")
          .ShapeRule(VocabularyShape)
          .NotDifferentiable(kNoGradient)
          .Doc("The place of each value in the vocabulary. For a value that is not there: default_value, or an error "
               "if fail_unknown."));
  RegisterSparseCross(registry);
  registry.Register(SearchOp("LowerBound", "How many elements of the row are below each value."));
  registry.Register(SearchOp("UpperBound", "How many elements of the row are not above each value."));
  registry.Register(OpDef("Bucketize")
                        .Input("input: T")
                        .Output("output: int32")
                        .Attr("T: {int32, int64, float, double}")
                        .Attr("boundaries: list(float)")
                        .ShapeRule(BucketizeShape)
                        .NotDifferentiable(kNoGradient)
                        .Doc("How many of the boundaries are not above each element."));
}

}  // namespace cohort
