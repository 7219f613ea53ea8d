#include "cohort/checkpoint/checkpoint_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void Put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string Save(const std::string& prefix) {
  BundleWriter writer(prefix);
  writer.Add("w", Tensor::Vector<float>({1, 2, 3}));
  writer.Finish();
  return prefix;
}

// Three checkpoints and the state file that names them.
std::vector<std::string> SaveThree(const testing::TempFolder& folder) {
  CheckpointState state;
  for (const char* name : {"m-1", "m-2", "m-3"}) state.all_model_checkpoint_paths.push_back(Save(folder / name));
  state.model_checkpoint_path = folder / "m-3";
  WriteCheckpointState(folder.path(), state, true);
  return state.all_model_checkpoint_paths;
}

TEST(CheckpointStateTest, TextIsTensorFlows) {
  const testing::TempFolder folder;
  CheckpointState state;
  state.model_checkpoint_path = folder / "model.ckpt-200";
  state.all_model_checkpoint_paths = {folder / "model.ckpt-100"};
  WriteCheckpointState(folder.path(), state, /*relative_paths=*/true);
  EXPECT_EQ(ReadFile(folder / "checkpoint"),
            "model_checkpoint_path: \"model.ckpt-200\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-100\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-200\"\n");
  const auto back = ReadCheckpointState(folder.path());
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->model_checkpoint_path, folder / "model.ckpt-200");
  EXPECT_THAT(back->all_model_checkpoint_paths, ElementsAre(folder / "model.ckpt-100", folder / "model.ckpt-200"));

  WriteCheckpointState(folder.path(), state, /*relative_paths=*/false, "other");
  EXPECT_THAT(ReadFile(folder / "other"),
              ::testing::StartsWith("model_checkpoint_path: \"" + folder / "model.ckpt-200\"\n"));
}

TEST(CheckpointStateTest, TimesTravelAndUnknownFieldsAreIgnored) {
  const testing::TempFolder folder;
  Put(folder / "checkpoint",
      "model_checkpoint_path: \"c-1\"\nall_model_checkpoint_paths: \"c-1\"\n"
      "all_model_checkpoint_timestamps: 1700000000.25\nlast_preserved_timestamp: 1699999999.5\nlater_field: "
      "3\n");
  const auto state = ReadCheckpointState(folder.path());
  ASSERT_TRUE(state.has_value());
  EXPECT_THAT(state->all_model_checkpoint_timestamps, ElementsAre(1700000000.25));
  EXPECT_EQ(state->last_preserved_timestamp, 1699999999.5);
}

TEST(CheckpointStateTest, TornStateFileIsTreatedAsMissing) {
  const testing::TempFolder folder;
  EXPECT_FALSE(ReadCheckpointState(folder.path()).has_value());
  EXPECT_EQ(LatestCheckpoint(folder.path()), "");
  Put(folder / "checkpoint", "model_checkpoint_path: \"m-");
  EXPECT_FALSE(ReadCheckpointState(folder.path()).has_value());
  const std::string prefix = Save(folder / "m-7");
  EXPECT_EQ(LatestCheckpoint(folder.path()), prefix);
}

