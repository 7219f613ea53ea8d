// A column turns features into dense values (Column::Dense), into numbers of categories (Column::Ids), or both.
// The numbers of categories are int64 [batch, n]. The number kNone means that there is no value.
#include "cohort/estimator/feature_columns.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/str_split.h"
#include "cohort/estimator/weights.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/gather_nd.h"
#include "cohort/ops/join.h"
#include "cohort/ops/lookup.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/partitioned_variables.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"

namespace cohort::feature_column {

class Column {
 public:
  explicit Column(std::string name) : name_(std::move(name)) {}
  virtual ~Column() = default;
  const std::string& name() const { return name_; }
  virtual bool is_dense() const { return false; }
  virtual bool is_categorical() const { return false; }
  // Requires: is_dense(). Returns float32 [batch, Width()].
  virtual Output Dense(const Features& features) const;
  virtual int64_t Width() const { return 0; }
  // Requires: is_categorical(). Returns int64 [batch, n]: numbers in [0, Buckets()), and kNone.
  virtual Output Ids(const Features& features) const;
  virtual int64_t Buckets() const { return 0; }
  // Requires: is_categorical(). Returns bool [batch, n]: where the feature has no value. A value that is not in a
  // vocabulary is a value, although its number may be kNone.
  virtual Output IsMissing(const Features& features) const;

 private:
  const std::string name_;
};

namespace {

constexpr int64_t kNone = -1;

Output Unreachable(const Column& column, const char* kind) {
  throw InternalError(StrCat("[feature_column] column '", column.name(), "' is not ", kind));
}

[[noreturn]] void Fail(const Column& column, const std::string& expected, const std::string& got) {
  throw InvalidArgumentError(
      StrCat("[feature_column] expected ", expected, " for column '", column.name(), "'; got ", got));
}

// Returns the feature as [batch, ...].
Output Feature(const Features& features, const std::string& key, const Column& column) {
  const auto found = features.find(key);
  if (found == features.end()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : features) names.push_back(name);
    throw NotFoundError(StrCat("[feature_column] expected a feature '", key, "' for column '", column.name(),
                               "'; the features are [", StrJoin(names, ", "), "]"));
  }
  const Output& feature = found->second;
  if (!feature.shape().has_rank() || feature.shape().rank() == 0) {
    Fail(column, StrCat("a feature '", key, "' of shape [batch, ...]"), StrCat("shape ", feature.shape()));
  }
  return feature.shape().rank() == 1 ? ops::ExpandDims(feature, 1) : feature;
}

// Returns the feature as strings or int64 [batch, n].
Output Values(const Features& features, const std::string& key, const Column& column) {
  const Output feature = Feature(features, key, column);
  if (feature.shape().rank() != 2) {
    Fail(column, StrCat("a feature '", key, "' of shape [batch] or [batch, n]"), StrCat("shape ", feature.shape()));
  }
  if (feature.dtype() == DType::kString || feature.dtype() == DType::kInt64) return feature;
  if (feature.dtype() == DType::kInt32) return ops::Cast(feature, DType::kInt64);
  Fail(column, StrCat("strings, int32 or int64 as feature '", key, "'"), StrCat(feature.dtype()));
}

// Returns bool [batch, n]: where the values are none.
Output IsNone(const Output& values) {
  if (values.dtype() == DType::kInt64) return ops::Equal(values, kNone);
  return ops::Equal(ops::VocabularyLookup(values, Tensor::Vector<std::string>({""})), 0);
}

Output Without(const Output& is_none, const Output& ids) { return ops::SelectV2(is_none, kNone, ids); }

int64_t AtLeastOne(const char* what, const std::string& key, int64_t number) {
  if (number >= 1) return number;
  throw InvalidArgumentError(
      StrCat("[feature_column] expected a ", what, " of at least 1 for feature '", key, "'; got ", number));
}

Output Hash(const Output& values, int64_t buckets) {
  return ops::StringToHashBucketFast(values.dtype() == DType::kString ? values : ops::AsString(values), buckets);
}

// ---- columns -------------------------------------------------------------------------------------------------------

class Numeric final : public Column {
 public:
  Numeric(const std::string& key, const NumericOptions& options) : Column(key), options_(options) {
    const Shape& shape = options.shape;
    if (!shape.IsFullyDefined() || shape.num_elements() < 1) {
      Fail(*this, "a shape whose dimensions are known and at least 1", StrCat(shape));
    }
  }
  bool is_dense() const override { return true; }
  int64_t Width() const override { return options_.shape.num_elements(); }
  Output Dense(const Features& features) const override {
    const Output feature = Feature(features, name(), *this);
    const Shape& shape = feature.shape();
    const Shape of_one = shape.Sub(1, shape.rank());
    if (feature.dtype() == DType::kString || !of_one.IsCompatibleWith(options_.shape)) {
      Fail(*this, StrCat("numbers of shape ", Shape{Shape::kUnknownDim}.Concat(options_.shape)),
           StrCat(feature.dtype(), shape));
    }
    const Output value = weights::AsFloat(options_.normalizer_fn ? options_.normalizer_fn(feature) : feature);
    return weights::Matrix(value, Width(), value);
  }

