// StringLookup and IntegerLookup of preprocessing_layers.h: one class for both dtypes.
#include <algorithm>
#include <type_traits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/preprocessing/category_encoding.h"
#include "cohort/keras/layers/preprocessing/lookup_vectors.h"
#include "cohort/keras/layers/preprocessing/preprocessing_layers.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/lookup.h"
#include "cohort/ops/select.h"

namespace cohort::keras {
namespace {

void ReadToken(const ConfigValue& value, std::string& token) { token = value.AsString(); }
void ReadToken(const ConfigValue& value, int64_t& token) { token = value.AsInt(); }

// T is std::string with StringLookupOptions, or int64_t with IntegerLookupOptions.
template <typename T, typename Options>
class IndexLookupLayer final : public VocabularyLayer {
  static constexpr bool kStrings = std::is_same_v<T, std::string>;
  static constexpr const char* kClass = kStrings ? "StringLookup" : "IntegerLookup";
  static constexpr const char* kWhere = kStrings ? "string_lookup" : "integer_lookup";

 public:
  explicit IndexLookupLayer(const Options& options)
      : VocabularyLayer(kClass, options.name),
        options_(options),
        has_mask_(options.mask_token && options.output_mode == "int"),
        vectors_(Checked()) {}

  const LookupVectors& vectors() const override { return vectors_; }
  int64_t vocabulary_size() const override { return first_token() + static_cast<int64_t>(options_.vocabulary.size()); }
  DType InputDType() const override { return options_.invert ? DType::kInt64 : KeyDType(); }

  std::vector<Output> Call(CallContext&, const std::vector<Output>& inputs) const override {
    Output x = inputs.at(0);
    const bool wants_integers = options_.invert || !kStrings;
    if (wants_integers ? !IsInteger(x.dtype()) : x.dtype() != DType::kString) {
      Fail(StrCat(wants_integers ? "integers" : "strings", "; got ", x.dtype(),
                  "; give Input this dtype: Input(shape, {.dtype = DType::", wants_integers ? "kInt64" : "kString",
                  "})"));
    }
    if (wants_integers && x.dtype() != DType::kInt64) x = ops::Cast(x, DType::kInt64);
    if (options_.invert) return {Tokens(x)};
    return {vectors_.Of(Indices(x))};
  }

  ConfigValue::Object Config() const override {
    ConfigValue::List tokens;
    if (!vectors_.idf_weights().empty()) {  // the weights have those of the special tokens
      tokens.assign(static_cast<size_t>(first_token()), TokenInFile(options_.oov_token));
    }
    for (const T& token : options_.vocabulary) tokens.push_back(TokenInFile(token));
    ConfigValue::Object config = {
        {"invert", options_.invert},
        {"max_tokens", options_.max_tokens},
        {"num_oov_indices", options_.num_oov_indices},
        {"oov_token", TokenInFile(options_.oov_token)},
        {"mask_token", options_.mask_token ? TokenInFile(*options_.mask_token) : ConfigValue()},
        {"output_mode", options_.output_mode},
        {"sparse", false},
        {"pad_to_max_tokens", options_.pad_to_max_tokens},
        {"idf_weights", IdfWeightsInFile(vectors_)},
        {"vocabulary", std::move(tokens)},
        {"vocabulary_size", vocabulary_size()},
        {"oov_method", "floormod"},
        {"salt", nullptr}};
    if (kStrings) config.emplace_back("encoding", "utf-8");
    if (!kStrings) config.emplace_back("vocabulary_dtype", "int64");
    return config;
  }

  static LayerRef FromConfig(ConfigReader& reader) {
    Options options;
    options.name = ReadName(reader);
    reader.Read("invert", options.invert);
    reader.Read("num_oov_indices", options.num_oov_indices);
    ReadVectorOptions(reader, options);
    reader.ReadBy("oov_token", [&](const ConfigValue& value) { ReadToken(value, options.oov_token); });
    reader.ReadBy("mask_token", [&](const ConfigValue& value) {
      T token;
      ReadToken(value, token);
      options.mask_token = token;
    });
    for (const ConfigValue& value : reader.Required("vocabulary").AsList()) {
      T token;
      ReadToken(value, token);
      options.vocabulary.push_back(token);
    }
    reader.OnlyDefault("oov_method", "floormod");
    reader.OnlyDefault("salt", nullptr);
    reader.OnlyDefault(kStrings ? "encoding" : "vocabulary_dtype", kStrings ? "utf-8" : "int64");
    return MakeLayer<IndexLookupLayer>(options);
  }

 private:
  [[noreturn]] void Fail(const std::string& expected) const {
    throw InvalidArgumentError(StrCat("[keras/", kWhere, "] expected ", expected));
  }
  static DType KeyDType() { return kStrings ? DType::kString : DType::kInt64; }
  bool IsInt() const { return options_.output_mode == "int"; }
  int64_t first_oov() const { return has_mask_ ? 1 : 0; }
  int64_t first_token() const { return first_oov() + options_.num_oov_indices; }

