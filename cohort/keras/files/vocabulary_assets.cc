#include "cohort/keras/files/vocabulary_assets.h"

#include <charconv>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/string_names.h"

namespace cohort::keras {
namespace {

constexpr char kLayersOption[] = "layers";

// The lines of a file. As in Python, the end of the last line ends no further line, and empty lines at the end do not
// count.
std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t length = end > begin && text[end - 1] == '\r' ? end - 1 - begin : end - begin;
    lines.push_back(text.substr(begin, length));
    begin = end + 1;
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

ConfigValue Token(const std::string& line, bool is_integer, const std::string& path) {
  if (!is_integer) return line;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error == std::errc() && end == line.data() + line.size()) return value;
  throw InvalidArgumentError(
      StrCat("[keras/load_model] expected an integer in each line of assets/", path, "; got \"", line, "\""));
}

class AssetWalk {
 public:
  AssetWalk(const std::map<std::string, std::string>& assets, const std::vector<WeightGroup>& groups)
      : assets_(assets), groups_(groups) {}

  // `path` is the folder of the model among the assets, with a "/" at its end, or "".
  ConfigValue Model(const ConfigValue& model, const std::string& path) const {
    const ConfigValue* config = model.Find("config");
    const ConfigValue* layers = config != nullptr ? config->Find(kLayersOption) : nullptr;
    if (layers == nullptr || !layers->is_list()) return model;
    LayerPlaces places;
    ConfigValue::List filled;
    for (const ConfigValue& layer : layers->AsList()) {
      filled.push_back(Layer(layer, StrCat(path, places.Next(layer.At("class_name").AsString()), "/")));
    }
    ConfigValue new_config = *config;
    new_config.Set(kLayersOption, std::move(filled));
    ConfigValue result = model;
    result.Set("config", std::move(new_config));
    return result;
  }

 private:
  ConfigValue Layer(const ConfigValue& layer, const std::string& path) const {
    const std::string& class_name = layer.At("class_name").AsString();
    if (class_name != "StringLookup" && class_name != "IntegerLookup" && class_name != "TextVectorization") {
      return Model(layer, path);
    }
    const ConfigValue* vocabulary = layer.At("config").Find("vocabulary");
    if (vocabulary != nullptr && !vocabulary->is_null()) return layer;
    const std::string file = path + "vocabulary.txt";
    const auto found = assets_.find(file);
    if (found == assets_.end()) {
      throw InvalidArgumentError(StrCat("[keras/load_model] expected the vocabulary of a ", class_name,
                                        " in config.json or in assets/", file, "; the file has neither"));
    }
    ConfigValue::List tokens;
    for (const std::string& line : Lines(found->second)) {
      tokens.push_back(Token(line, class_name == "IntegerLookup", file));
    }
    ConfigValue config = layer.At("config");
    ConfigValue weights = IdfWeights(path, tokens.size());
    if (!weights.is_null()) config.Set("idf_weights", std::move(weights));
    config.Set("vocabulary", std::move(tokens));
    ConfigValue result = layer;
    result.Set("config", std::move(config));
    return result;
  }

  // The weights of so many indices, or null if the file has none. With pad_to_max_tokens it has further zeros.
  ConfigValue IdfWeights(const std::string& path, size_t indices) const {
    for (const WeightGroup& group : groups_) {
      if (group.path + "/" != path || !group.idf_weights.defined()) continue;
      const Tensor& found = group.idf_weights;
      if (found.dtype() != DType::kFloat32 || found.num_elements() < static_cast<int64_t>(indices)) {
        throw InvalidArgumentError(StrCat("[keras/load_model] expected ", indices, " float32 numbers in '", path,
                                          "vars/idf_weights', one for each entry of the vocabulary; got ",
                                          found.dtype(), found.shape()));
      }
      ConfigValue::List weights;
      for (const float weight : found.values<float>().first(indices)) weights.emplace_back(double{weight});
      return weights;
    }
    return nullptr;
  }

  const std::map<std::string, std::string>& assets_;
  const std::vector<WeightGroup>& groups_;
};

}  // namespace

ConfigValue WithVocabularies(const ConfigValue& model, const std::map<std::string, std::string>& assets,
                             const std::vector<WeightGroup>& groups) {
  return AssetWalk(assets, groups).Model(model, "");
}

}  // namespace cohort::keras