 private:
  const NumericOptions options_;
};

class Bucketized final : public Column {
 public:
  Bucketized(std::shared_ptr<const Numeric> source, const std::vector<float>& boundaries)
      : Column(source->name() + "_bucketized"), source_(std::move(source)), boundaries_(boundaries) {
    const auto is_nan = [](float boundary) { return std::isnan(boundary); };
    if (boundaries.empty() || std::any_of(boundaries.begin(), boundaries.end(), is_nan) ||
        std::adjacent_find(boundaries.begin(), boundaries.end(), std::greater_equal<>()) != boundaries.end()) {
      Fail(*this, "boundaries in ascending order", StrCat("[", StrJoin(boundaries, ", "), "]"));
    }
  }
  bool is_dense() const override { return true; }
  bool is_categorical() const override { return true; }
  int64_t Width() const override { return Buckets(); }
  int64_t Buckets() const override { return source_->Width() * Intervals(); }
  Output Dense(const Features& features) const override {
    const Output one_hot = ops::OneHot(Interval(features), static_cast<int>(Intervals()));
    return ops::Reshape(one_hot, {-1, Width()});
  }
  // Each element of the feature has intervals of its own.
  Output Ids(const Features& features) const override {
    std::vector<int64_t> firsts;
    for (int64_t i = 0; i < source_->Width(); ++i) firsts.push_back(i * Intervals());
    const Output interval = ops::Cast(Interval(features), DType::kInt64);
    return ops::Add(interval, ops::Const(interval.graph(), firsts));
  }
  Output IsMissing(const Features& features) const override { return ops::Less(Interval(features), 0); }

 private:
  int64_t Intervals() const { return std::ssize(boundaries_) + 1; }
  Output Interval(const Features& features) const { return ops::Bucketize(source_->Dense(features), boundaries_); }

  const std::shared_ptr<const Numeric> source_;
  const std::vector<float> boundaries_;
};

// A categorical column of one feature.
class Categorical : public Column {
 public:
  Categorical(const std::string& key, int64_t buckets) : Column(key), buckets_(buckets) {}
  bool is_categorical() const override { return true; }
  int64_t Buckets() const override { return buckets_; }
  Output IsMissing(const Features& features) const override { return IsNone(Values(features, name(), *this)); }

 private:
  const int64_t buckets_;
};

class Identity final : public Categorical {
 public:
  Identity(const std::string& key, int64_t buckets, std::optional<int64_t> default_value)
      : Categorical(key, buckets), default_(default_value) {
    if (default_ && (*default_ < 0 || *default_ >= buckets)) {
      Fail(*this, StrCat("a default value in [0, ", buckets, ")"), StrCat(*default_));
    }
  }
  Output Ids(const Features& features) const override {
    const Output values = Values(features, name(), *this);
    if (values.dtype() == DType::kString) Fail(*this, "int32 or int64", "strings");
    const Output fits = ops::LogicalAnd(ops::GreaterEqual(values, 0), ops::Less(values, Buckets()));
    const Output none = IsNone(values);
    if (default_) return Without(none, ops::SelectV2(fits, values, *default_));
    Graph& graph = values.graph();
    const Output text =
        ops::Const(graph, StrCat("expected numbers in [0, ", Buckets(), ") as feature '", name(), "'; got"));
    Node* const check = ops::Assert(ops::All(ops::LogicalOr(fits, none)), {text, values}, 20);
    const ControlDependencies after(graph, {check});
    return ops::Identity(values);
  }

