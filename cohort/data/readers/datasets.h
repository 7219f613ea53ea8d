// Image data sets with ten classes: Fashion-MNIST and MNIST from their files, and generated images of the same shapes
// for users who do not have the files.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// Images and labels for training and for testing. Copies share the tensors' bytes.
struct COHORT_EXPORT ImageDataset {
  Tensor train_images;  // [n, 28, 28], uint8; 0 is the background
  Tensor train_labels;  // [n], uint8, from 0 to 9
  Tensor test_images;   // [m, 28, 28], uint8
  Tensor test_labels;   // [m], uint8
  bool generated = false;

  // An element has two components: an image and its label.
  Dataset Train() const { return Dataset::FromTensorSlices({train_images, train_labels}); }
  Dataset Test() const { return Dataset::FromTensorSlices({test_images, test_labels}); }
};

// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each with
// or without ".gz", from `dir`. If both forms of a file are there, reads the one with ".gz". If a file is missing,
// throws NotFoundError that names it. Throws InvalidArgumentError if images are not 28 x 28, if a label is above 9, or
// if there are not as many labels as images. Throws also what ReadIdxImages and ReadIdxLabels throw.
COHORT_EXPORT ImageDataset LoadFashionMnist(const std::string& dir);

// Returns generated images. Each class has two patterns of smooth blobs. An image is one of the two patterns of its
// class, shifted, with a brightness of its own, and noisy. A softmax classifier gets about nine of ten right, and a
// network with hidden layers gets more. The images are equal for equal seeds on every machine, and image i does not
// depend on the counts.
COHORT_EXPORT ImageDataset GeneratedImages(uint64_t seed, int64_t train_n, int64_t test_n);

}  // namespace cohort::data

namespace cohort::datasets {

// Returns the images of the data set's four files in `dir`, read and checked as LoadFashionMnist does. If `dir` is "",
// reads the folder fashion-mnist of the folder that the environment variable COHORT_DATA_DIR names. If that variable is
// not set either, returns 60000 + 10000 GeneratedImages of seed 1, and logs a warning that names a source of the files.
// Throws the errors of LoadFashionMnist, such as NotFoundError for a folder or a file that is not there.
COHORT_EXPORT data::ImageDataset FashionMnist(const std::string& dir = "");
// Does the same for MNIST, the handwritten digits. Its files have the same names, and its folder in COHORT_DATA_DIR is
// mnist.
COHORT_EXPORT data::ImageDataset Mnist(const std::string& dir = "");

}  // namespace cohort::datasets
