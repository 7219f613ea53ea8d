#include "cohort/data/readers/image_folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <numeric>
#include <random>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/image.h"
#include "cohort/ops/image_files.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/math.h"
#include "cohort/ops/slice.h"

namespace cohort::data {
namespace {

namespace fs = std::filesystem;

struct Files {
  std::vector<std::string> paths;
  std::vector<int32_t> labels;
};

void Check(const ImageFolderOptions& options) {
  const auto check = [](bool good, const auto&... what) {
    if (!good) throw InvalidArgumentError(StrCat("[data/images] expected ", what...));
  };
  check(options.channels == 1 || options.channels == 3 || options.channels == 4, "1, 3 or 4 channels; got ",
        options.channels);
  check(options.batch_size >= 0, "a batch_size of at least 0; got ", options.batch_size);
  check(options.image_height > 0 && options.image_width > 0, "an image size of at least 1 x 1; got ",
        options.image_height, " x ", options.image_width);
  check(options.validation_split >= 0 && options.validation_split < 1,
        "a validation_split of at least 0 and less than 1; got ", options.validation_split);
  check((options.subset == Subset::kAll) == (options.validation_split == 0),
        "validation_split and subset together; got a validation_split of ", options.validation_split,
        options.subset == Subset::kAll ? " for all files" : " for a subset");
  check(options.subset == Subset::kAll || !options.shuffle || options.seed.has_value(),
        "a seed, so that no file is in both subsets; or shuffle = false");
  check(options.num_parallel_calls >= 1, "at least 1 parallel call; got ", options.num_parallel_calls);
}

std::string LowerCaseEnd(const fs::path& path) {
  std::string end = path.extension().string();
  std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return std::tolower(c); });
  return end;
}

// Adds the images below `folder`, sorted by path.
void AddFiles(const fs::path& folder, int32_t label, Files* files) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string end = LowerCaseEnd(entry.path());
    if (end == ".gif" || end == ".bmp") {
      throw InvalidArgumentError(StrCat("[data/images] expected JPEG and PNG files; got ", entry.path().string()));
    }
    if (end == ".jpg" || end == ".jpeg" || end == ".png") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  files->labels.resize(files->labels.size() + paths.size(), label);
  files->paths.insert(files->paths.end(), paths.begin(), paths.end());
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

Files ListFiles(const std::string& directory, const std::vector<std::string>& class_names) {
  Files files;
  if (class_names.empty()) AddFiles(directory, 0, &files);
  for (size_t i = 0; i < class_names.size(); ++i) {
    const fs::path folder = fs::path(directory) / class_names[i];
    if (!fs::is_directory(folder)) {
      throw NotFoundError(
          StrCat("[data/images] there is no folder ", folder.string(), " for the class \"", class_names[i], "\""));
    }
    AddFiles(folder, static_cast<int32_t>(i), &files);
  }
  return files;
}

// Returns the files in another order, which depends on the seed alone.
Files Shuffled(const Files& files, int64_t seed) {
  std::vector<size_t> order(files.paths.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  for (size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random() % left]);
  Files shuffled;
  for (const size_t i : order) {
    shuffled.paths.push_back(files.paths[i]);
    shuffled.labels.push_back(files.labels[i]);
  }
  return shuffled;
}

// As in Keras, the last files are for validation.
Files PartOf(Files files, const ImageFolderOptions& options) {
  if (options.subset == Subset::kAll) return files;
  if (options.shuffle) files = Shuffled(files, *options.seed);
  const size_t size = files.paths.size();
  const auto last =
      static_cast<std::ptrdiff_t>(size - static_cast<size_t>(static_cast<double>(size) * options.validation_split));
  const bool training = options.subset == Subset::kTraining;
  const auto cut = [&](auto* list) {
    list->erase(training ? list->begin() + last : list->begin(), training ? list->end() : list->begin() + last);
  };
  cut(&files.paths);
  cut(&files.labels);
  return files;
}

