// What the layers of preprocessing_layers.h are given, learned from data. In Keras a layer does this in adapt(). Here a
// layer does not change after it was made, so a function learns the arguments first:
//
//   const auto cities = keras::LearnStrings(train_cities, {.max_tokens = 10'000});
//   const keras::LayerRef lookup = keras::StringLookup({.vocabulary = cities});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/data/dataset.h"

namespace cohort::keras {

struct COHORT_EXPORT LearnOptions {
  int64_t max_tokens = 0;  // the most frequent tokens that are kept; 0: all
  int component = 0;       // which component of a dataset's elements is read
};

// Return the different values in the data, most frequent first; of two that are equally frequent, the greater one
// first, as in Keras. The tensors, or the elements of the dataset, may have any shape. All values count, so leave out
// those that stand for padding or are to be mask or out-of-vocabulary tokens. Throw InvalidArgumentError for data of
// another dtype (LearnIntegers takes int32 and int64), for a dataset that never ends, and for a component that does not
// exist.
COHORT_EXPORT std::vector<std::string> LearnStrings(const Tensor& data, const LearnOptions& options = {});
COHORT_EXPORT std::vector<std::string> LearnStrings(const data::Dataset& data, const LearnOptions& options = {});
COHORT_EXPORT std::vector<int64_t> LearnIntegers(const Tensor& data, const LearnOptions& options = {});
COHORT_EXPORT std::vector<int64_t> LearnIntegers(const data::Dataset& data, const LearnOptions& options = {});

// Return for each token of `vocabulary` its inverse document frequency: ln(1 + documents / (1 + documents with the
// token)). They are the idf_weights of a StringLookup or IntegerLookup for output_mode "tf_idf". The last axis of the
// data has the tokens of one document: [documents, ..., tokens]. As in Keras, a vector is [documents], but an element
// of a dataset that is a vector is one document. Throw InvalidArgumentError as LearnStrings, and for a vocabulary that
// is empty or has equal entries.
COHORT_EXPORT std::vector<double> LearnIdfWeights(const Tensor& data, const std::vector<std::string>& vocabulary);
COHORT_EXPORT std::vector<double> LearnIdfWeights(const data::Dataset& data, const std::vector<std::string>& vocabulary,
                                                  int component = 0);
COHORT_EXPORT std::vector<double> LearnIdfWeights(const Tensor& data, const std::vector<int64_t>& vocabulary);
COHORT_EXPORT std::vector<double> LearnIdfWeights(const data::Dataset& data, const std::vector<int64_t>& vocabulary,
                                                  int component = 0);

// Mean and variance of each index of the last axis.
struct COHORT_EXPORT Moments {
  std::vector<double> mean;
  std::vector<double> variance;
};
// Returns the moments of the data, for Normalization. Of numbers of any dtype, [examples, ..., features] or batches of
// them. Throws InvalidArgumentError for data without an example, and as LearnStrings.
COHORT_EXPORT Moments LearnMoments(const Tensor& data);
COHORT_EXPORT Moments LearnMoments(const data::Dataset& data, int component = 0);

}  // namespace cohort::keras
