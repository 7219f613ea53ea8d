// Reads a JSON list of requests from stdin: a layer of texts or categories by its options, what it learns from, or a
// file, and texts. Prints what the layers give. test_text.py compares this with the real Keras. Texts are in
// hexadecimal digits, because JSON has no other bytes than UTF-8.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/readers/text_folder.h"
#include "cohort/keras/keras.h"
#include "cohort/registration.h"

namespace cohort::keras {
namespace {

using Json = nlohmann::json;
using Strings = std::vector<std::string>;

std::string FromHex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

Tensor TensorOf(const Json& given) {
  const Shape shape(given.at("shape").get<std::vector<int64_t>>());
  if (given.at("dtype") == "int64") return Tensor::FromValues(given.at("values").get<std::vector<int64_t>>(), shape);
  Strings texts;
  for (const std::string digits : given.at("values")) texts.push_back(FromHex(digits));
  return Tensor::FromValues(texts, shape);
}

template <typename T>
void Read(const Json& given, const char* name, T& to) {
  if (given.contains(name)) to = given.at(name).get<T>();
}
template <typename T>
void Read(const Json& given, const char* name, std::optional<T>& to) {
  if (!given.contains(name)) return;
  to.reset();
  if (!given.at(name).is_null()) to = given.at(name).get<T>();
}

template <typename Options>
void ReadVectorOptions(const Json& given, Options& options) {
  Read(given, "max_tokens", options.max_tokens);
  Read(given, "vocabulary", options.vocabulary);
  Read(given, "idf_weights", options.idf_weights);
  Read(given, "output_mode", options.output_mode);
  Read(given, "pad_to_max_tokens", options.pad_to_max_tokens);
}

LayerRef TextLayer(const Json& request, Json& answer) {
  const Json& given = request.at("options");
  TextVectorizationOptions options;
  ReadVectorOptions(given, options);
  Read(given, "standardize", options.standardize);
  Read(given, "split", options.split);
  Read(given, "output_sequence_length", options.output_sequence_length);
  if (given.contains("ngrams") && given.at("ngrams").is_number()) options.ngrams = given.at("ngrams").get<int64_t>();
  if (given.contains("ngrams") && given.at("ngrams").is_array()) {
    options.ngrams = given.at("ngrams").get<std::vector<int64_t>>();
  }
  if (request.contains("learn_from")) {
    const LearnedText learned = LearnText(TensorOf(request.at("learn_from")), options);
    answer["vocabulary"] = options.vocabulary = learned.vocabulary;
    answer["idf_weights"] = learned.idf_weights;
    if (options.output_mode == "tf_idf") options.idf_weights = learned.idf_weights;
  }
  return TextVectorization(options);
}

template <typename Options, typename Learn>
Options LookupOptions(const Json& request, Json& answer, const Learn& learn) {
  const Json& given = request.at("options");
  Options options;
  ReadVectorOptions(given, options);
  Read(given, "num_oov_indices", options.num_oov_indices);
  Read(given, "mask_token", options.mask_token);
  if (request.contains("learn_from")) {
    const Tensor data = TensorOf(request.at("learn_from"));
    answer["vocabulary"] = options.vocabulary = learn(data);
    answer["idf_weights"] = LearnIdfWeights(data, options.vocabulary);
    if (options.output_mode == "tf_idf") options.idf_weights = LearnIdfWeights(data, options.vocabulary);
  }
  return options;
}

LayerRef LayerOf(const Json& request, Json& answer) {
  const std::string name = request.at("layer");
  if (name == "TextVectorization") return TextLayer(request, answer);
  if (name == "HashedCrossing") {
    HashedCrossingOptions options;
    Read(request.at("options"), "output_mode", options.output_mode);
    return HashedCrossing(request.at("options").at("num_bins"), options);
  }
  if (name == "StringLookup") {
    return StringLookup(
        LookupOptions<StringLookupOptions>(request, answer, [](const Tensor& x) { return LearnStrings(x); }));
  }
  return IntegerLookup(
      LookupOptions<IntegerLookupOptions>(request, answer, [](const Tensor& x) { return LearnIntegers(x); }));
}

Json Written(const Tensor& value) {
  Json written = {{"dtype", DTypeName(value.dtype())}, {"shape", Json::array()}};
  for (int i = 0; i < value.shape().rank(); ++i) written["shape"].push_back(value.shape().dim(i));
  if (value.dtype() == DType::kInt64) {
    written["values"] = value.ToVector<int64_t>();
  } else {
    written["values"] = value.ToVector<float>();
  }
  return written;
}

Model ModelOf(const Json& request, const std::vector<Tensor>& x, Json& answer) {
  if (request.contains("load")) return LoadModel(request.at("load"));
  const LayerRef layer = LayerOf(request, answer);
  std::vector<LayerTensor> inputs;
  for (const Tensor& value : x) {
    inputs.push_back(Input(value.shape().Sub(1, value.shape().rank()),
                           {.dtype = value.dtype(), .name = StrCat("x_", inputs.size())}));
  }
  return Model(inputs, {layer(inputs)});
}

// The files of a folder of texts, and the elements of one pass over it.
Json FolderAnswer(const Json& request) {
  const Json& given = request.at("options");
  data::TextFolderOptions options;
  const std::string labels = given.value("label_mode", "int"), subset = given.value("subset", "");
  if (labels == "binary") options.label_mode = data::LabelMode::kBinary;
  if (labels == "categorical") options.label_mode = data::LabelMode::kCategorical;
  if (labels == "none") options.label_mode = data::LabelMode::kNone;
  if (subset == "training") options.subset = data::Subset::kTraining;
  if (subset == "validation") options.subset = data::Subset::kValidation;
  Read(given, "class_names", options.class_names);
  Read(given, "batch_size", options.batch_size);
  Read(given, "max_length", options.max_length);
  Read(given, "shuffle", options.shuffle);
  Read(given, "seed", options.seed);
  Read(given, "validation_split", options.validation_split);
  const data::TextFolder folder = data::TextDatasetFromDirectory(request.at("directory"), options);
  Json answer = {{"class_names", folder.class_names},
                 {"paths", folder.file_paths},
                 {"texts", Json::array()},
                 {"labels", Json::array()}};
  std::vector<Tensor> element;
  for (const auto iterator = folder.dataset.MakeIterator(); iterator->Next(&element);) {
    answer["texts"].push_back(element[0].ToVector<std::string>());
    if (element.size() < 2) continue;
    answer["labels"].push_back(element[1].dtype() == DType::kInt32 ? Json(element[1].ToVector<int32_t>())
                                                                   : Json(element[1].ToVector<float>()));
  }
  return answer;
}

Json Answer(const Json& request) {
  if (request.contains("directory")) return FolderAnswer(request);
  Json answer;
  std::vector<Tensor> x;
  for (const Json& given : request.at("inputs")) x.push_back(TensorOf(given));
  Model model = ModelOf(request, x, answer);
  answer["output"] = Written(model.PredictAll(ModelData(x, {})).at(0));
  if (request.contains("save")) model.Save(request.at("save"));
  if (request.contains("export")) model.ExportSavedModel(request.at("export"));
  return answer;
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
    std::cerr << "interop_text: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
