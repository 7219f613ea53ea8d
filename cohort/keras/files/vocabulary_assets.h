// The vocabularies that layers of Keras have learned with adapt(), which its files have as assets. Internal to keras/.
#pragma once

#include <map>
#include <string>

#include "cohort/keras/files/config.h"

namespace cohort::keras {

// Returns the configuration of a model with the vocabulary of each StringLookup and IntegerLookup that has none there,
// from the assets (ModelArchive::assets). Throws InvalidArgumentError if the vocabulary is not there either, or if an
// entry of an IntegerLookup is no integer.
ConfigValue WithVocabularies(const ConfigValue& model, const std::map<std::string, std::string>& assets);

}  // namespace cohort::keras