// Cuts the same part off both sides, so that the rest has the proportions of `options`, and at least one pixel.
Output CropToProportions(Output image, const ImageFolderOptions& options) {
  const std::vector<Output> sizes = ops::Unpack(ops::ShapeOf(image, DType::kInt64), 3, 0);
  const auto part = [](const Output& whole, const Output& other, int64_t size, int64_t size_of_other) {
    return ops::Maximum(1, ops::Minimum(whole, ops::FloorDiv(other * size, size_of_other)));
  };
  const Output rows = part(sizes[0], sizes[1], options.image_height, options.image_width);
  const Output columns = part(sizes[1], sizes[0], options.image_width, options.image_height);
  const Output zero = ops::Const(image.graph(), int64_t{0});
  const Output begin = ops::Pack({ops::FloorDiv(sizes[0] - rows, 2), ops::FloorDiv(sizes[1] - columns, 2), zero});
  return ops::Slice(image, begin, ops::Pack({rows, columns, sizes[2]}));
}

// Returns the image of the file as float32 [rows, columns, channels] of the size that `options` tells.
Output ReadImage(Output path, const ImageFolderOptions& options) {
  Output image = ops::DecodeImage(ops::ReadFile(path), options.channels);
  if (options.crop_to_aspect_ratio) image = CropToProportions(image, options);
  const Output batch = ops::ExpandDims(image, 0);  // the resizing ops take batches
  const ops::IntList size = {options.image_height, options.image_width};
  const Output resized =
      options.interpolation == Interpolation::kBilinear
          ? ops::ResizeBilinear(batch, size, {.half_pixel_centers = true})
          : ops::Cast(ops::ResizeNearestNeighbor(batch, size, {.half_pixel_centers = true}), DType::kFloat32);
  return ops::Reshape(resized, {options.image_height, options.image_width, options.channels});
}

// Returns the label in the form of `mode`, or nothing.
std::vector<Output> LabelIn(LabelMode mode, Output label, int classes) {
  switch (mode) {
    case LabelMode::kInt: return {label};
    case LabelMode::kBinary: return {ops::Reshape(ops::Cast(label, DType::kFloat32), {1})};
    case LabelMode::kCategorical: return {ops::OneHot(label, classes)};
    case LabelMode::kNone: break;
  }
  return {};
}

}  // namespace

ImageFolder ImageDatasetFromDirectory(const std::string& directory, const ImageFolderOptions& options) try {
  Check(options);
  if (!fs::is_directory(directory)) throw NotFoundError(StrCat("[data/images] there is no folder ", directory));
  std::vector<std::string> class_names = options.class_names;
  if (class_names.empty() && options.label_mode != LabelMode::kNone) class_names = FoldersIn(directory);
  if (class_names.empty() && options.label_mode != LabelMode::kNone) {
    throw NotFoundError(StrCat("[data/images] expected a folder for each class in ", directory,
                               "; got none (LabelMode::kNone reads images without classes)"));
  }
  if (options.label_mode == LabelMode::kBinary && class_names.size() != 2) {
    throw InvalidArgumentError(StrCat("[data/images] expected two classes in ", directory,
                                      " for the label mode kBinary; got ", class_names.size()));
  }
  Files files = PartOf(ListFiles(directory, class_names), options);
  if (files.paths.empty()) {
    throw NotFoundError(StrCat("[data/images] found no JPEG or PNG file ",
                               options.subset == Subset::kAll ? "" : "for this subset ",
                               class_names.empty() ? "in " : "in the folders of classes in ", directory));
  }
  Dataset dataset = Dataset::FromTensorSlices({Tensor::Vector(files.paths), Tensor::Vector(files.labels)});
  if (options.shuffle) dataset = dataset.Shuffle(static_cast<int64_t>(files.paths.size()), options.seed);
  dataset = dataset.Map(
      [&](Graph&, const std::vector<Output>& element) {
        std::vector<Output> results = LabelIn(options.label_mode, element[1], static_cast<int>(class_names.size()));
        results.insert(results.begin(), ReadImage(element[0], options));
        return results;
      },
      {.num_parallel_calls = options.num_parallel_calls});
  if (options.batch_size > 0) dataset = dataset.Batch(options.batch_size);
  return {dataset, std::move(class_names), std::move(files.paths), std::move(files.labels)};
} catch (const fs::filesystem_error& error) {
  ThrowErrno(error.code().value(), StrCat("[data/images] cannot list ", error.path1().string()));
}

}  // namespace cohort::data
