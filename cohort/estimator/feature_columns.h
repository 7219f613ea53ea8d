// Feature columns: how named features become the inputs of a model. The functions have the names, the defaults, the
// names of variables and the numbers of tf.feature_column; InputLayer and LinearModel are tf.compat.v1's.
//
//   namespace fc = cohort::feature_column;
//   const fc::ColumnPtr age = fc::NumericColumn("age");
//   const fc::ColumnPtr job = fc::CategoricalColumnWithVocabularyList("job", {"cook", "nurse", "pilot"});
//   const Output net = fc::InputLayer(args.named_features, {age, fc::EmbeddingColumn(job, 4)});
//
// A column is dense or categorical; a BucketizedColumn is both. Features are dense values [batch] or [batch, n]. Of a
// categorical column, an empty string and the number -1 stand for no value, so examples may have different numbers of
// values. (TensorFlow takes sparse tensors, too.)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/initializers.h"

namespace cohort::feature_column {

// The features of a model function, by name (ModelFnArgs::named_features).
using Features = std::map<std::string, Output>;

class Column;
// Columns do not change. They belong to no graph.
using ColumnPtr = std::shared_ptr<const Column>;

// Returns the name of the column, which its variables have: the key of the feature, with "_bucketized", "_embedding"
// or "_indicator"; that of a cross is "a_X_b".
COHORT_EXPORT const std::string& NameOf(const ColumnPtr& column);

struct COHORT_EXPORT NumericOptions {
  Shape shape = {1};                            // of the feature of one example
  std::function<Output(Output)> normalizer_fn;  // gets the feature, [batch, ...]; null: none
};
// Dense: the feature, numbers of any dtype, normalized, as float32 [batch, elements of `shape`].
COHORT_EXPORT ColumnPtr NumericColumn(const std::string& key, const NumericOptions& options = {});
// The number of the interval in which a number lies: n boundaries, in ascending order, make n + 1 intervals, and a
// boundary belongs to the interval above it. As a dense column it is one-hot. Throws InvalidArgumentError for a source
// that is not a NumericColumn, for no boundary, and for another order.
COHORT_EXPORT ColumnPtr BucketizedColumn(const ColumnPtr& source_column, const std::vector<float>& boundaries);

// Categorical: integers in [0, num_buckets). Others become `default_value`; without one the step fails with
// InvalidArgumentError. Throws InvalidArgumentError for num_buckets < 1, and for a default that is not in the range.
COHORT_EXPORT ColumnPtr CategoricalColumnWithIdentity(const std::string& key, int64_t num_buckets,
                                                      std::optional<int64_t> default_value = std::nullopt);
// Categorical: the hash (ops::StringToHashBucketFast) of strings, or of the digits of integers. Throws
// InvalidArgumentError for hash_bucket_size < 1.
COHORT_EXPORT ColumnPtr CategoricalColumnWithHashBucket(const std::string& key, int64_t hash_bucket_size);

using Vocabulary = std::variant<std::vector<std::string>, std::vector<int64_t>>;
struct COHORT_EXPORT VocabularyOptions {
  // Of values that are not in the vocabulary. -1: they count as no value, but not in a cross.
  int64_t default_value = -1;
  // More than 0: they become one of so many further numbers, by their hash.
  int64_t num_oov_buckets = 0;
};
// Categorical: the places of values in a list. Throws InvalidArgumentError for an empty list, for equal entries, if
// both options are set, and for a default that is no place.
COHORT_EXPORT ColumnPtr CategoricalColumnWithVocabularyList(const std::string& key, const Vocabulary& vocabulary_list,
                                                            const VocabularyOptions& options = {});
// The same with the lines of a file, strings, which is read now. Throws the errors of core/file.h, and
// InvalidArgumentError for an empty line.
COHORT_EXPORT ColumnPtr CategoricalColumnWithVocabularyFile(const std::string& key, const std::string& vocabulary_file,
                                                            const VocabularyOptions& options = {});

// What is crossed: the key of a feature, strings or integers, whose values all count, or a categorical column.
using CrossKey = std::variant<std::string, ColumnPtr>;
// Categorical: the hashes of all combinations of the values (ops::CrossHashed). Features must have a known number of
// values. A crossed column among the keys stands for its keys. Throws InvalidArgumentError for fewer than two keys, for
// hash_bucket_size < 1, for a dense column, and for a hash bucket (cross its feature instead). The hash_key 0 is the
// default, as in TensorFlow.
COHORT_EXPORT ColumnPtr CrossedColumn(const std::vector<CrossKey>& keys, int64_t hash_bucket_size,
                                      std::optional<int64_t> hash_key = std::nullopt);

struct COHORT_EXPORT EmbeddingOptions {
  std::string combiner = "mean";  // of the rows of an example's values; or "sum", or "sqrtn"
  ops::Initializer initializer;   // null: truncated normal numbers with the deviation 1 / sqrt(dimension)
  bool trainable = true;
};
// Dense: the rows of a table "embedding_weights" [buckets, dimension], combined. An example without values gets zeros.
// Its gradient is sparse. Throws InvalidArgumentError for a column that is not categorical, for dimension < 1, and for
// another combiner.
COHORT_EXPORT ColumnPtr EmbeddingColumn(const ColumnPtr& categorical_column, int64_t dimension,
                                        const EmbeddingOptions& options = {});
// Dense: how often each number is there (one-hot for one value). Throws as EmbeddingColumn.
COHORT_EXPORT ColumnPtr IndicatorColumn(const ColumnPtr& categorical_column);

// Returns the values of dense columns side by side, in the order of their names: float32 [batch, n]. Variables are
// called "input_layer/<column>/embedding_weights" under the current name scope. Throws InvalidArgumentError for no
// column, a null one, one that is only categorical, and two of one name; NotFoundError, which lists the features, if
// one is missing; and InvalidArgumentError for a feature of another shape or dtype than its column needs.
COHORT_EXPORT Output InputLayer(const Features& features, const std::vector<ColumnPtr>& feature_columns);

struct COHORT_EXPORT LinearModelOptions {
  int64_t units = 1;
  std::string sparse_combiner = "sum";  // of the weights of a categorical column; or "mean", or "sqrtn"
};
// Returns the sum over all columns of their values times weights, and a bias: float32 [batch, units]. Variables are
// called "linear_model/<column>/weights" and "linear_model/bias_weights", and begin with zeros; in the name of a column
// '_' stands for characters other than letters, digits, '.' and '-'. Throws as InputLayer, but takes categorical
// columns, too.
COHORT_EXPORT Output LinearModel(const Features& features, const std::vector<ColumnPtr>& feature_columns,
                                 const LinearModelOptions& options = {});

}  // namespace cohort::feature_column
