// .keras files in which a byte is wrong or the end is missing: LoadModel gives a model or an error of ours, and nothing
// else. Where the archive's checksums hold - a file that was written wrong - its members are looked at more closely.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>

#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/keras/files/archive.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/files/weights_file.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

constexpr int kMasks[] = {0x01, 0x80, 0xff};

class DamagedModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Sequential model({Input(Shape{2}), Dense(3, {.activation = "tanh"}), Dense(1)}, ModelOptions{.name = "small"});
    model.Compile({.optimizer = SGD({.learning_rate = 0.1, .momentum = 0.9}), .loss = "mse", .metrics = {"mae"}});
    model.Fit(Counting(Shape{4, 2}), Counting(Shape{4, 1}), {.verbose = 0});
    model.Save(path);
    whole = ReadFile(path);
    ::testing::internal::CaptureStderr();  // of states that do not fit, and the like
  }
  void TearDown() override { ::testing::internal::GetCapturedStderr(); }

  // Whether `load` succeeds. Fails the test where it throws what is no error of ours.
  template <typename Load>
  bool Loads(const Load& load, const std::string& damage) {
    try {
      load();
      return true;
    } catch (const Error&) {
      return false;
    } catch (const std::exception& error) {
      ADD_FAILURE() << damage << ": " << error.what();
      return false;
    }
  }
  bool Loads(const std::string& damage) {
    return Loads([&] { LoadModel(path, {.session = {.intra_op_parallelism_threads = 1}}); }, damage);
  }
  void Write(const std::string& bytes) const { std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes; }

  const testing::TempFolder folder;
  const std::string path = folder / "model.keras";
  std::string whole;
};

std::string WithByte(std::string bytes, size_t at, char value) {
  bytes[at] = value;
  return bytes;
}

TEST_F(DamagedModelTest, AnyByteOfTheFile) {
  ASSERT_TRUE(Loads("none"));
  int refused = 0, tried = 0;
  for (size_t at = 0; at < whole.size(); at += 29) {
    const int mask = kMasks[at % std::size(kMasks)];
    Write(WithByte(whole, at, static_cast<char>(whole[at] ^ mask)));
    if (!Loads(StrCat("byte ", at, " xor ", mask))) ++refused;
    ++tried;
  }
  EXPECT_GT(refused, tried * 9 / 10);  // what is left are times, attributes and the like
}

TEST_F(DamagedModelTest, AnyLengthOfTheFile) {
  for (size_t size = 0; size < whole.size(); size += 97) {
    Write(whole.substr(0, size));
    EXPECT_FALSE(Loads(StrCat("the first ", size, " bytes"))) << size;
  }
}

TEST_F(DamagedModelTest, AnyCharacterOfTheConfiguration) {
  const ModelArchive archive = ReadModelArchive(path);
  const char values[] = {'"', '9', '-', '}', '\0', 'x', '\xff'};
  for (size_t at = 0; at < archive.config.size(); at += 5) {
    ModelArchive damaged = archive;
    damaged.config[at] = values[at % std::size(values)];
    WriteModelArchive(path, damaged);
    Loads(StrCat("character ", at, " of config.json"));
  }
}

TEST_F(DamagedModelTest, AnyByteOfTheWeights) {
  const ModelArchive archive = ReadModelArchive(path);
  for (size_t at = 0; at < archive.weights.size(); at += 2) {
    const int mask = kMasks[at % std::size(kMasks)];
    const std::string weights = WithByte(archive.weights, at, static_cast<char>(archive.weights[at] ^ mask));
    const std::string damage = StrCat("byte ", at, " of the weights xor ", mask);
    const bool decodes = Loads([&] { DecodeWeights(weights, "a test"); }, damage);
    if (!decodes || at % 101 != 0) continue;
    ModelArchive damaged = archive;
    damaged.weights = weights;
    WriteModelArchive(path, damaged);
    Loads(damage);
  }
}

// What once crashed the HDF5 library or kept it busy for ever: lengths and places in the attributes, which hold texts
// of variable length.
TEST_F(DamagedModelTest, AttributesOfTheWeights) {
  const ModelArchive archive = ReadModelArchive(path);
  const std::string heap = "GCOL";  // where the library keeps those texts
  const size_t begin = archive.weights.find(heap);
  ASSERT_NE(begin, std::string::npos);
  for (size_t at = begin - 200; at < begin + 100; ++at) {
    for (const int mask : kMasks) {
      const std::string weights = WithByte(archive.weights, at, static_cast<char>(archive.weights[at] ^ mask));
      Loads([&] { DecodeWeights(weights, "a test"); }, StrCat("byte ", at, " of the weights xor ", mask));
    }
  }
}

}  // namespace
}  // namespace cohort::keras
