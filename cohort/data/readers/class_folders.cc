#include "cohort/data/readers/class_folders.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <random>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/gather.h"

namespace cohort::data {
namespace {

namespace fs = std::filesystem;

void Check(const ClassFolders& options) {
  const auto check = [&](bool good, const auto&... what) {
    if (!good) throw InvalidArgumentError(StrCat("[", options.component, "] expected ", what...));
  };
  check(options.validation_split >= 0 && options.validation_split < 1,
        "a validation_split of at least 0 and less than 1; got ", options.validation_split);
  check((options.subset == Subset::kAll) == (options.validation_split == 0),
        "validation_split and subset together; got a validation_split of ", options.validation_split,
        options.subset == Subset::kAll ? " for all files" : " for a subset");
  check(options.subset == Subset::kAll || !options.shuffle || options.seed.has_value(),
        "a seed, so that no file is in both subsets; or shuffle = false");
}

// Adds the files below `folder`: those of one folder after the other, by their paths, and each folder's by their names.
void AddFiles(const fs::path& folder, int32_t label, const ClassFolders& options, ClassFiles* files) {
  std::vector<std::pair<std::string, std::string>> found;  // folder and name
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::string name = entry.path().filename().string(), lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (!options.is_wanted(entry.path().string(), lower)) continue;
    found.emplace_back(entry.path().parent_path().string(), std::move(name));
  }
  std::sort(found.begin(), found.end());
  for (const auto& [parent, name] : found) files->paths.push_back((fs::path(parent) / name).string());
  files->labels.resize(files->paths.size(), label);
}

std::vector<std::string> FoldersIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::string name = entry.path().filename().string();
    if (entry.is_directory() && name[0] != '.') names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> ClassesOf(const std::string& directory, const ClassFolders& options) {
  if (!options.class_names.empty() || options.label_mode == LabelMode::kNone) return options.class_names;
  std::vector<std::string> names = FoldersIn(directory);
  if (!names.empty()) return names;
  throw NotFoundError(StrCat("[", options.component, "] expected a folder for each class in ", directory,
                             "; got none (LabelMode::kNone reads files without classes)"));
}

// Shuffles as numpy's RandomState(seed).shuffle, with which Keras divides the files.
void Shuffle(int64_t seed, ClassFiles* files) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (size_t last = files->paths.size(); last-- > 1;) {
    if (last > std::numeric_limits<uint32_t>::max()) throw UnimplementedError("[data] more than 2^32 files");
    uint32_t mask = static_cast<uint32_t>(last);
    for (const int shift : {1, 2, 4, 8, 16}) mask |= mask >> shift;
    uint32_t place = 0;
    do {
      place = static_cast<uint32_t>(random()) & mask;
    } while (place > last);
    std::swap(files->paths[last], files->paths[place]);
    std::swap(files->labels[last], files->labels[place]);
  }
}

// As in Keras, the last files are for validation.
void KeepSubset(const ClassFolders& options, ClassFiles* files) {
  if (options.subset == Subset::kAll) return;
  const size_t size = files->paths.size();
  const auto last =
      static_cast<std::ptrdiff_t>(size - static_cast<size_t>(static_cast<double>(size) * options.validation_split));
  const bool training = options.subset == Subset::kTraining;
  const auto cut = [&](auto* list) {
    list->erase(training ? list->begin() + last : list->begin(), training ? list->end() : list->begin() + last);
  };
  cut(&files->paths);
  cut(&files->labels);
}

}  // namespace

ClassFiles ListClassFiles(const std::string& directory, const ClassFolders& options) try {
  Check(options);
  if (!fs::is_directory(directory)) {
    throw NotFoundError(StrCat("[", options.component, "] there is no folder ", directory));
  }
  ClassFiles files;
  files.class_names = ClassesOf(directory, options);
  if (options.label_mode == LabelMode::kBinary && files.class_names.size() != 2) {
    throw InvalidArgumentError(StrCat("[", options.component, "] expected two classes in ", directory,
                                      " for the label mode kBinary; got ", files.class_names.size()));
  }
  if (files.class_names.empty()) AddFiles(directory, 0, options, &files);
  for (size_t i = 0; i < files.class_names.size(); ++i) {
    const fs::path folder = fs::path(directory) / files.class_names[i];
    if (!fs::is_directory(folder)) {
      throw NotFoundError(StrCat("[", options.component, "] there is no folder ", folder.string(), " for the class \"",
                                 files.class_names[i], "\""));
    }
    AddFiles(folder, static_cast<int32_t>(i), options, &files);
  }
  if (options.shuffle && options.seed) Shuffle(*options.seed, &files);
  KeepSubset(options, &files);
  if (!files.paths.empty()) return files;
  throw NotFoundError(StrCat("[", options.component, "] found no ", options.files,
                             options.subset == Subset::kAll ? " " : " for this subset ",
                             files.class_names.empty() ? "in " : "in the folders of classes in ", directory));
} catch (const fs::filesystem_error& error) {
  // The error of an inner folder has no path.
  const std::string path = error.path1().empty() ? "a folder in " + directory : error.path1().string();
  ThrowErrno(error.code().value(), StrCat("[", options.component, "] cannot list ", path));
}

Dataset PathsAndLabels(const ClassFiles& files, const ClassFolders& options) {
  const Dataset dataset = Dataset::FromTensorSlices({Tensor::Vector(files.paths), Tensor::Vector(files.labels)});
  return options.shuffle ? dataset.Shuffle(static_cast<int64_t>(files.paths.size()), options.seed) : dataset;
}

std::vector<Output> LabelIn(LabelMode mode, Output label, int classes) {
  switch (mode) {
    case LabelMode::kInt: return {label};
    case LabelMode::kBinary: return {ops::Reshape(ops::Cast(label, DType::kFloat32), {1})};
    case LabelMode::kCategorical: return {ops::OneHot(label, classes)};
    case LabelMode::kNone: break;
  }
  return {};
}

}  // namespace cohort::data
