// The images that an example trains on.
#pragma once

#include <string>

#include "cohort/cohort.h"

namespace examples {

// What --data_dir says in the help of each program that has it.
inline constexpr char kDataDirHelp[] =
    "Folder of the four IDX files, plain or .gz. Default: fashion-mnist in the folder that COHORT_DATA_DIR names; "
    "if that is not set, images are generated";

// Returns the images of datasets::FashionMnist(data_dir). If they are generated and `say` is set, a line says so, which
// is the program's first one.
cohort::data::ImageDataset LoadImages(const std::string& data_dir, bool say);

// Returns what the last line of a program adds to its accuracy: " (of generated images)", or "".
const char* ImagesNote(bool generated);

}  // namespace examples
