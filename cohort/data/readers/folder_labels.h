// What datasets of class folders (image_folder.h, text_folder.h) have in common: labels, and parts of the files.
#pragma once

namespace cohort::data {

// What an element has beside its image or text.
enum class LabelMode {
  kInt,          // int32 [batch]: the number of the class
  kBinary,       // float32 [batch, 1]: 0 or 1; there must be two classes
  kCategorical,  // float32 [batch, classes]: 1 at the class, and 0 elsewhere
  kNone,         // nothing
};
// Which part of the files a dataset has.
enum class Subset { kAll, kTraining, kValidation };

}  // namespace cohort::data
