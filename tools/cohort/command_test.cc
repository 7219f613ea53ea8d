#include "tools/cohort/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace cohort::tools {
namespace {

using ::testing::ElementsAre;

TEST(SplitArgumentsTest, FlagsAreSpeltWithUnderscores) {
  const Arguments arguments = SplitArguments({"--max-restarts=2-3", "-x-y", "--output-dir", "a-b", "--dry-run"});
  EXPECT_THAT(arguments.flags, ElementsAre("--max_restarts=2-3", "-x-y", "--output_dir", "a-b", "--dry_run"));
  EXPECT_FALSE(arguments.has_rest);
}

TEST(SplitArgumentsTest, AnEmptyValueIsAValue) {
  EXPECT_THAT(SplitArguments({"--ps-hosts=", "--job-name=ps"}).flags, ElementsAre("--ps_hosts", "", "--job_name=ps"));
  CLI::App app("Test.", "cohort test");
  std::string first = "default";
  std::string second;
  app.add_option("--first", first);
  app.add_option("--second", second);
  EXPECT_EQ(ParseFlags(&app, SplitArguments({"--first=", "--second=x"}).flags), std::nullopt);
  EXPECT_EQ(first, "");
  EXPECT_EQ(second, "x");
}

TEST(SplitArgumentsTest, WhatFollowsTheSeparatorIsUntouched) {
  const Arguments arguments = SplitArguments({"--ps=1", "--", "prog", "--a-b=c", "--", "--d-e"});
  EXPECT_THAT(arguments.flags, ElementsAre("--ps=1"));
  EXPECT_TRUE(arguments.has_rest);
  EXPECT_THAT(arguments.rest, ElementsAre("prog", "--a-b=c", "--", "--d-e"));
  EXPECT_TRUE(SplitArguments({"--"}).has_rest);
  EXPECT_TRUE(SplitArguments({}).flags.empty());
}

std::optional<int> Parse(const std::vector<std::string>& flags, int* number) {
  CLI::App app("Test.", "cohort test");
  app.add_option("--number", *number)->check(CLI::Range(0, 9));
  return ParseFlags(&app, flags);
}

TEST(ParseFlagsTest, MistakesAreUsageErrors) {
  int number = 0;
  EXPECT_EQ(Parse({"--number=3"}, &number), std::nullopt);
  EXPECT_EQ(number, 3);
  EXPECT_EQ(Parse({"--number", "4"}, &number), std::nullopt);
  EXPECT_EQ(number, 4);
  EXPECT_EQ(Parse({"--number=10"}, &number), kUsageError);
  EXPECT_EQ(Parse({"--number=x"}, &number), kUsageError);
  EXPECT_EQ(Parse({"--nmber=1"}, &number), kUsageError);
  EXPECT_EQ(Parse({"stray"}, &number), kUsageError);
  EXPECT_EQ(Parse({"--help"}, &number), 0);
}

}  // namespace
}  // namespace cohort::tools
