#include "cohort/data/readers/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/images/jpeg.h"
#include "cohort/core/images/png.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/serialize.h"

namespace cohort::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Folders "cat" and "dog" with two images each, of one colour, and a file that is no image.
class ImageFolderTest : public ::testing::Test {
 protected:
  ImageFolderTest() {
    Add("dog/b.png", 200, 4, 8);
    Add("dog/inside/a.JPEG", 100, 8, 8);
    Add("cat/2.png", 20, 6, 3);
    Add("cat/1.jpg", 10, 5, 5);
    WriteFileAtomically(folder_ / "cat/notes.txt", "no image");
    Add(".cache/old.png", 1, 2, 2);
  }

  // Writes an image whose pixels are all `grey`.
  void Add(const std::string& name, uint8_t grey, int64_t rows, int64_t columns) {
    Tensor image(DType::kUint8, Shape{rows, columns, 3});
    std::fill_n(image.data<uint8_t>(), image.num_elements(), grey);
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    WriteFileAtomically(folder_ / name, name.ends_with("png") ? images::EncodePng(image) : images::EncodeJpeg(image));
  }

  // The first numbers of the images of all batches.
  static std::vector<int> Greys(const Dataset& dataset) {
    std::vector<int> greys;
    Element element;
    const auto iterator = dataset.MakeIterator();
    while (iterator->Next(&element)) {
      const int64_t of_one = element[0].num_elements() / element[0].shape().dim(0);
      for (int64_t i = 0; i < element[0].num_elements(); i += of_one) {
        greys.push_back(static_cast<int>(element[0].data<float>()[i] + 0.5f));
      }
    }
    return greys;
  }

  const testing::TempFolder folder_;
};

TEST_F(ImageFolderTest, FoldersAreClasses) {
  const ImageFolder images = ImageDatasetFromDirectory(
      folder_.path(), {.batch_size = 3, .image_height = 7, .image_width = 5, .shuffle = false});
  EXPECT_THAT(images.class_names, ElementsAre("cat", "dog"));
  EXPECT_THAT(images.file_paths, ElementsAre(folder_ / "cat/1.jpg", folder_ / "cat/2.png", folder_ / "dog/b.png",
                                             folder_ / "dog/inside/a.JPEG"));
  EXPECT_THAT(images.labels, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(Greys(images.dataset), ElementsAre(10, 20, 200, 100));
  Element element;
  const auto iterator = images.dataset.MakeIterator();
  ASSERT_TRUE(iterator->Next(&element));
  EXPECT_EQ(element[0].shape(), (Shape{3, 7, 5, 3}));
  EXPECT_EQ(element[0].dtype(), DType::kFloat32);
  EXPECT_THAT(element[1].ToVector<int32_t>(), ElementsAre(0, 0, 1));
  EXPECT_EQ(images.dataset.element_spec()[0].shape, (Shape{-1, 7, 5, 3}));
}

TEST_F(ImageFolderTest, LabelsHaveTheFormThatIsAsked) {
  const auto first = [&](const ImageFolderOptions& options) {
    Element element;
    ImageDatasetFromDirectory(folder_.path(), options).dataset.MakeIterator()->Next(&element);
    return element;
  };
  const Element binary = first({.label_mode = LabelMode::kBinary, .channels = 1, .shuffle = false});
  EXPECT_EQ(binary[0].shape(), (Shape{4, 256, 256, 1}));
  EXPECT_EQ(binary[1].shape(), (Shape{4, 1}));
  EXPECT_THAT(binary[1].ToVector<float>(), ElementsAre(0, 0, 1, 1));
  const Element categorical = first({.label_mode = LabelMode::kCategorical,
                                     .class_names = {"dog", "cat"},
                                     .batch_size = 0,
                                     .shuffle = false,
                                     .interpolation = Interpolation::kNearest});
  EXPECT_EQ(categorical[0].shape(), (Shape{256, 256, 3}));
  EXPECT_THAT(categorical[1].ToVector<float>(), ElementsAre(1, 0));
  EXPECT_EQ(first({.label_mode = LabelMode::kNone}).size(), 1u);
}

TEST_F(ImageFolderTest, SubsetsDivideTheFiles) {
  std::set<std::string> paths;
  for (const Subset subset : {Subset::kTraining, Subset::kValidation}) {
    const ImageFolder part =
        ImageDatasetFromDirectory(folder_.path(), {.seed = 3, .validation_split = 0.25, .subset = subset});
    EXPECT_EQ(part.file_paths.size(), subset == Subset::kTraining ? 3u : 1u);
    EXPECT_EQ(part.labels.size(), part.file_paths.size());
    EXPECT_EQ(Greys(part.dataset).size(), part.file_paths.size());
    paths.insert(part.file_paths.begin(), part.file_paths.end());
  }
  EXPECT_EQ(paths.size(), 4u);
}

TEST_F(ImageFolderTest, CutsOffEdges) {
  Tensor image(DType::kUint8, Shape{4, 10, 1});
  for (int i = 0; i < 40; ++i) image.data<uint8_t>()[i] = static_cast<uint8_t>(20 * (i % 10));
  std::filesystem::create_directories(folder_ / "wide");
  WriteFileAtomically(folder_ / "wide/w.png", images::EncodePng(image));
  const ImageFolder wide = ImageDatasetFromDirectory(
      folder_.path(),
      {.class_names = {"wide"}, .channels = 1, .image_height = 4, .image_width = 4, .crop_to_aspect_ratio = true});
  Element element;
  ASSERT_TRUE(wide.dataset.MakeIterator()->Next(&element));
  EXPECT_THAT(element[0].Slice(0, 1).Reshaped(Shape{16}).Slice(0, 4).ToVector<float>(), ElementsAre(60, 80, 100, 120));
}

TEST_F(ImageFolderTest, AtLeastOnePixelIsLeft) {
  Add("narrow/n.png", 70, 100, 1);
  const ImageFolder narrow = ImageDatasetFromDirectory(
      folder_.path(), {.class_names = {"narrow"}, .image_height = 18, .image_width = 26, .crop_to_aspect_ratio = true});
  EXPECT_THAT(Greys(narrow.dataset), ElementsAre(70));
}

TEST_F(ImageFolderTest, ABadFileIsNamedAndTheOthersAreRead) {
  WriteFileAtomically(folder_ / "cat/1.jpg", "no image");
  const Dataset dataset = ImageDatasetFromDirectory(folder_.path(), {.batch_size = 0, .shuffle = false}).dataset;
  const auto iterator = dataset.MakeIterator();
  Element element;
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { iterator->Next(&element); }),
              AllOf(HasSubstr("expected a JPEG or PNG file"), HasSubstr(folder_ / "cat/1.jpg")));
  int more = 0;
  while (iterator->Next(&element)) ++more;
  EXPECT_EQ(more, 3);
}

