// Image data sets of ten classes: Fashion-MNIST from its files, and generated images of the same shapes for users
// without the files.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

struct COHORT_EXPORT ImageDataset {
  Tensor train_images;  // [n, 28, 28] u8, 0 is the background
  Tensor train_labels;  // [n] u8, 0 to 9
  Tensor test_images;   // [m, 28, 28] u8
  Tensor test_labels;   // [m] u8
  bool generated = false;

  // (image, label) a component each.
  Dataset Train() const { return Dataset::FromTensorSlices({train_images, train_labels}); }
  Dataset Test() const { return Dataset::FromTensorSlices({test_images, test_labels}); }
};

// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte,
// each with or without .gz, from `dir`. Throws NotFoundError that names the missing file, what ReadIdx
// throws, and InvalidArgumentError for images that are not 28 x 28, labels above 9, or another count of
// labels than of images.
COHORT_EXPORT ImageDataset LoadFashionMnist(const std::string& dir);

// Images of smooth blobs, two kinds a class, shifted, scaled and under noise: a softmax classifier gets about
// nine of ten right, a network more. Equal for equal seeds on every machine; image i does not depend on the
// counts.
COHORT_EXPORT ImageDataset GeneratedImages(uint64_t seed, int64_t train_n, int64_t test_n);

}  // namespace cohort::data

namespace cohort::datasets {

// Returns the images of the data set's four files in `dir`, as LoadFashionMnist reads and checks them. If `dir` is "",
// the files are those in the folder fashion-mnist of the folder that the environment variable COHORT_DATA_DIR names.
// Only if neither is given, it returns 60000 and 10000 GeneratedImages of seed 1, and logs a warning that says so and
// where the files can be had. Throws NotFoundError for a folder or a file that is not there.
COHORT_EXPORT data::ImageDataset FashionMnist(const std::string& dir = "");
// The same for the handwritten digits, whose files have the same names; in the folder mnist of COHORT_DATA_DIR.
COHORT_EXPORT data::ImageDataset Mnist(const std::string& dir = "");

}  // namespace cohort::datasets
