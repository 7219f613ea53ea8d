// The vocabularies that layers of Keras have learned with adapt(), which its files have as assets. Internal to
// keras/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cohort/keras/files/config.h"
#include "cohort/keras/files/weights_file.h"

namespace cohort::keras {

// Returns the configuration of a model with the vocabulary of each StringLookup, IntegerLookup and TextVectorization
// that has none there, from the assets (ModelArchive::assets), and with its idf_weights, from the groups of the
// weights. Throws InvalidArgumentError if the vocabulary is not there either, or if an entry of an IntegerLookup is no
// integer.
ConfigValue WithVocabularies(const ConfigValue& model, const std::map<std::string, std::string>& assets,
                             const std::vector<WeightGroup>& groups);

}  // namespace cohort::keras
