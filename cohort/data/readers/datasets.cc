// Image data sets. The first half generates images: each class has two kinds of images (MakeKinds), and an image is a
// kind that is shifted, scaled and noisy (DrawImage). The second half finds the four files of a data set, reads them
// and checks them.
#include "cohort/data/readers/datasets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/readers/idx.h"

namespace cohort::data {
namespace {

constexpr int kSide = 28;
constexpr int kClasses = 10;
constexpr int kKinds = 2;                       // different looks of one class
constexpr int kMaxShift = 2;                    // pixels, each way
constexpr int kCanvas = kSide + 2 * kMaxShift;  // a kind's image with room to shift
constexpr int kBlobs = 7;
constexpr int kSharedBlobs = 4;  // that a class has in common with its neighbour
constexpr float kNoise = 70;     // standard deviation, of 255

// SplitMix64 (Steele, Lea, Flood 2014): a counter through a mixing function.
class Random {
 public:
  Random(uint64_t seed, uint64_t stream) : state_(Mix(seed ^ Mix(stream + 1))) {}
  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15u); }
  float Uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(Next() >> 40) * (1.0f / 16777216.0f);
  }
  int Below(int n) { return static_cast<int>(Next() % static_cast<uint64_t>(n)); }
  // Close to a normal of mean 0 and variance 1: the sum of four uniform numbers.
  float Normal() {
    const uint64_t bits = Next();
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<int>((bits >> (16 * i)) & 0xffffu);
    return (static_cast<float>(sum) - 131070.0f) * (1.7320508f / 65536.0f);
  }

 private:
  static uint64_t Mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
  }
  uint64_t state_;
};

using Canvas = std::array<float, kCanvas * kCanvas>;

void AddBlob(Random* random, Canvas* canvas) {
  const float middle = kCanvas / 2.0f;
  const float x = random->Uniform(middle - 9, middle + 9);
  const float y = random->Uniform(middle - 9, middle + 9);
  const float width = random->Uniform(1.8f, 4.5f);
  const float height = random->Uniform(1.8f, 4.5f);
  const float weight = random->Uniform(70, 190);
  for (int row = 0; row < kCanvas; ++row) {
    for (int column = 0; column < kCanvas; ++column) {
      const float dy = (static_cast<float>(row) - y) / height;
      const float dx = (static_cast<float>(column) - x) / width;
      (*canvas)[static_cast<size_t>(row * kCanvas + column)] += weight * std::exp(-0.5f * (dx * dx + dy * dy));
    }
  }
}

// Kind k of class c at [c * kKinds + k].
std::vector<Canvas> MakeKinds(uint64_t seed) {
  std::vector<Canvas> kinds(kClasses * kKinds);
  for (size_t i = 0; i < kinds.size(); ++i) {
    kinds[i].fill(0);
    // Classes 2n and 2n + 1 look alike, kind by kind.
    Random shared(seed, 1000 + i / (2 * kKinds) * kKinds + i % kKinds);
    Random own(seed, 2000 + i);
    for (int blob = 0; blob < kBlobs; ++blob) AddBlob(blob < kSharedBlobs ? &shared : &own, &kinds[i]);
  }
  return kinds;
}

void DrawImage(const Canvas& kind, Random* random, uint8_t* out) {
  const int top = random->Below(2 * kMaxShift + 1);
  const int left = random->Below(2 * kMaxShift + 1);
  const float scale = random->Uniform(0.6f, 1.1f);
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const float clean = scale * kind[static_cast<size_t>((row + top) * kCanvas + column + left)];
      const float value = std::clamp(clean + kNoise * random->Normal(), 0.0f, 255.0f);
      *out++ = static_cast<uint8_t>(value);
    }
  }
}

void Generate(uint64_t seed, uint64_t first_stream, const std::vector<Canvas>& kinds, int64_t n, Tensor* images,
              Tensor* labels) {
  *images = Tensor(DType::kUint8, Shape{n, kSide, kSide});
  *labels = Tensor(DType::kUint8, Shape{n});
  for (int64_t i = 0; i < n; ++i) {
    Random random(seed, first_stream + static_cast<uint64_t>(i));
    const int label = random.Below(kClasses);
    labels->data<uint8_t>()[i] = static_cast<uint8_t>(label);
    const Canvas& kind = kinds[static_cast<size_t>(label * kKinds + random.Below(kKinds))];
    DrawImage(kind, &random, images->data<uint8_t>() + i * kSide * kSide);
  }
}

