// Loads the images on which the examples train.
#pragma once

#include <string>

#include "cohort/cohort.h"

namespace examples {

// The help text of --data_dir, which several programs have.
inline constexpr char kDataDirHelp[] =
    "Folder with the four IDX files, plain or .gz. Default: fashion-mnist in the folder that COHORT_DATA_DIR names. "
    "If that is not set, images are generated";

// Returns the images of datasets::FashionMnist(data_dir). If they are generated and `say` is true, prints a line that
// says so.
cohort::data::ImageDataset LoadImages(const std::string& data_dir, bool say);

// Returns the text that a program adds to the accuracy in its last line: " (of generated images)", or "".
const char* ImagesNote(bool generated);

}  // namespace examples
