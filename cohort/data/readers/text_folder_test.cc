// Folders of text files. tests/interop/test_text.py compares order and division with Keras.
#include "cohort/data/readers/text_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/serialize.h"

namespace cohort::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Folders "bad" and "good" with texts, and files that are none.
class TextFolderTest : public ::testing::Test {
 protected:
  TextFolderTest() {
    Add("good/b.txt", "nice");
    Add("good/a/z.TXT", "fine\n");
    Add("bad/2.txt", "");
    Add("bad/1.txt", "d\xc3\xa9j\xc3\xa0 vu");
    Add("bad/1.text", "no");
    Add(".cache/old.txt", "no");
  }
  void Add(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    WriteFileAtomically(folder_ / name, text);
  }
  static std::vector<std::string> TextsOf(const Dataset& dataset) {
    std::vector<std::string> texts;
    Element element;
    for (const auto iterator = dataset.MakeIterator(); iterator->Next(&element);) {
      for (const std::string& text : element[0].values<std::string>()) texts.push_back(text);
    }
    return texts;
  }

  const testing::TempFolder folder_;
};

TEST_F(TextFolderTest, FoldersAreClasses) {
  const TextFolder texts = TextDatasetFromDirectory(folder_.path(), {.batch_size = 3, .shuffle = false});
  EXPECT_THAT(texts.class_names, ElementsAre("bad", "good"));
  // The files of a folder come before those of the folders inside of it.
  EXPECT_THAT(texts.file_paths, ElementsAre(folder_ / "bad/1.txt", folder_ / "bad/2.txt", folder_ / "good/b.txt",
                                            folder_ / "good/a/z.TXT"));
  EXPECT_THAT(texts.labels, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(TextsOf(texts.dataset), ElementsAre("d\xc3\xa9j\xc3\xa0 vu", "", "nice", "fine\n"));
  Element element;
  const auto iterator = texts.dataset.MakeIterator();
  ASSERT_TRUE(iterator->Next(&element));
  EXPECT_EQ(element[0].shape(), Shape{3});
  EXPECT_THAT(element[1].ToVector<int32_t>(), ElementsAre(0, 0, 1));
}

TEST_F(TextFolderTest, LabelsAndTextsHaveTheFormThatIsAsked) {
  const auto first = [&](const TextFolderOptions& options) {
    Element element;
    TextDatasetFromDirectory(folder_.path(), options).dataset.MakeIterator()->Next(&element);
    return element;
  };
  const Element binary = first({.label_mode = LabelMode::kBinary, .max_length = 2, .shuffle = false});
  EXPECT_EQ(binary[1].shape(), (Shape{4, 1}));
  EXPECT_THAT(binary[0].ToVector<std::string>(), ElementsAre("d\xc3", "", "ni", "fi"));
  const Element one =
      first({.label_mode = LabelMode::kCategorical, .class_names = {"good", "bad"}, .batch_size = 0, .shuffle = false});
  EXPECT_EQ(one[0].scalar<std::string>(), "nice");
  EXPECT_THAT(one[1].ToVector<float>(), ElementsAre(1, 0));
  EXPECT_EQ(first({.label_mode = LabelMode::kNone}).size(), 1u);
}

TEST_F(TextFolderTest, SubsetsDivideTheFiles) {
  std::set<std::string> paths;
  for (const Subset subset : {Subset::kTraining, Subset::kValidation}) {
    const TextFolder part =
        TextDatasetFromDirectory(folder_.path(), {.seed = 3, .validation_split = 0.25, .subset = subset});
    EXPECT_EQ(part.file_paths.size(), subset == Subset::kTraining ? 3u : 1u);
    EXPECT_EQ(TextsOf(part.dataset).size(), part.file_paths.size());
    paths.insert(part.file_paths.begin(), part.file_paths.end());
  }
  EXPECT_EQ(paths.size(), 4u);
}

TEST_F(TextFolderTest, AFileThatVanishesIsNamedAndOthersAreRead) {
  const Dataset dataset = TextDatasetFromDirectory(folder_.path(), {.batch_size = 0, .shuffle = false}).dataset;
  std::filesystem::remove(folder_ / "bad/1.txt");
  const auto iterator = dataset.MakeIterator();
  Element element;
  EXPECT_THAT(MessageOf<NotFoundError>([&] { iterator->Next(&element); }), HasSubstr("bad/1.txt"));
  int more = 0;
  while (iterator->Next(&element)) ++more;
  EXPECT_EQ(more, 3);
}

TEST_F(TextFolderTest, TravelsToOtherProcesses) {
  const Dataset dataset = TextDatasetFromDirectory(folder_.path(), {.max_length = 3, .shuffle = false}).dataset;
  EXPECT_EQ(TextsOf(Deserialize(Serialize(dataset))), TextsOf(dataset));
}

TEST_F(TextFolderTest, WrongArgumentsAreNamed) {
  const auto message = [&](const TextFolderOptions& options) {
    return MessageOf<InvalidArgumentError>([&] { TextDatasetFromDirectory(folder_.path(), options); });
  };
  EXPECT_THAT(message({.batch_size = -1}), HasSubstr("got -1"));
  EXPECT_THAT(message({.max_length = -2}), HasSubstr("got -2"));
  EXPECT_THAT(message({.validation_split = 0.5}), HasSubstr("for all files"));
  EXPECT_THAT(message({.validation_split = 0.5, .subset = Subset::kTraining}), HasSubstr("a seed"));
  EXPECT_THAT(message({.num_parallel_calls = 0}), HasSubstr("parallel"));
  EXPECT_THAT(message({.label_mode = LabelMode::kBinary, .class_names = {"bad"}}), HasSubstr("two classes"));
  const auto not_found = [&](const std::string& folder, const TextFolderOptions& options) {
    return MessageOf<NotFoundError>([&] { TextDatasetFromDirectory(folder, options); });
  };
  EXPECT_THAT(not_found("/no/folder", {}), AllOf(HasSubstr("[data/texts]"), HasSubstr("/no/folder")));
  EXPECT_THAT(not_found(folder_.path(), {.class_names = {"ugly"}}), HasSubstr("\"ugly\""));
  EXPECT_THAT(not_found(folder_ / "bad", {}), HasSubstr("a folder for each class"));
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_THAT(not_found(folder_.path(), {.class_names = {"empty"}}), HasSubstr("found no .txt file"));
}

}  // namespace
}  // namespace cohort::data