struct Source {
  const char* name;
  const char* folder;  // in the folder that COHORT_DATA_DIR names
  const char* where;
};
constexpr Source kFashionMnist{"Fashion-MNIST", "fashion-mnist", "https://github.com/zalandoresearch/fashion-mnist"};
constexpr Source kMnist{"MNIST", "mnist", "http://yann.lecun.com/exdb/mnist"};
constexpr const char* kFileNames[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                      "t10k-labels-idx1-ubyte"};

// Returns "" if there is no such file, packed or unpacked.
std::string FindFile(const std::string& dir, const std::string& name) {
  for (const char* suffix : {".gz", ""}) {
    const std::string path = dir + "/" + name + suffix;
    if (FileExists(path)) return path;
  }
  return "";
}

std::string NeedFile(const Source& source, const std::string& dir, const std::string& name) {
  const std::string path = FindFile(dir, name);
  if (!path.empty()) return path;
  throw NotFoundError(StrCat("[data] expected ", source.name, "'s ", name, ".gz (or unpacked) in ", dir,
                             "; it is not there; put the four files there (", source.where,
                             " has them), or give neither a folder nor COHORT_DATA_DIR and take generated images"));
}

void LoadPart(const Source& source, const std::string& dir, const std::string& part, Tensor* images, Tensor* labels) {
  const std::string images_path = NeedFile(source, dir, part + "-images-idx3-ubyte");
  const std::string labels_path = NeedFile(source, dir, part + "-labels-idx1-ubyte");
  *images = ReadIdxImages(images_path);
  *labels = ReadIdxLabels(labels_path);
  if (images->shape().dim(1) != kSide || images->shape().dim(2) != kSide) {
    throw InvalidArgumentError(StrCat("[data] expected images of 28 x 28 in ", images_path, "; got ", images->shape()));
  }
  if (images->shape().dim(0) != labels->shape().dim(0)) {
    throw InvalidArgumentError(StrCat("[data] expected a label for each image; got ", images->shape().dim(0),
                                      " images in ", images_path, " and ", labels->shape().dim(0), " labels in ",
                                      labels_path));
  }
  for (const uint8_t& label : labels->values<uint8_t>()) {
    if (label < kClasses) continue;
    throw InvalidArgumentError(StrCat("[data] expected labels 0 to 9 in ", labels_path, "; got ",
                                      static_cast<int>(label), " at position ", &label - labels->data<uint8_t>()));
  }
}

ImageDataset Load(const Source& source, const std::string& dir) {
  ImageDataset dataset;
  LoadPart(source, dir, "train", &dataset.train_images, &dataset.train_labels);
  LoadPart(source, dir, "t10k", &dataset.test_images, &dataset.test_labels);
  return dataset;
}

ImageDataset LoadOrGenerate(const Source& source, const std::string& dir) {
  if (!dir.empty()) return Load(source, dir);
  const char* root = std::getenv("COHORT_DATA_DIR");
  if (root != nullptr && *root != '\0') return Load(source, StrCat(root, "/", source.folder));
  LogWarning("data", "neither a folder of ", source.name,
             " nor COHORT_DATA_DIR is given: taking GENERATED images of "
             "the same shapes instead, on which accuracies mean nothing. ",
             source.where, " has the four files (", StrJoin(kFileNames, ".gz, "), ".gz)");
  return GeneratedImages(/*seed=*/1, /*train_n=*/60000, /*test_n=*/10000);
}

}  // namespace

ImageDataset LoadFashionMnist(const std::string& dir) { return Load(kFashionMnist, dir); }

ImageDataset GeneratedImages(uint64_t seed, int64_t train_n, int64_t test_n) {
  constexpr uint64_t kTrainStream = uint64_t{1} << 32;
  constexpr uint64_t kTestStream = uint64_t{2} << 32;
  const std::vector<Canvas> kinds = MakeKinds(seed);
  ImageDataset dataset;
  dataset.generated = true;
  Generate(seed, kTrainStream, kinds, train_n, &dataset.train_images, &dataset.train_labels);
  Generate(seed, kTestStream, kinds, test_n, &dataset.test_images, &dataset.test_labels);
  return dataset;
}

}  // namespace cohort::data

namespace cohort::datasets {

data::ImageDataset FashionMnist(const std::string& dir) { return data::LoadOrGenerate(data::kFashionMnist, dir); }
data::ImageDataset Mnist(const std::string& dir) { return data::LoadOrGenerate(data::kMnist, dir); }

}  // namespace cohort::datasets
