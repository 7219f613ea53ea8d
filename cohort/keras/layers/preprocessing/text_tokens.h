// Nodes that divide texts into tokens, for TextVectorization and LearnText, and what learning from data needs. Internal
// to keras/.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/keras/layers/preprocessing/text_vectorization.h"
#include "cohort/ops/strings.h"

namespace cohort::keras {

// Throws InvalidArgumentError for options that divide no text: another `standardize`, `split` or `ngrams`.
void CheckTextOptions(const TextVectorizationOptions& options);
// Returns how many neighbours become a token, or nothing if there are no n-grams.
std::vector<int64_t> NGramWidths(const TextVectorizationOptions& options);
// Returns `texts`, strings of any shape, after `standardize`.
Output Standardized(const Output& texts, const TextVectorizationOptions& options);
// Returns the tokens of each text of `texts`, strings [batch], by `split` and `ngrams`. Requires: options.split.
ops::SparseStrings SplitTexts(const Output& texts, const TextVectorizationOptions& options);
// Returns the n-grams of each row of `tokens`, strings [batch, n], or `tokens` if there are no n-grams. Requires: n is
// known.
Output RowNGrams(const Output& tokens, const TextVectorizationOptions& options);
// Returns `tokens`, strings [batch, n], as rows of n tokens each.
ops::SparseStrings TokensInRows(const Output& tokens);

// Throws InvalidArgumentError for a component that the dataset does not have, and for a dataset that never ends.
void CheckCanBeLearned(const data::Dataset& data, int component);
// Returns the inverse document frequency of a token that so many of the documents have.
double IdfWeight(int64_t documents, int64_t with_token);

}  // namespace cohort::keras
