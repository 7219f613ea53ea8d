// Reads a JSON list of requests from stdin: a model by name or from a file, its inputs, and where to save it. Prints
// what the models predict. test_preprocessing.py compares this with the real Keras.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/keras.h"
#include "cohort/registration.h"

namespace cohort::keras {
namespace {

using Json = nlohmann::json;

LayerTensor Floats(const LayerTensor& indices, int64_t depth) { return Flatten()(Embedding(depth, 2)(indices)); }

// Layers that make indices, each with an embedding behind it, and one that makes words.
Model Preprocessing() {
  const LayerTensor words = Input(Shape{3}, {.dtype = DType::kString, .name = "words"});
  const LayerTensor ids = Input(Shape{2}, {.dtype = DType::kInt64, .name = "ids"});
  const LayerTensor x = Input(Shape{2}, {.name = "x"});
  const std::vector<std::string> known = {"red", "green", "blue"};
  const std::vector<LayerTensor> parts = {
      Floats(StringLookup({.vocabulary = known, .num_oov_indices = 4, .mask_token = ""})(words), 8),
      StringLookup({.vocabulary = known, .mask_token = "", .output_mode = "multi_hot"})(words),
      StringLookup({.vocabulary = known, .output_mode = "count"})(words),
      Floats(IntegerLookup({.vocabulary = {7, -3}, .num_oov_indices = 3, .mask_token = 0})(ids), 6),
      IntegerLookup({.vocabulary = {7, -3}, .output_mode = "count"})(ids),
      Floats(Hashing(20, {.mask_value = std::string()})(words), 20),
      Floats(Hashing(20, {.salt = {{133, 137}}})(words), 20),
      Floats(Hashing(20, {.mask_value = int64_t{7}})(ids), 20),
      Hashing(5, {.output_mode = "multi_hot"})(words),
      Floats(Discretization({-0.5, 0, 0.5})(x), 4),
      Flatten()(Discretization({-0.5, 0, 0.5}, {.output_mode = "one_hot"})(x)),
      CategoryEncoding(4, {.output_mode = "count"})(Discretization({-0.5, 0, 0.5})(x)),
      keras::Normalization({.mean = std::vector<double>{1, 2}, .variance = std::vector<double>{4, 0.25}})(x),
      keras::Normalization({.mean = 3.0, .variance = 2.0, .invert = true})(x)};
  const LayerTensor back =
      StringLookup({.vocabulary = known, .invert = true})(IntegerLookup({.vocabulary = {7, -3}})(ids));
  return Model({words, ids, x}, {Concatenate()(parts), back});
}

// Layers of Keras Recommenders.
Model Recommender() {
  const LayerTensor ids = Input(Shape{4}, {.dtype = DType::kInt64, .name = "ids"});
  const LayerTensor weights = Input(Shape{4}, {.name = "weights"});
  const LayerTensor a = EmbedReduce(9, 6)(ids);
  const LayerTensor b = EmbedReduce(9, 6, {.combiner = "sum"})({ids, weights});
  const LayerTensor c = EmbedReduce(9, 6, {.combiner = "sqrtn"})({ids, weights});
  const LayerTensor crossed = FeatureCross({.projection_dim = 3, .diag_scale = 0.5, .pre_activation = "tanh"})({a, b});
  const LayerTensor alone = FeatureCross({.use_bias = false})(c);
  return Model({ids, weights},
               {Concatenate()({crossed, alone, EmbedReduce(9, 6)({ids, weights}), DotInteraction()({a, b, c}),
                               DotInteraction({.skip_gather = true})({a, b}),
                               DotInteraction({.self_interaction = true})({alone, b})})});
}

template <typename T>
Tensor Values(const Json& given) {
  return Tensor::FromValues(given.at("values").get<std::vector<T>>(),
                            Shape(given.at("shape").get<std::vector<int64_t>>()));
}

Tensor InputOf(const Json& given) {
  const std::string dtype = given.at("dtype");
  if (dtype == "string") return Values<std::string>(given);
  return dtype == "int64" ? Values<int64_t>(given) : Values<float>(given);
}

Json Written(const Tensor& value) {
  if (value.dtype() == DType::kString) return value.ToVector<std::string>();
  return value.ToVector<float>();
}

Json Answer(const Json& request) {
  Model model = request.contains("load")                 ? LoadModel(request.at("load"))
                : request.at("model") == "preprocessing" ? Preprocessing()
                                                         : Recommender();
  std::vector<Tensor> inputs;
  for (const Json& given : request.at("inputs")) inputs.push_back(InputOf(given));
  Json outputs = Json::array();
  for (const Tensor& output : model.PredictAll(ModelData(inputs, {}))) outputs.push_back(Written(output));
  model.Save(request.at("save"));
  if (request.contains("export")) model.ExportSavedModel(request.at("export"));
  return outputs;
}

}  // namespace
}  // namespace cohort::keras

int main() {
  using cohort::keras::Json;
  try {
    cohort::RegisterAll();
    Json answers = Json::array();
    const Json requests = Json::parse(std::cin);
    for (const Json& request : requests) answers.push_back(cohort::keras::Answer(request));
    std::cout << answers.dump() << "\n";
  } catch (const std::exception& error) {
    std::cerr << "interop_preprocessing: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