  // Checks the options, and takes the special tokens out of the vocabulary.
  VectorArguments Checked() {
    CheckOutputMode(options_.output_mode, kWhere, /*allows_int=*/true, /*allows_tf_idf=*/true);
    if (options_.num_oov_indices < 0 || options_.num_oov_indices > kMostDepth) {
      Fail(StrCat("num_oov_indices in [0, ", kMostDepth, "]; got ", options_.num_oov_indices));
    }
    if (options_.invert && !IsInt()) {
      Fail(StrCat("output_mode \"int\" with invert; got \"", options_.output_mode, "\""));
    }
    std::vector<T>& tokens = options_.vocabulary;
    const std::optional<T> mask = has_mask_ ? options_.mask_token : std::nullopt;
    const bool special = DropSpecialTokens(mask, options_.oov_token, options_.num_oov_indices, tokens);
    if (tokens.empty()) Fail("a vocabulary with at least one token besides the special tokens; got none");
    const auto has = [&](const T& token) { return std::find(tokens.begin(), tokens.end(), token) != tokens.end(); };
    if (options_.mask_token && has(*options_.mask_token)) {
      Fail(StrCat("the mask token \"", *options_.mask_token, "\" before the vocabulary or not at all; it is inside"));
    }
    if (options_.invert && has(options_.oov_token)) {
      Fail(StrCat("an oov_token that is not in the vocabulary, so that it can be told from the tokens; got \"",
                  options_.oov_token, "\""));
    }
    ops::CheckVocabulary(Tensor::Vector(tokens));
    return {.layer = kWhere,
            .output_mode = options_.output_mode,
            .first_token = first_token(),
            .tokens = static_cast<int64_t>(tokens.size()),
            .has_special_tokens = special,
            .max_tokens = options_.max_tokens,
            .pad_to_max_tokens = options_.pad_to_max_tokens,
            .idf_weights = options_.idf_weights};
  }

  // The table has the mask token as its first entry, if there is one. So it is found, and is no unknown value.
  Output Indices(const Output& x) const {
    std::vector<T> table;
    const int64_t masks = options_.mask_token ? 1 : 0;
    if (masks > 0) table.push_back(*options_.mask_token);
    table.insert(table.end(), options_.vocabulary.begin(), options_.vocabulary.end());
    const bool all_known = options_.num_oov_indices == 0;
    const Output place =
        ops::VocabularyLookup(x, Tensor::Vector(table), all_known ? std::nullopt : std::optional<int64_t>(-1));
    Output index = first_token() == masks ? place : ops::Add(place, first_token() - masks);
    if (!all_known) index = ops::SelectV2(ops::Less(place, 0), OutOfVocabulary(x), index);
    // The mask has index 0, or none at all: -1 is left out by one_hot, multi_hot and count.
    if (masks > 0) index = ops::SelectV2(ops::Equal(place, 0), Number(x, has_mask_ ? 0 : -1), index);
    return index;
  }

  Output OutOfVocabulary(const Output& x) const {
    if (options_.num_oov_indices == 1) return Number(x, first_oov());
    Output bucket;
    if constexpr (kStrings) {
      bucket = ops::StringToHashBucketFast(x, options_.num_oov_indices);
    } else {
      bucket = ops::FloorMod(x, options_.num_oov_indices);
    }
    return first_oov() == 0 ? bucket : ops::Add(bucket, first_oov());
  }

  Output Tokens(const Output& indices) const {
    std::vector<T> table(static_cast<size_t>(first_token()), options_.oov_token);
    if (has_mask_) table[0] = *options_.mask_token;
    table.insert(table.end(), options_.vocabulary.begin(), options_.vocabulary.end());
    const auto beyond = static_cast<int64_t>(table.size());
    table.push_back(options_.oov_token);
    const Output known = ops::LogicalAnd(ops::GreaterEqual(indices, 0), ops::Less(indices, beyond));
    return ops::Gather(ops::Const(indices.graph(), table), ops::SelectV2(known, indices, Number(indices, beyond)));
  }

  static Output Number(const Output& like, int64_t number) { return ops::Const(like.graph(), number); }

  Options options_;  // vocabulary without special tokens
  const bool has_mask_;
  const LookupVectors vectors_;
};

using StringLookupLayer = IndexLookupLayer<std::string, StringLookupOptions>;
using IntegerLookupLayer = IndexLookupLayer<int64_t, IntegerLookupOptions>;

}  // namespace

LayerRef StringLookup(const StringLookupOptions& options) { return MakeLayer<StringLookupLayer>(options); }
LayerRef IntegerLookup(const IntegerLookupOptions& options) { return MakeLayer<IntegerLookupLayer>(options); }

int64_t VocabularySize(const LayerRef& lookup) {
  const auto* layer = dynamic_cast<const VocabularyLayer*>(&*lookup);
  if (layer != nullptr) return layer->vocabulary_size();
  throw InvalidArgumentError(
      StrCat("[keras] expected a StringLookup, IntegerLookup or TextVectorization, which have a vocabulary; got a "
             "layer of class ",
             lookup->class_name()));
}

std::vector<LayerMaker> LookupLayerMakers() {
  return {{"StringLookup", StringLookupLayer::FromConfig}, {"IntegerLookup", IntegerLookupLayer::FromConfig}};
}

}  // namespace cohort::keras