 private:
  const std::optional<int64_t> default_;
};

class HashBucket final : public Categorical {
 public:
  using Categorical::Categorical;
  Output Ids(const Features& features) const override {
    const Output values = Values(features, name(), *this);
    return Without(IsNone(values), Hash(values, Buckets()));
  }
};

class VocabularyList final : public Categorical {
 public:
  VocabularyList(const std::string& key, const Tensor& vocabulary, const VocabularyOptions& options)
      : Categorical(key, vocabulary.num_elements() + options.num_oov_buckets),
        vocabulary_(vocabulary),
        options_(options) {
    const int64_t places = vocabulary.num_elements();
    if (places == 0) Fail(*this, "a vocabulary with entries", "none");
    try {
      ops::CheckVocabulary(vocabulary);
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(StrCat(error.what(), " (column '", key, "')"));
    }
    if (options.default_value != -1 && options.num_oov_buckets > 0) {
      Fail(*this, "either a default value or num_oov_buckets", "both");
    }
    if (options.default_value < -1 || options.default_value >= places) {
      Fail(*this, StrCat("a default value in [-1, ", places, ")"), StrCat(options.default_value));
    }
  }
  Output Ids(const Features& features) const override {
    const Output values = Values(features, name(), *this);
    if (values.dtype() != vocabulary_.dtype()) Fail(*this, StrCat(vocabulary_.dtype()), StrCat(values.dtype()));
    Output places = ops::VocabularyLookup(values, vocabulary_, options_.default_value);
    if (options_.num_oov_buckets > 0) {
      const Output further = ops::Add(Hash(values, options_.num_oov_buckets), vocabulary_.num_elements());
      places = ops::SelectV2(ops::Less(places, 0), further, places);
    }
    return Without(IsNone(values), places);
  }

 private:
  const Tensor vocabulary_;
  const VocabularyOptions options_;
};

class Crossed final : public Column {
 public:
  Crossed(std::vector<CrossKey> keys, int64_t buckets, int64_t hash_key)
      : Column(StrJoin(KeysOf(keys), "_X_")), keys_(std::move(keys)), buckets_(buckets), hash_key_(hash_key) {}
  bool is_categorical() const override { return true; }
  int64_t Buckets() const override { return buckets_; }
  const std::vector<CrossKey>& keys() const { return keys_; }

  // A combination with a value that is missing is none. Values that are not in a vocabulary have the number -1.
  Output Ids(const Features& features) const override {
    std::vector<Output> inputs;
    Output is_none;  // [batch, combinations so far]
    int64_t combinations = 1;
    for (const CrossKey& key : keys_) {
      const auto* column = std::get_if<ColumnPtr>(&key);
      const Output values =
          column != nullptr ? (*column)->Ids(features) : Values(features, std::get<std::string>(key), *this);
      const int64_t n = values.shape().dim(1);
      if (n < 1) {
        Fail(*this, "features with a known number of values, at least 1",
             StrCat("'", column != nullptr ? NameOf(*column) : std::get<std::string>(key), "' of shape ",
                    values.shape()));
      }
      inputs.push_back(values);
      const Output none = column == nullptr ? ops::ZerosLike(IsNone(values)) : (*column)->IsMissing(features);
      combinations *= n;
      is_none = !is_none.valid() ? none
                                 : ops::Reshape(ops::LogicalOr(ops::ExpandDims(is_none, 2), ops::ExpandDims(none, 1)),
                                                {-1, combinations});
    }
    const Output hashes = ops::CrossHashed(inputs, buckets_, hash_key_).values;
    return Without(is_none, ops::Reshape(hashes, {-1, combinations}));
  }

