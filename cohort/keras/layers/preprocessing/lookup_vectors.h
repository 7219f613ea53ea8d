// What layers with a vocabulary have in common: its special tokens, and the vectors that they make of indices. Internal
// to keras/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/keras/files/config.h"
#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/layers/layer.h"

namespace cohort::keras {

// Removes the special tokens from the begin of `tokens` if all of them are there: `mask` if there is one, and `oov`, so
// many times. Returns whether they were there. (Keras accepts both, because get_vocabulary() returns them.)
template <typename T>
bool DropSpecialTokens(const std::optional<T>& mask, const T& oov, int64_t num_oov_indices, std::vector<T>& tokens) {
  const std::ptrdiff_t first_oov = mask ? 1 : 0, first_token = first_oov + num_oov_indices;
  if (static_cast<std::ptrdiff_t>(tokens.size()) < first_token) return false;
  const auto begin = tokens.begin();
  if (mask && *begin != *mask) return false;
  if (!std::all_of(begin + first_oov, begin + first_token, [&](const T& token) { return token == oov; })) return false;
  tokens.erase(begin, begin + first_token);
  return true;
}

// The arguments of a layer with a vocabulary that say how its vectors look.
struct VectorArguments {
  const char* layer;  // for errors: "string_lookup"
  std::string output_mode;
  int64_t first_token = 0;          // the index of the vocabulary's first token
  int64_t tokens = 0;               // how many tokens the vocabulary has, without special tokens
  bool has_special_tokens = false;  // whether the vocabulary was given with them
  std::optional<int64_t> max_tokens;
  bool pad_to_max_tokens = false;
  std::vector<double> idf_weights;
};

// The vectors that a layer makes of its indices. Immutable.
class LookupVectors {
 public:
  // Throws InvalidArgumentError for arguments that do not fit each other.
  explicit LookupVectors(const VectorArguments& arguments);

  // Returns the number of a vector's elements.
  int64_t depth() const { return depth_; }
  // Returns the weight of each index, also of those for special tokens, or nothing if the mode is not "tf_idf".
  const std::vector<double>& idf_weights() const { return idf_weights_; }
  // Returns the result of the mode for `indices` [batch, ..., n], as Encoded of category_encoding.h does. An index
  // below 0 is left out. "tf_idf" makes float32 [batch, ..., depth], as "count", times the weights.
  Output Of(const Output& indices) const;
  // Returns the vectors of rows of different lengths, float32 [rows, depth]: indices[i], which is in [0, depth), is in
  // the row `row_of_each[i]`. Both are int64 [n], and `rows` is int64 []. Requires: the mode is "multi_hot", "count" or
  // "tf_idf".
  Output OfRows(const Output& indices, const Output& row_of_each, const Output& rows) const;

 private:
  Output Weighted(const Output& counts) const;

  const std::string output_mode_;
  int64_t depth_;
  std::vector<double> idf_weights_;
};

// A layer that has a vocabulary, and perhaps idf weights. Keras's files have these among the weights of the model, too.
class VocabularyLayer : public Layer {
 public:
  using Layer::Layer;
  virtual const LookupVectors& vectors() const = 0;
  // Returns the number of indices, special tokens included.
  virtual int64_t vocabulary_size() const = 0;
  // Returns the names of the layer's objects in Keras that have the weights; "" is the layer itself.
  virtual std::vector<std::string> OwnersOfWeights() const { return {""}; }
  // Returns the weights as Keras keeps them: float32 [depth], or an undefined tensor if there are none.
  Tensor WeightsInFile() const;
};

// The options max_tokens, pad_to_max_tokens and idf_weights in files.
ConfigValue IdfWeightsInFile(const LookupVectors& vectors);
template <typename Options>
void ReadVectorOptions(ConfigReader& reader, Options& options) {
  reader.Read("output_mode", options.output_mode);
  if (options.output_mode == "binary") options.output_mode = "multi_hot";  // Keras 2's names
  if (options.output_mode == "tf-idf") options.output_mode = "tf_idf";
  reader.Read("max_tokens", options.max_tokens);
  reader.Read("pad_to_max_tokens", options.pad_to_max_tokens);
  reader.ReadBy("idf_weights", [&](const ConfigValue& value) {
    for (const ConfigValue& weight : value.AsList()) options.idf_weights.push_back(weight.AsDouble());
  });
  reader.OnlyDefault("sparse", false);
  reader.Ignore("vocabulary_size");
  reader.Ignore("has_input_vocabulary");
}

// Returns a token as files have it. Throws InvalidArgumentError for bytes that are not UTF-8: JSON has no such texts.
ConfigValue TokenInFile(const std::string& token);
inline ConfigValue TokenInFile(int64_t token) { return token; }

}  // namespace cohort::keras
