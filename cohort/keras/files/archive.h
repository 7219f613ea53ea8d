// The file of a whole model in the format of Keras 3 (`.keras`): a zip archive. See docs/formats.md.
#pragma once

#include <map>
#include <string>

#include "cohort/core/export.h"

namespace cohort::keras {

// The contents of a `.keras` file.
struct COHORT_EXPORT ModelArchive {
  std::string keras_version = "3.15.0";  // of metadata.json; its configuration keys are in config.json
  std::string date_saved;                // "YYYY-MM-DD@HH:MM:SS"; if "", writing sets the current time
  std::string config;                    // the text of config.json
  std::string weights;                   // the bytes of model.weights.h5; see weights_file.h
  // The vocabularies that layers keep in files of their own, by the path below assets/:
  // "layers/string_lookup/vocabulary.txt". Reading sets it; writing needs none, because this library keeps vocabularies
  // in config.json.
  std::map<std::string, std::string> assets;
};

// Writes the archive under a temporary name and then renames it. So a file with the final name is always complete.
// Throws what core/file.h throws.
COHORT_EXPORT void WriteModelArchive(const std::string& path, const ModelArchive& archive);

// Throws NotFoundError, or another error of core/file.h, if the file cannot be opened. Throws DataLossError that names
// file and member if it is not a zip archive, or is truncated or damaged. Throws InvalidArgumentError if members of a
// model are missing. Throws UnimplementedError, with both versions, if the major version is later than 3.
COHORT_EXPORT ModelArchive ReadModelArchive(const std::string& path);

}  // namespace cohort::keras