 private:
  // Returns the names of the keys, sorted.
  static std::vector<std::string> KeysOf(const std::vector<CrossKey>& keys) {
    std::vector<std::string> names;
    for (const CrossKey& key : keys) {
      const auto* column = std::get_if<ColumnPtr>(&key);
      names.push_back(column != nullptr ? NameOf(*column) : std::get<std::string>(key));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::vector<CrossKey> keys_;
  const int64_t buckets_;
  const int64_t hash_key_;
};

// Returns for each example its rows of `table` [buckets, n], combined: float32 [batch, n].
Output Combine(const ops::Variable& table, const Output& ids, const std::string& combiner) {
  const Output batch = ops::Reshape(ops::Slice(ops::ShapeOf(ids), {0}, {1}), std::vector<int64_t>{});
  const Output places = ops::Where(ops::GreaterEqual(ids, 0));  // [values, 2]
  const Output example = ops::Reshape(ops::Slice(places, {0, 0}, {-1, 1}), {-1});
  const Output rows = ops::EmbeddingLookup(table, ops::GatherNd(ids, places));
  const Output sum = ops::UnsortedSegmentSum(rows, example, batch);
  const Output shaped = ops::Reshape(sum, {-1, table.shape().dim(1)});
  if (combiner == "sum") return shaped;
  const Output ones = ops::Cast(ops::OnesLike(example), DType::kFloat32);
  const Output count = ops::ExpandDims(ops::UnsortedSegmentSum(ones, example, batch), 1);
  return weights::DivideOrZero(shaped, combiner == "mean" ? count : ops::Sqrt(count));
}

void CheckCombiner(const std::string& combiner, const std::string& whose) {
  if (combiner == "mean" || combiner == "sum" || combiner == "sqrtn") return;
  throw InvalidArgumentError(StrCat("[feature_column] expected a combiner \"mean\", \"sum\" or \"sqrtn\" for ", whose,
                                    "; got \"", combiner, "\""));
}

class Embedding final : public Column {
 public:
  Embedding(ColumnPtr categorical, int64_t dimension, const EmbeddingOptions& options)
      : Column(NameOf(categorical) + "_embedding"),
        categorical_(std::move(categorical)),
        dimension_(dimension),
        options_(options) {
    if (dimension < 1) Fail(*this, "a dimension of at least 1", StrCat(dimension));
    CheckCombiner(options.combiner, StrCat("column '", name(), "'"));
  }
  bool is_dense() const override { return true; }
  int64_t Width() const override { return dimension_; }
  Output Dense(const Features& features) const override {
    const Output ids = categorical_->Ids(features);
    const ops::Initializer usual = initializers::TruncatedNormal(0.0, 1.0 / std::sqrt(static_cast<double>(dimension_)));
    const ops::Variable table =
        ops::GetVariable(ids.graph(), "embedding_weights", Shape{categorical_->Buckets(), dimension_}, DType::kFloat32,
                         options_.initializer ? options_.initializer : usual, options_.trainable);
    return Combine(table, ids, options_.combiner);
  }

 private:
  const ColumnPtr categorical_;
  const int64_t dimension_;
  const EmbeddingOptions options_;
};

class Indicator final : public Column {
 public:
  explicit Indicator(ColumnPtr categorical)
      : Column(NameOf(categorical) + "_indicator"), categorical_(std::move(categorical)) {}
  bool is_dense() const override { return true; }
  int64_t Width() const override { return categorical_->Buckets(); }
  Output Dense(const Features& features) const override {
    const Output ids = categorical_->Ids(features);
    const Output one_hot = ops::OneHot(ids, Width(), 1.0f, 0.0f);
    return ops::Reshape(ops::Sum(one_hot, {1}), {-1, Width()});
  }

 private:
  const ColumnPtr categorical_;
};

const ColumnPtr& CheckedCategorical(const char* function, const ColumnPtr& column) {
  if (column != nullptr && column->is_categorical()) return column;
  throw InvalidArgumentError(StrCat("[feature_column] ", function, " expected a categorical column; got ",
                                    column == nullptr ? "null" : StrCat("the dense column '", column->name(), "'")));
}

// Returns the columns in the order of their names.
std::vector<ColumnPtr> Sorted(const char* function, std::vector<ColumnPtr> columns) {
  const std::string where = StrCat("[feature_column] ", function, " expected ");
  if (columns.empty()) throw InvalidArgumentError(where + "at least one column; got none");
  if (std::count(columns.begin(), columns.end(), nullptr) > 0) {
    throw InvalidArgumentError(where + "columns; got a null one");
  }
  std::sort(columns.begin(), columns.end(), [](const auto& a, const auto& b) { return a->name() < b->name(); });
  for (size_t i = 1; i < columns.size(); ++i) {
    if (columns[i]->name() == columns[i - 1]->name()) {
      throw InvalidArgumentError(StrCat(where, "columns of different names; got '", columns[i]->name(), "' twice"));
    }
  }
  return columns;
}

bool MayStandInName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

// Returns the name of a column's variables in a linear model: as in TensorFlow, '_' stands for characters that no
// variable may have.
std::string NameInLinearModel(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !MayStandInName(c); }, '_');
  return name;
}

Graph& GraphOf(const char* function, const Features& features) {
  if (!features.empty()) return features.begin()->second.graph();
  throw InvalidArgumentError(StrCat("[feature_column] ", function,
                                    " expected features with names; got none. Let the input function return the names "
                                    "of its features: {dataset, {\"age\", ...}}"));
}

}  // namespace

