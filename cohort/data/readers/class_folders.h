// Lists the files of folders that are classes, in Keras's order, and divides them into parts. Internal to data/.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/data/readers/folder_labels.h"

namespace cohort::data {

// The options that images and texts share, and what tells them apart.
struct ClassFolders {
  const char* component;  // of errors: "data/images"
  const char* files;      // what is read, for errors: "JPEG or PNG file"
  // Says whether a file belongs to the dataset. It is given the path, and the name in lower case.
  std::function<bool(const std::string& path, const std::string& name)> is_wanted;
  LabelMode label_mode = LabelMode::kInt;
  std::vector<std::string> class_names;  // empty: all folders, sorted
  bool shuffle = true;
  std::optional<int64_t> seed;
  double validation_split = 0;
  Subset subset = Subset::kAll;
};

struct ClassFiles {
  std::vector<std::string> class_names;
  std::vector<std::string> paths;
  std::vector<int32_t> labels;
};

// Returns the files of the subset. They are in Keras's order: class by class, in a class by folder, and in a folder by
// name. With `shuffle` and a seed, all files are shuffled, as Keras does with a seed below 2^32, before they are
// divided. Throws InvalidArgumentError for options that do not fit each other, NotFoundError if there is no folder or
// no file, and what ThrowErrno gives for a folder that cannot be listed.
ClassFiles ListClassFiles(const std::string& directory, const ClassFolders& options);

// Returns a dataset of paths, string [], and labels, int32 [], which `shuffle` puts into another order in each epoch.
Dataset PathsAndLabels(const ClassFiles& files, const ClassFolders& options);

// Returns the label in the form of `mode`, or nothing.
std::vector<Output> LabelIn(LabelMode mode, Output label, int classes);

}  // namespace cohort::data
