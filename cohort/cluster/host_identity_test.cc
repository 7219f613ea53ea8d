#include "cohort/cluster/host_identity.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cohort/core/testing/temp_folder.h"

namespace cohort {
namespace {

using Numbers = std::vector<int>;
namespace fs = std::filesystem;

TEST(HostIdentityTest, IsThatOfTheKernelAndItsNetwork) {
  const std::string here = HostIdentity();
  EXPECT_EQ(here, HostIdentity());
  const testing::TempFolder folder;
  const fs::path proc = folder / "proc";
  const auto write = [&](const std::string& boot_id) { std::ofstream(proc / "sys/kernel/random/boot_id") << boot_id; };
  const auto link = [&](const std::string& network) {
    fs::remove(proc / "self/ns/net");
    fs::create_symlink(network, proc / "self/ns/net");
  };
  EXPECT_EQ(HostIdentity(proc), "");
  fs::create_directories(proc / "sys/kernel/random");
  fs::create_directories(proc / "self/ns");
  write("one\n");
  EXPECT_EQ(HostIdentity(proc), "") << "the network is unknown";
  link("net:[1]");
  const std::string first = HostIdentity(proc);
  EXPECT_EQ(first, "one/net:[1]");
  link("net:[2]");
  EXPECT_EQ(HostIdentity(proc), "one/net:[2]");
  write("");
  EXPECT_EQ(HostIdentity(proc), "") << "the kernel is unknown";
}

TEST(HostIdentityTest, HostsAreNumberedAsTheyAppearAndUnknownOnesAreDifferent) {
  EXPECT_EQ(NumberHosts({}), Numbers{});
  EXPECT_EQ(NumberHosts({"a", "a", "b", "a", "c", "b"}), (Numbers{0, 0, 1, 0, 2, 1}));
  EXPECT_EQ(NumberHosts({"", "", "a", "", "a"}), (Numbers{0, 1, 2, 3, 2}));
}

}  // namespace
}  // namespace cohort