Output Column::Dense(const Features&) const { return Unreachable(*this, "dense"); }
Output Column::Ids(const Features&) const { return Unreachable(*this, "categorical"); }
Output Column::IsMissing(const Features&) const { return Unreachable(*this, "categorical"); }

const std::string& NameOf(const ColumnPtr& column) {
  if (column == nullptr) throw InvalidArgumentError("[feature_column] expected a column; got null");
  return column->name();
}

ColumnPtr NumericColumn(const std::string& key, const NumericOptions& options) {
  return std::make_shared<Numeric>(key, options);
}

ColumnPtr BucketizedColumn(const ColumnPtr& source_column, const std::vector<float>& boundaries) {
  auto source = std::dynamic_pointer_cast<const Numeric>(source_column);
  if (source == nullptr) {
    throw InvalidArgumentError(StrCat("[feature_column] BucketizedColumn expected a NumericColumn; got ",
                                      source_column == nullptr ? "null" : StrCat("'", source_column->name(), "'")));
  }
  return std::make_shared<Bucketized>(std::move(source), boundaries);
}

ColumnPtr CategoricalColumnWithIdentity(const std::string& key, int64_t num_buckets,
                                        std::optional<int64_t> default_value) {
  return std::make_shared<Identity>(key, AtLeastOne("num_buckets", key, num_buckets), default_value);
}

ColumnPtr CategoricalColumnWithHashBucket(const std::string& key, int64_t hash_bucket_size) {
  return std::make_shared<HashBucket>(key, AtLeastOne("hash_bucket_size", key, hash_bucket_size));
}

ColumnPtr CategoricalColumnWithVocabularyList(const std::string& key, const Vocabulary& vocabulary_list,
                                              const VocabularyOptions& options) {
  const Tensor vocabulary = std::visit([](const auto& list) { return Tensor::Vector(list); }, vocabulary_list);
  if (options.num_oov_buckets < 0 || options.num_oov_buckets > int64_t{1} << 40) {
    throw InvalidArgumentError(StrCat("[feature_column] expected num_oov_buckets in [0, 2^40] for feature '", key,
                                      "'; got ", options.num_oov_buckets));
  }
  return std::make_shared<VocabularyList>(key, vocabulary, options);
}

ColumnPtr CategoricalColumnWithVocabularyFile(const std::string& key, const std::string& vocabulary_file,
                                              const VocabularyOptions& options) {
  std::vector<std::string> lines = StrSplit(ReadFile(vocabulary_file), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();  // behind the last end of a line
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].ends_with('\r')) lines[i].pop_back();
    if (!lines[i].empty()) continue;
    throw InvalidArgumentError(StrCat("[feature_column] expected an entry in each line of the vocabulary '",
                                      vocabulary_file, "' for feature '", key, "'; line ", i + 1, " is empty"));
  }
  return CategoricalColumnWithVocabularyList(key, lines, options);
}

