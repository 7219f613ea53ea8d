#include "cohort/cluster/status/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ClusterFileTest, WhatIsWrittenIsRead) {
  const testing::TempFolder folder;
  const std::string logdir = folder / "new/logs";
  const ClusterSpec cluster = ClusterSpec::FromSparse({{"worker", {{1, "w1:1"}}}, {"ps", {{0, "p:1"}, {1, "p:2"}}}});
  WriteClusterFile(logdir, {.cluster = cluster});
  EXPECT_EQ(ReadClusterFile(logdir).cluster, cluster);
  EXPECT_EQ(ReadClusterFile(logdir + "/").token_file, "");
  WriteClusterFile(logdir, {.cluster = cluster, .token_file = "/somewhere/token"});
  EXPECT_EQ(ReadClusterFile(logdir).token_file, "/somewhere/token");
}

TEST(ClusterFileTest, MissingAndDamagedFilesAreNamed) {
  const testing::TempFolder folder;
  EXPECT_THAT(MessageOf<NotFoundError>([&] { ReadClusterFile(folder / "no"); }), HasSubstr("no/cluster.json"));
  for (const char* text : {"", "{", "[]", "{\"cluster\": 3}", "{\"cluster\": {}}"}) {
    WriteFileAtomically(folder / "cluster.json", text);
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ReadClusterFile(folder / ""); }), HasSubstr("cluster.json"))
        << text;
  }
}

}  // namespace
}  // namespace cohort