TEST_F(ImageFolderTest, TravelsToOtherProcesses) {
  const Dataset dataset = ImageDatasetFromDirectory(folder_.path(), {.shuffle = false}).dataset;
  EXPECT_THAT(Greys(Deserialize(Serialize(dataset))), ElementsAre(10, 20, 200, 100));
}

TEST_F(ImageFolderTest, WrongArgumentsAreNamed) {
  const auto message = [&](const ImageFolderOptions& options) {
    return MessageOf<InvalidArgumentError>([&] { ImageDatasetFromDirectory(folder_.path(), options); });
  };
  EXPECT_THAT(message({.channels = 2}), HasSubstr("got 2"));
  EXPECT_THAT(message({.batch_size = -1}), HasSubstr("got -1"));
  EXPECT_THAT(message({.image_width = 0}), HasSubstr("256 x 0"));
  EXPECT_THAT(message({.validation_split = 1}), HasSubstr("got 1"));
  EXPECT_THAT(message({.validation_split = 0.5}), HasSubstr("for all files"));
  EXPECT_THAT(message({.subset = Subset::kTraining}), HasSubstr("for a subset"));
  EXPECT_THAT(message({.validation_split = 0.5, .subset = Subset::kTraining}), HasSubstr("a seed"));
  EXPECT_THAT(message({.label_mode = LabelMode::kBinary, .class_names = {"cat"}}), HasSubstr("two classes"));
  EXPECT_THAT(message({.num_parallel_calls = 0}), HasSubstr("parallel"));
  const auto not_found = [&](const std::string& folder, const ImageFolderOptions& options) {
    return MessageOf<NotFoundError>([&] { ImageDatasetFromDirectory(folder, options); });
  };
  EXPECT_THAT(not_found("/no/folder", {}), HasSubstr("/no/folder"));
  EXPECT_THAT(not_found(folder_.path(), {.class_names = {"cow"}}), HasSubstr("\"cow\""));
  EXPECT_THAT(not_found(folder_ / "cat", {}), HasSubstr("a folder for each class"));
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_THAT(not_found(folder_.path(), {.class_names = {"empty"}}), HasSubstr("found no JPEG or PNG file"));
  WriteFileAtomically(folder_ / "cat/x.gif", "GIF89a");
  EXPECT_THAT(message({}), HasSubstr("x.gif"));
}

}  // namespace
}  // namespace cohort::data
