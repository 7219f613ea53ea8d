#include "cohort/keras/layers/preprocessing/text_vectorization.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/preprocessing/lookup_vectors.h"
#include "cohort/keras/layers/preprocessing/text_tokens.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/gather_nd.h"
#include "cohort/ops/join.h"
#include "cohort/ops/lookup.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

constexpr char kUnknown[] = "[UNK]";
constexpr int64_t kLongestSequence = int64_t{1} << 24;

class TextVectorizationLayer final : public VocabularyLayer {
 public:
  explicit TextVectorizationLayer(TextVectorizationOptions options)
      : VocabularyLayer("TextVectorization", options.name), options_(std::move(options)), vectors_(Checked()) {}

  const LookupVectors& vectors() const override { return vectors_; }
  int64_t vocabulary_size() const override { return first_token() + static_cast<int64_t>(options_.vocabulary.size()); }
  std::vector<std::string> OwnersOfWeights() const override { return {"", "_lookup_layer"}; }
  DType InputDType() const override { return DType::kString; }

  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    const Output x = inputs.at(0);
    if (x.dtype() != DType::kString) {
      Fail(StrCat("strings; got ", x.dtype(), "; give Input this dtype: Input(shape, {.dtype = DType::kString})"));
    }
    const Output texts = Standardized(x, options_);
    return {options_.split ? OfSplitTexts(texts) : OfTokens(texts)};
  }

  ConfigValue::Object Config() const override {
    ConfigValue::List tokens;
    if (!vectors_.idf_weights().empty()) tokens.emplace_back(kUnknown);  // because the weights have it
    for (const std::string& token : options_.vocabulary) tokens.push_back(TokenInFile(token));
    ConfigValue ngrams;
    if (const auto* most = std::get_if<int64_t>(&options_.ngrams)) ngrams = *most;
    if (const auto* widths = std::get_if<std::vector<int64_t>>(&options_.ngrams)) {
      ngrams = ConfigValue::List(widths->begin(), widths->end());
    }
    const auto text = [](const std::optional<std::string>& value) {
      return value ? ConfigValue(*value) : ConfigValue();
    };
    return {{"max_tokens", options_.max_tokens},
            {"standardize", text(options_.standardize)},
            {"split", text(options_.split)},
            {"ngrams", std::move(ngrams)},
            {"output_mode", options_.output_mode},
            {"output_sequence_length", options_.output_sequence_length},
            {"pad_to_max_tokens", options_.pad_to_max_tokens},
            {"sparse", false},
            {"ragged", false},
            {"vocabulary", std::move(tokens)},
            {"idf_weights", IdfWeightsInFile(vectors_)},
            {"encoding", "utf-8"},
            {"vocabulary_size", vocabulary_size()}};
  }

  static LayerRef FromConfig(ConfigReader& reader) {
    TextVectorizationOptions options;
    options.name = ReadName(reader);
    ReadVectorOptions(reader, options);
    const auto read = [&](const char* name, std::optional<std::string>& to) {
      if (reader.IsNull(name)) to.reset();
      reader.ReadBy(name, [&](const ConfigValue& value) {
        if (!value.is_string()) {
          Fail(StrCat("a ", name, " that Keras has a name for; the file has a function of a program"));
        }
        to = value.AsString();
      });
    };
    read("standardize", options.standardize);
    read("split", options.split);
    reader.ReadBy("ngrams", [&](const ConfigValue& value) {
      if (!value.is_list()) {
        options.ngrams = value.AsInt();
        return;
      }
      std::vector<int64_t> widths;
      for (const ConfigValue& width : value.AsList()) widths.push_back(width.AsInt());
      options.ngrams = std::move(widths);
    });
    reader.Read("output_sequence_length", options.output_sequence_length);
    for (const ConfigValue& token : reader.Required("vocabulary").AsList()) {
      options.vocabulary.push_back(token.AsString());
    }
    reader.OnlyDefault("ragged", false);
    reader.OnlyDefault("encoding", "utf-8");
    return MakeLayer<TextVectorizationLayer>(std::move(options));
  }

 private:
  [[noreturn]] static void Fail(const std::string& expected) {
    throw InvalidArgumentError(StrCat("[keras/text_vectorization] expected ", expected));
  }
  bool IsInt() const { return options_.output_mode == "int"; }
  int64_t first_token() const { return IsInt() ? 2 : 1; }

  // Checks the options, and takes the special tokens out of the vocabulary.
  VectorArguments Checked() {
    CheckTextOptions(options_);
    const std::string& mode = options_.output_mode;
    if (!IsInt() && mode != "multi_hot" && mode != "count" && mode != "tf_idf") {
      Fail(StrCat("output_mode \"int\", \"multi_hot\", \"count\" or \"tf_idf\"; got \"", mode, "\""));
    }
    if (const auto& length = options_.output_sequence_length) {
      if (!IsInt()) Fail(StrCat("output_sequence_length only for output_mode \"int\"; got \"", mode, "\""));
      if (*length < 1 || *length > kLongestSequence) {
        Fail(StrCat("an output_sequence_length in [1, ", kLongestSequence, "]; got ", *length));
      }
    }
    std::vector<std::string>& tokens = options_.vocabulary;
    const std::optional<std::string> mask = IsInt() ? std::optional<std::string>("") : std::nullopt;
    const bool special = DropSpecialTokens<std::string>(mask, kUnknown, 1, tokens);
    if (tokens.empty()) Fail("a vocabulary with at least one token besides the special tokens; got none");
    if (std::find(tokens.begin(), tokens.end(), "") != tokens.end()) {
      Fail("a vocabulary without \"\", which stands for no token");
    }
    ops::CheckVocabulary(Tensor::Vector(tokens));
    return {.layer = "text_vectorization",
            .output_mode = mode,
            .first_token = first_token(),
            .tokens = static_cast<int64_t>(tokens.size()),
            .has_special_tokens = special,
            .max_tokens = options_.max_tokens,
            .pad_to_max_tokens = options_.pad_to_max_tokens,
            .idf_weights = options_.idf_weights};
  }

  // Returns the indices of tokens. Of "" it is 0 for "int", and -1 for the other modes, which leave it out.
  Output Indices(const Output& tokens) const {
    std::vector<std::string> table = {""};
    table.insert(table.end(), options_.vocabulary.begin(), options_.vocabulary.end());
    // "" is at 0 of the table, the vocabulary from 1 on, and -1 is no place.
    const Output place = ops::VocabularyLookup(tokens, Tensor::Vector(table), -1);
    const Output is_token = ops::Greater(place, 0);
    const Output index = ops::SelectV2(is_token, ops::Add(place, 1), ops::Abs(place));
    return IsInt() ? index : ops::Sub(index, 1);
  }

  Output OfSplitTexts(Output texts) const {
    const int rank = texts.shape().rank();
    if (rank == 2 && texts.shape().dim(1) == 1) {
      texts = ops::Squeeze(texts, {-1});
    } else if (rank != 1) {
      Fail(StrCat("an input [batch] or [batch, 1] whose texts are split; got shape ", texts.shape()));
    }
    const ops::SparseStrings tokens = SplitTexts(texts, options_);
    const Output indices = Indices(tokens.values);
    const auto size = [&](int64_t axis) {
      return ops::Reshape(ops::Slice(tokens.dense_shape, {axis}, {1}), std::vector<int64_t>{});
    };
    if (!IsInt()) {
      const Output row_of_each = ops::Reshape(ops::Slice(tokens.indices, {0, 0}, {-1, 1}), {-1});
      return vectors_.OfRows(indices, row_of_each, size(0));
    }
    const auto& length = options_.output_sequence_length;
    const Output width = length ? ops::Maximum(size(1), *length) : size(1);
    const Output padded = ops::ScatterNd(tokens.indices, indices, ops::Pack({size(0), width}));
    return length ? ops::Slice(padded, {0, 0}, {-1, *length}) : padded;
  }

  Output OfTokens(const Output& texts) const {
    const Shape& shape = texts.shape();
    const bool needs_rows = !IsInt() || options_.output_sequence_length || !NGramWidths(options_).empty();
    if (needs_rows && (shape.rank() != 2 || shape.dim(1) < 0)) {
      Fail(StrCat("an input [batch, n] whose texts are tokens; got shape ", shape));
    }
    const Output indices = Indices(needs_rows ? RowNGrams(texts, options_) : texts);
    if (!IsInt()) return vectors_.Of(indices);
    if (!options_.output_sequence_length) return indices;
    const int64_t length = *options_.output_sequence_length, n = indices.shape().dim(1);
    if (n >= length) return ops::Slice(indices, {0, 0}, {-1, length});
    return ops::Pad(indices, {{0, 0}, {0, length - n}});
  }

  TextVectorizationOptions options_;  // the vocabulary without special tokens
  const LookupVectors vectors_;
};

}  // namespace

LayerRef TextVectorization(const TextVectorizationOptions& options) {
  return MakeLayer<TextVectorizationLayer>(options);
}

std::vector<LayerMaker> TextLayerMakers() { return {{"TextVectorization", TextVectorizationLayer::FromConfig}}; }

}  // namespace cohort::keras
