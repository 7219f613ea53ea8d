#include "cohort/keras/layers/preprocessing/lookup_vectors.h"

#include <cmath>
#include <numeric>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/preprocessing/category_encoding.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather_nd.h"
#include "cohort/ops/join.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

template <typename... Parts>
void Check(bool good, const char* layer, const Parts&... expected) {
  if (!good) throw InvalidArgumentError(StrCat("[keras/", layer, "] expected ", expected...));
}

std::vector<float> AsFloats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

}  // namespace

LookupVectors::LookupVectors(const VectorArguments& arguments)
    : output_mode_(arguments.output_mode), depth_(arguments.first_token + arguments.tokens) {
  const char* const layer = arguments.layer;
  const auto& most = arguments.max_tokens;
  Check(!most || *most > 1, layer, "max_tokens above 1; got ", most.value_or(0));
  Check(!most || depth_ <= *most, layer, "a vocabulary of at most max_tokens = ", most.value_or(0), " indices; got ",
        depth_, ", special tokens included");
  Check(!arguments.pad_to_max_tokens || most, layer, "max_tokens beside pad_to_max_tokens; got none");
  const int64_t known = depth_;
  if (arguments.pad_to_max_tokens) depth_ = *most;

  const std::vector<double>& weights = arguments.idf_weights;
  Check(weights.empty() || output_mode_ == "tf_idf", layer, "idf_weights only for output_mode \"tf_idf\"; got \"",
        output_mode_, "\"");
  if (output_mode_ != "tf_idf") return;
  const int64_t wanted = arguments.has_special_tokens ? known : arguments.tokens;
  Check(static_cast<int64_t>(weights.size()) == wanted, layer, "as many idf_weights as the vocabulary has entries, ",
        wanted, ", for output_mode \"tf_idf\"; got ", weights.size());
  for (const double weight : weights) Check(std::isfinite(weight), layer, "finite idf_weights; got ", weight);
  if (!arguments.has_special_tokens) {
    // Nothing is known of the special tokens.
    const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
    idf_weights_.assign(static_cast<size_t>(arguments.first_token), mean);
  }
  idf_weights_.insert(idf_weights_.end(), weights.begin(), weights.end());
}

Output LookupVectors::Of(const Output& indices) const {
  if (output_mode_ != "tf_idf") return Encoded(indices, depth_, output_mode_);
  return Weighted(Encoded(indices, depth_, "count"));
}

Output LookupVectors::OfRows(const Output& indices, const Output& row_of_each, const Output& rows) const {
  CheckDepth(depth_, output_mode_);
  Graph& graph = indices.graph();
  const Output ones = ops::Fill(ops::ShapeOf(indices), ops::Const(graph, 1.0f));
  const Output shape = ops::Pack({rows, ops::Const(graph, depth_)});
  const Output counts = ops::Reshape(ops::ScatterNd(ops::Pack({row_of_each, indices}, 1), ones, shape), {-1, depth_});
  if (output_mode_ == "multi_hot") return ops::Minimum(counts, 1);
  return output_mode_ == "tf_idf" ? Weighted(counts) : counts;
}

Output LookupVectors::Weighted(const Output& counts) const {
  std::vector<float> weights = AsFloats(idf_weights_);
  weights.resize(static_cast<size_t>(depth_));
  return ops::Mul(counts, ops::Const(counts.graph(), weights));
}

Tensor VocabularyLayer::WeightsInFile() const {
  if (vectors().idf_weights().empty()) return {};
  std::vector<float> weights = AsFloats(vectors().idf_weights());
  weights.resize(static_cast<size_t>(vectors().depth()));
  return Tensor::Vector(weights);
}

ConfigValue IdfWeightsInFile(const LookupVectors& vectors) {
  if (vectors.idf_weights().empty()) return nullptr;
  ConfigValue::List list;
  for (const double weight : vectors.idf_weights()) list.emplace_back(weight);
  return list;
}

ConfigValue TokenInFile(const std::string& token) {
  const ConfigValue value = token;
  if (ConfigValue::FromJson(value.ToJson()).AsString() == token) return value;
  throw InvalidArgumentError(StrCat("[keras/files] expected tokens in UTF-8 in a model that is saved; got ",
                                    value.ToJson(), ", where other bytes are replaced"));
}

}  // namespace cohort::keras