ColumnPtr CrossedColumn(const std::vector<CrossKey>& keys, int64_t hash_bucket_size, std::optional<int64_t> hash_key) {
  std::vector<CrossKey> leaves;
  for (const CrossKey& key : keys) {
    const auto* column = std::get_if<ColumnPtr>(&key);
    if (column == nullptr) {
      leaves.push_back(key);
      continue;
    }
    CheckedCategorical("CrossedColumn", *column);
    if (const auto* crossed = dynamic_cast<const Crossed*>(column->get())) {
      leaves.insert(leaves.end(), crossed->keys().begin(), crossed->keys().end());
    } else if (dynamic_cast<const HashBucket*>(column->get()) != nullptr) {
      throw InvalidArgumentError(
          StrCat("[feature_column] CrossedColumn expected no hash bucket, because it hashes "
                 "itself; give the key '",
                 NameOf(*column), "' instead of the column"));
    } else {
      leaves.push_back(key);
    }
  }
  if (keys.size() < 2) {
    throw InvalidArgumentError(StrCat("[feature_column] CrossedColumn expected at least two keys; got ", keys.size()));
  }
  if (hash_bucket_size < 1) {
    throw InvalidArgumentError(
        StrCat("[feature_column] CrossedColumn expected a hash_bucket_size of at least 1; got ", hash_bucket_size));
  }
  // TensorFlow hashes the sparse tensors first, which columns make, and then the features.
  std::stable_partition(leaves.begin(), leaves.end(),
                        [](const CrossKey& key) { return std::holds_alternative<ColumnPtr>(key); });
  return std::make_shared<Crossed>(std::move(leaves), hash_bucket_size,
                                   hash_key.value_or(0) == 0 ? ops::kCrossHashKey : *hash_key);
}

ColumnPtr EmbeddingColumn(const ColumnPtr& categorical_column, int64_t dimension, const EmbeddingOptions& options) {
  return std::make_shared<Embedding>(CheckedCategorical("EmbeddingColumn", categorical_column), dimension, options);
}

ColumnPtr IndicatorColumn(const ColumnPtr& categorical_column) {
  return std::make_shared<Indicator>(CheckedCategorical("IndicatorColumn", categorical_column));
}

Output InputLayer(const Features& features, const std::vector<ColumnPtr>& feature_columns) {
  const std::vector<ColumnPtr> columns = Sorted("InputLayer", feature_columns);
  Graph& graph = GraphOf("InputLayer", features);
  const NameScope scope(graph, "input_layer");
  std::vector<Output> values;
  for (const ColumnPtr& column : columns) {
    if (!column->is_dense()) {
      throw InvalidArgumentError(
          StrCat("[feature_column] InputLayer expected dense columns; got the categorical "
                 "column '",
                 column->name(), "'; wrap it in an EmbeddingColumn or an IndicatorColumn"));
    }
    if (!std::all_of(column->name().begin(), column->name().end(),
                     [](char c) { return MayStandInName(c) || c == '/'; })) {
      throw InvalidArgumentError(
          StrCat("[feature_column] InputLayer expected columns whose names have letters, digits "
                 "and _ . - / only, because variables have them; got '",
                 column->name(), "'"));
    }
    const NameScope of_column(graph, column->name());
    values.push_back(column->Dense(features));
  }
  return values.size() == 1 ? values[0] : ops::Concat(values, 1);
}

Output LinearModel(const Features& features, const std::vector<ColumnPtr>& feature_columns,
                   const LinearModelOptions& options) {
  const std::vector<ColumnPtr> columns = Sorted("LinearModel", feature_columns);
  CheckCombiner(options.sparse_combiner, "a linear model");
  if (options.units < 1) {
    throw InvalidArgumentError(StrCat("[feature_column] LinearModel expected at least one unit; got ", options.units));
  }
  Graph& graph = GraphOf("LinearModel", features);
  const NameScope scope(graph, "linear_model");
  std::vector<Output> sums;
  for (const ColumnPtr& column : columns) {
    const NameScope of_column(graph, NameInLinearModel(column->name()));
    const bool rows = column->is_categorical();
    const Output values = rows ? column->Ids(features) : column->Dense(features);
    const ops::Variable weights =
        ops::GetVariable(graph, "weights", Shape{rows ? column->Buckets() : column->Width(), options.units},
                         DType::kFloat32, initializers::Zeros());
    sums.push_back(rows ? Combine(weights, values, options.sparse_combiner) : ops::MatMul(values, weights));
  }
  const ops::Variable bias =
      ops::GetVariable(graph, "bias_weights", Shape{options.units}, DType::kFloat32, initializers::Zeros());
  return ops::Add(sums.size() == 1 ? sums[0] : ops::AddN(sums), bias);
}

}  // namespace cohort::feature_column
