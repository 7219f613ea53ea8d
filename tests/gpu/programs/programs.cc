// The program `gpu_programs` of the archive of `./dev gpu-pack`: several test suites and other programs in one. The
// name by which it is started (that of a symbolic link to it) says which of them it is. The build writes names.inc
// (CMakeLists.txt): the sources of each suite, and the programs that have a main function.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>

extern "C" {
#define COHORT_SOURCE(suite, path)
#define COHORT_PROGRAM(name) int main_of_##name(int, char**);
#include "names.inc"
#undef COHORT_PROGRAM
#undef COHORT_SOURCE
}

namespace {

const std::map<std::string, int (*)(int, char**)> kPrograms = {
#define COHORT_SOURCE(suite, path)
#define COHORT_PROGRAM(name) {#name, main_of_##name},
#include "names.inc"
#undef COHORT_PROGRAM
#undef COHORT_SOURCE
};

// The suite of each source.
const std::map<std::string, std::string> kSuites = {
#define COHORT_SOURCE(suite, path) {path, #suite},
#define COHORT_PROGRAM(name)
#include "names.inc"
#undef COHORT_PROGRAM
#undef COHORT_SOURCE
};

// Returns the suite with the test, or "" if its source is not in names.inc.
std::string SuiteOf(const testing::TestInfo& test) {
  const auto found = kSuites.find(std::filesystem::path(test.file()).lexically_normal().string());
  return found == kSuites.end() ? "" : found->second;
}

// Adds all tests of other suites to those that the filter leaves out. Returns false, after saying why, if a group of
// tests (all tests NAME.*) belongs to several suites or to none, because a filter could not tell them apart.
bool LeaveOutOtherSuites(const std::string& suite) {
  std::string left_out;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& tests = *all.GetTestSuite(i);
    std::set<std::string> suites;
    for (int j = 0; j < tests.total_test_count(); ++j) suites.insert(SuiteOf(*tests.GetTestInfo(j)));
    if (suites.size() != 1 || suites.count("") != 0) {
      std::fprintf(stderr, "gpu_programs: expected the tests %s.* to be of one suite; got %zu, or a source of none\n",
                   tests.name(), suites.size());
      return false;
    }
    if (suites.count(suite) == 0) left_out += std::string(left_out.empty() ? "" : ":") + tests.name() + ".*";
  }
  const std::string filter = GTEST_FLAG_GET(filter);
  GTEST_FLAG_SET(filter, filter + (filter.find('-') == std::string::npos ? "-" : ":") + left_out);
  return true;
}

// Returns the names of all suites and programs.
std::set<std::string> Names() {
  std::set<std::string> names;
  for (const auto& [name, function] : kPrograms) names.insert(name);
  for (const auto& [path, suite] : kSuites) names.insert(suite);
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = std::filesystem::path(argc > 0 ? argv[0] : "").filename();
  const auto program = kPrograms.find(name);
  if (program != kPrograms.end()) return program->second(argc, argv);
  const std::set<std::string> names = Names();
  if (names.count(name) == 0) {
    std::fprintf(stderr, "gpu_programs: expected to be started by a link with one of these names; got '%s':\n",
                 name.c_str());
    for (const std::string& other : names) std::fprintf(stderr, "  %s\n", other.c_str());
    return 2;
  }
  testing::InitGoogleMock(&argc, argv);
  return LeaveOutOtherSuites(name) ? RUN_ALL_TESTS() : 1;
}
