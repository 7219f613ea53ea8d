// Ops that turn values of categories (words, ids of users, ages) into indices, for look-ups in embeddings: hashes,
// vocabularies, buckets, crosses and places in sorted lists. They run on the host on every device, and have no
// gradient.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Returns a hash of each string of `input` as int64 in [0, num_buckets), with the shape of `input`. The hash is
// FarmHash's Fingerprint64, modulo num_buckets, as in tf.strings.to_hash_bucket_fast: the same on every machine and in
// every version. Whoever chooses the strings can make many of them fall into one bucket; if that matters, use
// StringToHashBucketStrong. Throws InvalidArgumentError for num_buckets < 1.
COHORT_EXPORT Output StringToHashBucketFast(Output input, int64_t num_buckets, const NodeName& name = "");
// As StringToHashBucketFast, with the hash SipHash-2-4 under `key`, as in tf.strings.to_hash_bucket_strong. Who does
// not know the key cannot choose strings of one bucket. It takes several times as long.
COHORT_EXPORT Output StringToHashBucketStrong(Output input, int64_t num_buckets, const std::array<int64_t, 2>& key,
                                              const NodeName& name = "");
// Returns each integer (uint8, int32, int64) of `input` in decimal digits, and bools as "true" and "false".
COHORT_EXPORT Output AsString(Output input, const NodeName& name = "");

// Returns for each element of `values` (string or int64) its place in `vocabulary` as int64. For a value that is not
// there, returns `default_value`; if that is nullopt, the step fails with InvalidArgumentError, which names the value.
// The result has the shape of `values`. `vocabulary` is a vector of the same dtype without two equal entries. It is a
// part of the node, so each task that runs the node has it, and makes a hash table of it when a session first uses the
// node. Throws InvalidArgumentError for another vocabulary; see CheckVocabulary.
COHORT_EXPORT Output VocabularyLookup(Output values, const Tensor& vocabulary,
                                      std::optional<int64_t> default_value = -1, const NodeName& name = "");
// Throws InvalidArgumentError unless `vocabulary` is a vector of strings or int64 without two equal entries. The error
// names the entry.
COHORT_EXPORT void CheckVocabulary(const Tensor& vocabulary);

// Returns for each element of `input` (int32, int64, float32, float64) how many of the `boundaries` are not above it,
// as int32. With the boundaries {0, 10}, -5 gives 0, 0 and 9 give 1, 10 gives 2. NaN counts as larger than all. Throws
// InvalidArgumentError if the boundaries are not in ascending order.
COHORT_EXPORT Output Bucketize(Output input, const std::vector<float>& boundaries, const NodeName& name = "");

// Returns for each element of `values` [rows, m] where it would be inserted into the row of `sorted_sequence` [rows, n]
// of the same number, as int64 [rows, m]: before equal elements, or after them if `right`. Both have the same dtype:
// int32, int64, float32 or float64. Each row of `sorted_sequence` is in ascending order; nothing checks it. For a NaN
// the result is 0, or n if `right`. As tf.searchsorted, ops LowerBound and UpperBound. Throws InvalidArgumentError for
// other shapes.
COHORT_EXPORT Output SearchSorted(Output sorted_sequence, Output values, bool right = false, const NodeName& name = "");

// The values of a matrix whose rows have different lengths, in TensorFlow's form of a sparse tensor.
struct COHORT_EXPORT SparseIntegers {
  Output indices;      // int64 [n, 2]: row and column of each value, sorted
  Output values;       // int64 [n]
  Output dense_shape;  // int64 [2]
};
inline constexpr int64_t kCrossHashKey = 0xDECAFCAFFE;
// Returns for each row of the inputs the hashes of all their combinations: one value of each input, [batch, m_i], whose
// fingerprints are joined. So a row has m_0 * m_1 * ... hashes in [0, num_buckets), and that of the last input changes
// first. The inputs are strings or int64. `hash_key` begins each hash; another key gives other hashes. As
// tf.sparse.cross_hashed for dense inputs (op SparseCross). Throws InvalidArgumentError for num_buckets < 1, no input,
// and inputs of another rank, dtype or number of rows.
COHORT_EXPORT SparseIntegers CrossHashed(const std::vector<Output>& inputs, int64_t num_buckets,
                                         int64_t hash_key = kCrossHashKey, const NodeName& name = "");

}  // namespace cohort::ops
