// TextDatasetFromDirectory: a dataset of text files whose folders are their classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/data/readers/folder_labels.h"

namespace cohort::data {

// The names and defaults are those of Keras's text_dataset_from_directory, if no comment says something else.
struct COHORT_EXPORT TextFolderOptions {
  LabelMode label_mode = LabelMode::kInt;
  std::vector<std::string> class_names;  // the folders, in the order of their numbers; empty: all folders, sorted
  int64_t batch_size = 32;               // 0: single texts instead of batches (Keras's None)
  std::optional<int64_t> max_length;     // the most bytes of a text; the others are cut off
  bool shuffle = true;                   // each epoch has another order
  std::optional<int64_t> seed;           // of the order and of the division; without it, it is drawn
  double validation_split = 0;           // the part of the files that is for validation, at least 0 and less than 1
  Subset subset = Subset::kAll;          // kTraining and kValidation need a validation_split, and with shuffle a seed
  int num_parallel_calls = 4;            // how many texts may be read at once; Keras chooses by itself
};

struct COHORT_EXPORT TextFolder {
  Dataset dataset;                       // texts: string [batch]; then labels
  std::vector<std::string> class_names;  // class_names[i] is the folder of the label i
  std::vector<std::string> file_paths;   // the files of the dataset
  std::vector<int32_t> labels;           // the class of each file
};

// Lists the files in the folders of `directory`, which are its classes, and in the folders inside of these. With
// LabelMode::kNone and no class_names the files may be anywhere below `directory`. Files whose names end with .txt
// count (in any case), and others do not. Folders of classes whose names begin with a dot are left out. The dataset
// reads a file when it makes its element: an error then names the file. It can be serialized, so that each worker of a
// cluster reads its files itself. Order and division of the files are Keras's, with a seed in [0, 2^32). But the order
// of an epoch is not: the whole list is shuffled in each epoch, and Keras shuffles a window of it. Throws what
// ThrowErrno (core/file.h) gives for a folder that cannot be listed; NotFoundError if there is no such folder, no
// folder of a class in it, or no file for this subset; InvalidArgumentError for options out of range.
COHORT_EXPORT TextFolder TextDatasetFromDirectory(const std::string& directory, const TextFolderOptions& options = {});

}  // namespace cohort::data
