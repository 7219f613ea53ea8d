#include "cohort/data/readers/datasets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/data/readers/idx.h"

namespace cohort::data {
namespace {

using ::testing::HasSubstr;

constexpr int kPixels = 28 * 28;
constexpr int kClasses = 10;

// Softmax regression by stochastic gradient descent; the share of the test images that it gets right.
class SoftmaxClassifier {
 public:
  void Train(const Tensor& images, const Tensor& labels, int epochs, float rate) {
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (int64_t i = 0; i < images.shape().dim(0); ++i) Step(images, labels.data<uint8_t>()[i], i, rate);
    }
  }
  double Accuracy(const Tensor& images, const Tensor& labels) {
    int64_t right = 0;
    for (int64_t i = 0; i < images.shape().dim(0); ++i) {
      Forward(images, i);
      right += std::max_element(scores_, scores_ + kClasses) - scores_ == labels.data<uint8_t>()[i];
    }
    return static_cast<double>(right) / static_cast<double>(images.shape().dim(0));
  }

 private:
  void Forward(const Tensor& images, int64_t i) {
    const uint8_t* pixels = images.data<uint8_t>() + i * kPixels;
    for (int p = 0; p < kPixels; ++p) input_[p] = static_cast<float>(pixels[p]) / 255;
    for (int c = 0; c < kClasses; ++c) {
      scores_[c] = bias_[c];
      for (int p = 0; p < kPixels; ++p) scores_[c] += weights_[c][p] * input_[p];
    }
  }
  void Step(const Tensor& images, int label, int64_t i, float rate) {
    Forward(images, i);
    const float largest = *std::max_element(scores_, scores_ + kClasses);
    float sum = 0;
    for (float& score : scores_) sum += score = std::exp(score - largest);
    for (int c = 0; c < kClasses; ++c) {
      const float step = rate * (scores_[c] / sum - static_cast<float>(c == label));
      bias_[c] -= step;
      for (int p = 0; p < kPixels; ++p) weights_[c][p] -= step * input_[p];
    }
  }

