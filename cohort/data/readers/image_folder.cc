#include "cohort/data/readers/image_folder.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/readers/class_folders.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/image.h"
#include "cohort/ops/image_files.h"
#include "cohort/ops/join.h"
#include "cohort/ops/layout.h"
#include "cohort/ops/math.h"
#include "cohort/ops/slice.h"

namespace cohort::data {
namespace {

void Check(const ImageFolderOptions& options) {
  const auto check = [](bool good, const auto&... what) {
    if (!good) throw InvalidArgumentError(StrCat("[data/images] expected ", what...));
  };
  check(options.channels == 1 || options.channels == 3 || options.channels == 4, "1, 3 or 4 channels; got ",
        options.channels);
  check(options.batch_size >= 0, "a batch_size of at least 0; got ", options.batch_size);
  check(options.image_height > 0 && options.image_width > 0, "an image size of at least 1 x 1; got ",
        options.image_height, " x ", options.image_width);
  check(options.num_parallel_calls >= 1, "at least 1 parallel call; got ", options.num_parallel_calls);
}

ClassFolders FoldersOf(const ImageFolderOptions& options) {
  const auto is_image = [](const std::string& path, const std::string& name) {
    if (name.ends_with(".gif") || name.ends_with(".bmp")) {
      throw InvalidArgumentError(StrCat("[data/images] expected JPEG and PNG files; got ", path));
    }
    return name.ends_with(".jpg") || name.ends_with(".jpeg") || name.ends_with(".png");
  };
  return {.component = "data/images",
          .files = "JPEG or PNG file",
          .is_wanted = is_image,
          .label_mode = options.label_mode,
          .class_names = options.class_names,
          .shuffle = options.shuffle,
          .seed = options.seed,
          .validation_split = options.validation_split,
          .subset = options.subset};
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

}  // namespace

ImageFolder ImageDatasetFromDirectory(const std::string& directory, const ImageFolderOptions& options) {
  Check(options);
  const ClassFolders folders = FoldersOf(options);
  ClassFiles files = ListClassFiles(directory, folders);
  const int classes = static_cast<int>(files.class_names.size());
  Dataset dataset = PathsAndLabels(files, folders)
                        .Map(
                            [&](Graph&, const std::vector<Output>& element) {
                              std::vector<Output> results = LabelIn(options.label_mode, element[1], classes);
                              results.insert(results.begin(), ReadImage(element[0], options));
                              return results;
                            },
                            {.num_parallel_calls = options.num_parallel_calls});
  if (options.batch_size > 0) dataset = dataset.Batch(options.batch_size);
  return {dataset, std::move(files.class_names), std::move(files.paths), std::move(files.labels)};
}

}  // namespace cohort::data
