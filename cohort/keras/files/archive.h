// The file of a whole model, as Keras 3 writes it (`.keras`): a zip archive of three members. See docs/formats.md.
#pragma once

#include <string>

#include "cohort/core/export.h"

namespace cohort::keras {

struct COHORT_EXPORT ModelArchive {
  std::string keras_version = "3.15.0";  // of metadata.json: whose configuration keys config.json has
  std::string date_saved;                // "YYYY-MM-DD@HH:MM:SS"; "" when writing: now
  std::string config;                    // config.json, as it is
  std::string weights;                   // model.weights.h5, as it is: see weights_file.h
};

// Writes the archive under a temporary name and renames it, so that a file of that name is always whole. Throws what
// core/file.h throws.
COHORT_EXPORT void WriteModelArchive(const std::string& path, const ModelArchive& archive);

// Throws NotFoundError and the like for a file that cannot be opened, DataLossError that names file and member for one
// that is no zip archive (or a truncated or damaged one), InvalidArgumentError for one without the members of a model,
// and UnimplementedError, with both versions, for one of a later major version than 3.
COHORT_EXPORT ModelArchive ReadModelArchive(const std::string& path);

}  // namespace cohort::keras
