#include "cohort/checkpoint/checkpoint_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/file.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

std::string FreshDir(const std::string& name) {
  const std::string dir = ::testing::TempDir() + "/checkpoint_state_" + name;
  fs::remove_all(dir);
  fs::create_directories(dir);
  return dir;
}

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
std::vector<std::string> SaveThree(const std::string& dir) {
  CheckpointState state;
  for (const char* name : {"/m-1", "/m-2", "/m-3"}) state.all_model_checkpoint_paths.push_back(Save(dir + name));
  state.model_checkpoint_path = dir + "/m-3";
  WriteCheckpointState(dir, state, true);
  return state.all_model_checkpoint_paths;
}

TEST(CheckpointStateTest, TextIsTensorFlows) {
  const std::string dir = FreshDir("text");
  CheckpointState state;
  state.model_checkpoint_path = dir + "/model.ckpt-200";
  state.all_model_checkpoint_paths = {dir + "/model.ckpt-100"};
  WriteCheckpointState(dir, state, /*relative_paths=*/true);
  EXPECT_EQ(ReadFile(dir + "/checkpoint"),
            "model_checkpoint_path: \"model.ckpt-200\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-100\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-200\"\n");
  const auto back = ReadCheckpointState(dir);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->model_checkpoint_path, dir + "/model.ckpt-200");
  EXPECT_THAT(back->all_model_checkpoint_paths, ElementsAre(dir + "/model.ckpt-100", dir + "/model.ckpt-200"));

  WriteCheckpointState(dir, state, /*relative_paths=*/false, "other");
  EXPECT_THAT(ReadFile(dir + "/other"),
              ::testing::StartsWith("model_checkpoint_path: \"" + dir + "/model.ckpt-200\"\n"));
}

TEST(CheckpointStateTest, TimesTravelAndUnknownFieldsAreIgnored) {
  const std::string dir = FreshDir("times");
  Put(dir + "/checkpoint",
      "model_checkpoint_path: \"c-1\"\nall_model_checkpoint_paths: \"c-1\"\n"
      "all_model_checkpoint_timestamps: 1700000000.25\nlast_preserved_timestamp: 1699999999.5\nlater_field: "
      "3\n");
  const auto state = ReadCheckpointState(dir);
  ASSERT_TRUE(state.has_value());
  EXPECT_THAT(state->all_model_checkpoint_timestamps, ElementsAre(1700000000.25));
  EXPECT_EQ(state->last_preserved_timestamp, 1699999999.5);
}

TEST(CheckpointStateTest, TornStateFileIsTreatedAsMissing) {
  const std::string dir = FreshDir("torn_state");
  EXPECT_FALSE(ReadCheckpointState(dir).has_value());
  EXPECT_EQ(LatestCheckpoint(dir), "");
  Put(dir + "/checkpoint", "model_checkpoint_path: \"m-");
  EXPECT_FALSE(ReadCheckpointState(dir).has_value());
  const std::string prefix = Save(dir + "/m-7");
  EXPECT_EQ(LatestCheckpoint(dir), prefix);
}

TEST(CheckpointStateTest, NewestCompleteWins) {
  const std::string dir = FreshDir("newest");
  const std::vector<std::string> all = SaveThree(dir);
  EXPECT_EQ(LatestCheckpoint(dir), all[2]);
  const std::string data = all[2] + ".data-00000-of-00001";
  const std::string bytes = ReadFile(data);
  Put(data, bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ(LatestCheckpoint(dir), all[1]) << "data cut off";
  Put(data, bytes);
  EXPECT_EQ(LatestCheckpoint(dir), all[2]);
  fs::remove(data);
  EXPECT_EQ(LatestCheckpoint(dir), all[1]) << "data missing";
  std::string index = ReadFile(all[1] + ".index");
  index[20] = static_cast<char>(index[20] ^ 1);
  Put(all[1] + ".index", index);
  EXPECT_EQ(LatestCheckpoint(dir), all[0]) << "index corrupt";
  EXPECT_FALSE(CheckCheckpointComplete(all[1]).ok());
  fs::remove(all[0] + ".index");
  EXPECT_EQ(LatestCheckpoint(dir), "");
}

// A writer that died after its index appeared and before the state file did, and all named ones are gone.
TEST(CheckpointStateTest, UnnamedOnesAreTheLastResort) {
  const std::string dir = FreshDir("unnamed");
  const std::vector<std::string> all = SaveThree(dir);
  const std::string unnamed = Save(dir + "/m-4");
  EXPECT_EQ(LatestCheckpoint(dir), all[2]);
  for (const std::string& prefix : all) DeleteCheckpoint(prefix);
  EXPECT_EQ(LatestCheckpoint(dir), unnamed);
}

TEST(CheckpointStateTest, DeleteRemovesItsOwnFilesOnly) {
  const std::string dir = FreshDir("delete");
  Save(dir + "/m-1");
  Save(dir + "/m-10");
  Put(dir + "/m-1.meta", "x");
  DeleteCheckpoint(dir + "/m-1");
  DeleteCheckpoint(dir + "/m-1");
  int left = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(dir)) ++left;
  EXPECT_EQ(left, 2);
  EXPECT_TRUE(CheckCheckpointComplete(dir + "/m-10").ok());
}

TEST(CheckpointStateTest, AbandonedFilesAreRemoved) {
  const std::string dir = FreshDir("abandoned");
  Save(dir + "/m-1");
  Put(dir + "/m-2.data-00000-of-00001.tempstate0123456789abcdef", "half");
  EXPECT_EQ(RemoveAbandonedFiles(dir), 1);
  EXPECT_EQ(RemoveAbandonedFiles(dir), 0);
  EXPECT_TRUE(CheckCheckpointComplete(dir + "/m-1").ok());
}

}  // namespace
}  // namespace cohort