TEST(CheckpointStateTest, NewestCompleteWins) {
  const testing::TempFolder folder;
  const std::vector<std::string> all = SaveThree(folder);
  EXPECT_EQ(LatestCheckpoint(folder.path()), all[2]);
  const std::string data = all[2] + ".data-00000-of-00001";
  const std::string bytes = ReadFile(data);
  Put(data, bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ(LatestCheckpoint(folder.path()), all[1]) << "data cut off";
  Put(data, bytes);
  EXPECT_EQ(LatestCheckpoint(folder.path()), all[2]);
  fs::remove(data);
  EXPECT_EQ(LatestCheckpoint(folder.path()), all[1]) << "data missing";
  std::string index = ReadFile(all[1] + ".index");
  index[20] = static_cast<char>(index[20] ^ 1);
  Put(all[1] + ".index", index);
  EXPECT_EQ(LatestCheckpoint(folder.path()), all[0]) << "index corrupt";
  EXPECT_FALSE(CheckCheckpointComplete(all[1]).ok());
  fs::remove(all[0] + ".index");
  EXPECT_EQ(LatestCheckpoint(folder.path()), "");
}

// A writer that died after its index appeared and before the state file did, and all named ones are gone.
TEST(CheckpointStateTest, UnnamedOnesAreTheLastResort) {
  const testing::TempFolder folder;
  const std::vector<std::string> all = SaveThree(folder);
  const std::string unnamed = Save(folder / "m-4");
  EXPECT_EQ(LatestCheckpoint(folder.path()), all[2]);
  for (const std::string& prefix : all) DeleteCheckpoint(prefix);
  EXPECT_EQ(LatestCheckpoint(folder.path()), unnamed);
}

TEST(CheckpointStateTest, WhatTheStateFileNamesMustNotBeIgnored) {
  const testing::TempFolder folder;
  const auto newest = [&] { return NewestUsableCheckpoint(folder.path(), "checkpoint", CheckCheckpointComplete); };
  EXPECT_EQ(newest(), "");
  Put(folder / "stray.index", "no index");
  EXPECT_EQ(newest(), "") << "no state file names it";
  const std::vector<std::string> all = SaveThree(folder);
  EXPECT_EQ(newest(), all[2]);
  fs::remove(all[2] + ".index");
  fs::remove(all[1] + ".data-00000-of-00001");
  EXPECT_EQ(newest(), all[0]) << "an older one is there";
  fs::remove(all[0] + ".index");
  Put(all[0], "a table\x57\xfb\x80\x8b\x24\x75\x47\xdb");
  try {
    newest();
    FAIL() << "expected a DataLossError";
  } catch (const DataLossError& error) {
    const std::string text = error.what();
    EXPECT_THAT(text, HasSubstr(folder / "checkpoint"));
    EXPECT_THAT(text, HasSubstr(all[2] + ".index does not exist"));
    EXPECT_THAT(text, HasSubstr(all[1] + ".data-00000-of-00001 of the checkpoint is missing"));
    EXPECT_THAT(text, HasSubstr("The file " + all[0] + " is in TensorFlow's V1 format"));
    EXPECT_THAT(text, HasSubstr("restore = false"));
  }
  Put(folder / "checkpoint", "no state {");
  EXPECT_THAT(MessageOf<DataLossError>(newest), AllOf(HasSubstr("is damaged"), HasSubstr("restore = false")));
}

// Another process saves, and deletes what is old, between our look at the state file and at the checkpoints.
TEST(CheckpointStateTest, ALaterStateFileIsReadIfAllHaveVanished) {
  const testing::TempFolder folder;
  const std::vector<std::string> all = SaveThree(folder);
  std::string saved;
  const auto check = [&](const std::string& prefix) {
    if (saved.empty()) {
      for (const std::string& one : all) DeleteCheckpoint(one);
      saved = Save(folder / "m-9");
      WriteCheckpointState(folder.path(), {.model_checkpoint_path = saved}, /*relative_paths=*/false);
    }
    return CheckCheckpointComplete(prefix);
  };
  EXPECT_EQ(NewestUsableCheckpoint(folder.path(), "checkpoint", check), saved);
}

TEST(CheckpointStateTest, AFileOfACheckpointIsNoPrefix) {
  const testing::TempFolder folder;
  const std::string prefix = Save(folder / "m-1");
  for (const char* ending : {".index", ".data-00000-of-00001"}) {
    EXPECT_THAT(CheckCheckpointComplete(prefix + ending).message(),
                HasSubstr("It is a file of the checkpoint " + prefix + ", whose name has no such ending"));
  }
  Put(folder / "old-00000-of-00002", "a table\x57\xfb\x80\x8b\x24\x75\x47\xdb");
  EXPECT_THAT(CheckCheckpointComplete(folder / "old-?????-of-00002").message(), HasSubstr("V1 format"));
}

TEST(CheckpointStateTest, DeleteRemovesItsOwnFilesOnly) {
  const testing::TempFolder folder;
  Save(folder / "m-1");
  Save(folder / "m-10");
  Put(folder / "m-1.meta", "x");
  DeleteCheckpoint(folder / "m-1");
  DeleteCheckpoint(folder / "m-1");
  int left = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path())) ++left;
  EXPECT_EQ(left, 2);
  EXPECT_TRUE(CheckCheckpointComplete(folder / "m-10").ok());
}

TEST(CheckpointStateTest, AbandonedFilesAreRemoved) {
  const testing::TempFolder folder;
  Save(folder / "m-1");
  Put(folder / "m-2.data-00000-of-00001.tempstate0123456789abcdef", "half");
  EXPECT_EQ(RemoveAbandonedFiles(folder.path()), 1);
  EXPECT_EQ(RemoveAbandonedFiles(folder.path()), 0);
  EXPECT_TRUE(CheckCheckpointComplete(folder / "m-1").ok());
}

}  // namespace
}  // namespace cohort
