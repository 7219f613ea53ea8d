// What a program with the CUDA backend needs to start.
#include <gtest/gtest.h>
#include <link.h>

#include <string>
#include <vector>

namespace cohort::cuda {
namespace {

std::vector<std::string> LoadedLibraries() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        static_cast<std::vector<std::string>*>(to)->emplace_back(info->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

// They were loaded before main, because the program or a library of it asks for them.
const std::vector<std::string> at_start = LoadedLibraries();

TEST(ProgramStartTest, NeedsNoLibraryOfCuda) {
  ASSERT_GT(at_start.size(), 1u);
  for (const std::string& name : at_start) {
    for (const char* library : {"libcuda", "libcublas", "libcudnn", "libnccl", "libnvrtc", "libnvJitLink"}) {
      EXPECT_EQ(name.find(library), std::string::npos) << name;
    }
  }
}

}  // namespace
}  // namespace cohort::cuda