  float input_[kPixels];
  float scores_[kClasses];
  float weights_[kClasses][kPixels] = {};
  float bias_[kClasses] = {};
};

double SoftmaxAccuracy(const ImageDataset& data) {
  SoftmaxClassifier classifier;
  classifier.Train(data.train_images, data.train_labels, 6, 0.01f);
  return classifier.Accuracy(data.test_images, data.test_labels);
}

TEST(GeneratedImagesTest, CanBeLearntButNotTrivially) {
  for (const uint64_t seed : {1, 2, 3}) {
    const double accuracy = SoftmaxAccuracy(GeneratedImages(seed, 6000, 1000));
    EXPECT_GT(accuracy, 0.83) << seed;
    EXPECT_LT(accuracy, 0.97) << seed;
    std::printf("[ accuracy ] seed %d: %.3f\n", static_cast<int>(seed), accuracy);
  }
}

TEST(GeneratedImagesTest, DependOnSeedAndIndexOnly) {
  const ImageDataset a = GeneratedImages(7, 100, 20);
  const ImageDataset b = GeneratedImages(7, 50, 10);
  EXPECT_TRUE(a.generated);
  EXPECT_EQ(a.train_images.shape(), (Shape{100, 28, 28}));
  EXPECT_EQ(a.test_labels.shape(), (Shape{20}));
  EXPECT_EQ(a.train_images.Slice(0, 50).ToVector<uint8_t>(), b.train_images.ToVector<uint8_t>());
  EXPECT_EQ(a.test_labels.Slice(0, 10).ToVector<uint8_t>(), b.test_labels.ToVector<uint8_t>());
  EXPECT_NE(a.train_images.ToVector<uint8_t>(), GeneratedImages(8, 100, 20).train_images.ToVector<uint8_t>());
  std::vector<int> counts(kClasses);
  const ImageDataset many = GeneratedImages(7, 2000, 0);
  for (const uint8_t label : many.train_labels.values<uint8_t>()) ++counts.at(label);
  for (const int count : counts) EXPECT_GT(count, 140);
}

// Writes four files of ten images each into `dir`, with the names that Fashion-MNIST gives them.
void WriteSmall(const std::string& dir) {
  CreateDirectories(dir);
  const ImageDataset data = GeneratedImages(1, 10, 5);
  WriteIdx(dir + "/train-images-idx3-ubyte", data.train_images);
  WriteIdx(dir + "/train-labels-idx1-ubyte", data.train_labels);
  WriteIdx(dir + "/t10k-images-idx3-ubyte", data.test_images);
  WriteIdx(dir + "/t10k-labels-idx1-ubyte", data.test_labels);
}

// Puts NAME.gz in the place of NAME, without the second half of its bytes where `cut`.
void Pack(const std::string& path, bool cut = false) {
  const std::string bytes = ReadFile(path);
  const std::string packed = path + ".gz";
  const gzFile file = gzopen(packed.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  RemoveFile(path);
  if (!cut) return;
  const std::string whole = ReadFile(packed);
  WriteFileAtomically(packed, whole.substr(0, whole.size() / 2));
}

using Load = ImageDataset(const std::string&);

template <typename ErrorType>
std::string LoadError(const std::string& dir, Load* load = LoadFashionMnist) {
  try {
    load(dir);
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "";
}

TEST(FashionMnistTest, LoadsItsFiles) {
  const testing::TempFolder folder;
  WriteSmall(folder.path());
  const ImageDataset data = LoadFashionMnist(folder.path());
  EXPECT_FALSE(data.generated);
  EXPECT_EQ(data.train_images.shape(), (Shape{10, 28, 28}));
  EXPECT_EQ(data.test_labels.ToVector<uint8_t>(), GeneratedImages(1, 0, 5).test_labels.ToVector<uint8_t>());
}

TEST(ImageDatasetsTest, FilesThatAreThereAreTakenPackedOrNot) {
  const testing::TempFolder folder;
  const std::string& dir = folder.path();
  WriteSmall(dir);
  Pack(dir + "/train-images-idx3-ubyte");
  Pack(dir + "/t10k-labels-idx1-ubyte");
  const ImageDataset written = GeneratedImages(1, 10, 5);
  for (Load* load : {datasets::Mnist, datasets::FashionMnist}) {
    ::testing::internal::CaptureStderr();
    const ImageDataset data = load(dir);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    EXPECT_FALSE(data.generated);
    EXPECT_EQ(data.train_images.ToVector<uint8_t>(), written.train_images.ToVector<uint8_t>());
    EXPECT_EQ(data.train_labels.ToVector<uint8_t>(), written.train_labels.ToVector<uint8_t>());
    EXPECT_EQ(data.test_images.ToVector<uint8_t>(), written.test_images.ToVector<uint8_t>());
    EXPECT_EQ(data.test_labels.ToVector<uint8_t>(), written.test_labels.ToVector<uint8_t>());
  }
}

TEST(ImageDatasetsTest, ACutFileIsAnErrorThatNamesIt) {
  for (const char* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    const testing::TempFolder folder;
    const std::string& dir = folder.path();
    WriteSmall(dir);
    Pack(dir + "/" + name, /*cut=*/true);
    for (Load* load : {datasets::Mnist, datasets::FashionMnist}) {
      EXPECT_THAT(LoadError<DataLossError>(dir, load),
                  ::testing::AllOf(HasSubstr("the gzip file " + dir + "/" + name + ".gz is cut off"),
                                   HasSubstr("in the middle of its data")));
    }
  }
}

// Some files and not all: no images are generated in the place of the rest.
TEST(ImageDatasetsTest, AMissingFileIsAnErrorThatNamesTheDataSet) {
  const testing::TempFolder folder;
  const std::string& dir = folder.path();
  WriteSmall(dir);
  RemoveFile(dir + "/t10k-labels-idx1-ubyte");
  EXPECT_THAT(LoadError<NotFoundError>(dir, datasets::Mnist),
              HasSubstr("expected MNIST's t10k-labels-idx1-ubyte.gz (or unpacked) in " + dir));
  EXPECT_THAT(LoadError<NotFoundError>(dir, datasets::FashionMnist),
              HasSubstr("expected Fashion-MNIST's t10k-labels-idx1-ubyte.gz (or unpacked) in " + dir));
}

TEST(FashionMnistTest, WrongFilesAreNamed) {
  const testing::TempFolder folder;
  const std::string& dir = folder.path();
  WriteSmall(dir);
  WriteIdx(dir + "/train-labels-idx1-ubyte", Tensor::Zeros(DType::kUint8, Shape{9}));
  EXPECT_THAT(LoadError<InvalidArgumentError>(dir), HasSubstr("10 images"));
  EXPECT_THAT(LoadError<InvalidArgumentError>(dir), HasSubstr("9 labels in " + dir + "/train-labels-idx1-ubyte"));
  Tensor labels = Tensor::Zeros(DType::kUint8, Shape{10});
  labels.data<uint8_t>()[3] = 10;
  WriteIdx(dir + "/train-labels-idx1-ubyte", labels);
  EXPECT_THAT(LoadError<InvalidArgumentError>(dir), HasSubstr("got 10 at position 3"));
  WriteIdx(dir + "/train-images-idx3-ubyte", Tensor::Zeros(DType::kUint8, Shape{10, 27, 28}));
  EXPECT_THAT(LoadError<InvalidArgumentError>(dir), HasSubstr("got [10,27,28]"));
  RemoveFile(dir + "/train-images-idx3-ubyte");
  EXPECT_THAT(LoadError<NotFoundError>(dir), HasSubstr("train-images-idx3-ubyte.gz (or unpacked) in " + dir));
}

// Sets COHORT_DATA_DIR, or unsets it if `value` is null, until it is destroyed.
class DataDir {
 public:
  explicit DataDir(const char* value) {
    const char* before = std::getenv("COHORT_DATA_DIR");
    if (before != nullptr) before_ = before;
    Set(value);
  }
  ~DataDir() { Set(before_ ? before_->c_str() : nullptr); }

 private:
  static void Set(const char* value) {
    if (value == nullptr) {
      unsetenv("COHORT_DATA_DIR");
    } else {
      setenv("COHORT_DATA_DIR", value, 1);
    }
  }
  std::optional<std::string> before_;
};

TEST(FashionMnistTest, WithoutAFolderImagesAreGeneratedAndItIsSaid) {
  const DataDir unset(nullptr);
  ::testing::internal::CaptureStderr();
  const ImageDataset generated = datasets::FashionMnist();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::AllOf(HasSubstr("GENERATED"), HasSubstr("COHORT_DATA_DIR"), HasSubstr("fashion-mnist")));
  EXPECT_TRUE(generated.generated);
  EXPECT_EQ(generated.train_images.shape(), (Shape{60000, 28, 28}));
  EXPECT_EQ(generated.Test().Cardinality(), 10000);
  EXPECT_EQ(ToString(generated.Train().element_spec()), "(uint8[28,28], uint8[])");
}

// Nobody who has said where the images are trains on others.
TEST(FashionMnistTest, AFolderThatIsNotThereIsAnError) {
  const testing::TempFolder folder;
  const std::string missing = folder / "missing";
  for (Load* load : {datasets::Mnist, datasets::FashionMnist}) {
    EXPECT_THAT(LoadError<NotFoundError>(missing, load), HasSubstr("in " + missing + ";"));
  }
  const DataDir set(missing.c_str());
  EXPECT_THAT(LoadError<NotFoundError>("", datasets::FashionMnist), HasSubstr("in " + missing + "/fashion-mnist;"));
  EXPECT_THAT(LoadError<NotFoundError>("", datasets::Mnist), HasSubstr("in " + missing + "/mnist;"));
}

TEST(FashionMnistTest, TheFolderOfTheEnvironmentIsTaken) {
  const testing::TempFolder root;
  WriteSmall(root / "fashion-mnist");
  const DataDir set(root.path().c_str());
  const ImageDataset data = datasets::FashionMnist();
  EXPECT_FALSE(data.generated);
  EXPECT_EQ(data.train_images.shape(), (Shape{10, 28, 28}));
}

TEST(FashionMnistTest, TheRealFiles) {
  const char* root = std::getenv("COHORT_DATA_DIR");
  if (root == nullptr) GTEST_SKIP() << "COHORT_DATA_DIR is not set";
  const ImageDataset data = LoadFashionMnist(std::string(root) + "/fashion-mnist");
  EXPECT_EQ(data.train_images.shape(), (Shape{60000, 28, 28}));
  EXPECT_EQ(data.test_images.shape(), (Shape{10000, 28, 28}));
  std::vector<int> counts(kClasses);
  for (const uint8_t label : data.train_labels.values<uint8_t>()) ++counts.at(label);
  for (const int count : counts) EXPECT_EQ(count, 6000);
}

}  // namespace
}  // namespace cohort::data
