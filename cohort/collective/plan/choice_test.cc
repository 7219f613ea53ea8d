// The names of algorithms, and which one AUTO chooses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cohort/collective/plan/all_reduce.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(AlgorithmTest, NamesAndNumbersAreUnique) {
  std::set<std::string> names;
  for (const Algorithm algorithm : AllAlgorithms()) {
    EXPECT_TRUE(names.insert(AlgorithmName(algorithm)).second) << AlgorithmName(algorithm);
    EXPECT_EQ(AlgorithmByName(AlgorithmName(algorithm)), algorithm);
  }
  EXPECT_EQ(std::set<Algorithm>(AllAlgorithms().begin(), AllAlgorithms().end()).size(), AllAlgorithms().size());
  EXPECT_EQ(AlgorithmByName("halving_doubling"), Algorithm::kHalvingDoubling);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { AlgorithmByName("mpi"); }),
              AllOf(HasSubstr("expected an algorithm of AUTO, RING, "), HasSubstr("got 'mpi'")));
}

// docs/formats.md has these numbers: processes of different versions exchange them.
TEST(AlgorithmTest, NumbersOnTheWireStay) {
  const std::vector<Algorithm> by_number = {Algorithm::kAuto,     Algorithm::kRing,   Algorithm::kHalvingDoubling,
                                            Algorithm::kDoubling, Algorithm::kDirect, Algorithm::kHierarchical,
                                            Algorithm::kShared,   Algorithm::kGloo,   Algorithm::kNccl};
  for (size_t number = 0; number < by_number.size(); ++number) {
    EXPECT_EQ(static_cast<size_t>(by_number[number]), number) << AlgorithmName(by_number[number]);
  }
}

std::vector<Location> OneHost(const std::vector<int>& processes) {
  std::vector<Location> locations;
  for (const int process : processes) locations.push_back({0, process});
  return locations;
}

// Each rank is a process of its own.
std::vector<Location> Hosts(const std::vector<int>& hosts) {
  std::vector<Location> locations;
  for (size_t i = 0; i < hosts.size(); ++i) locations.push_back({hosts[i], static_cast<int>(i)});
  return locations;
}

TEST(ChoiceTest, FollowsBytesMembersAndProcesses) {
  constexpr DType kF32 = DType::kFloat32;
  EXPECT_EQ(ChooseAllReduce(kF32, 4, OneHost({0, 0, 1})), Algorithm::kHierarchical);
  EXPECT_EQ(ChooseAllReduce(kF32, 4096, OneHost({0, 1})), Algorithm::kDoubling);
  EXPECT_EQ(ChooseAllReduce(kF32, 4096, OneHost({0, 1, 2})), Algorithm::kDoubling);
  EXPECT_EQ(ChooseAllReduce(kF32, 100 << 20, OneHost({0, 1})), Algorithm::kRing);
  EXPECT_EQ(ChooseAllReduce(kF32, 100 << 20, OneHost({0, 1, 2})), Algorithm::kRing);
  EXPECT_EQ(ChooseAllReduce(kF32, 100 << 20, OneHost({0, 1, 2, 3})), Algorithm::kHalvingDoubling);
  EXPECT_EQ(ChooseAllReduce(DType::kBfloat16, 100 << 20, OneHost({0, 1, 2, 3})), Algorithm::kDirect);
}

TEST(ChoiceTest, SparesTheLinkBetweenHostsOfSeveralProcesses) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    EXPECT_EQ(ChooseAllReduce(dtype, 100 << 20, Hosts({0, 0, 1, 1})), Algorithm::kHierarchical);
    EXPECT_EQ(ChooseAllReduce(dtype, 100 << 20, Hosts({0, 1, 2, 2, 1, 0})), Algorithm::kHierarchical);
    EXPECT_EQ(ChooseAllReduce(dtype, 4096, Hosts({0, 0, 1, 1})), Algorithm::kDoubling);
  }
  // If each host has one process, or hosts have unequal numbers, the choice is that of one host.
  EXPECT_EQ(ChooseAllReduce(DType::kFloat32, 100 << 20, Hosts({0, 1})), Algorithm::kRing);
  EXPECT_EQ(ChooseAllReduce(DType::kFloat32, 100 << 20, Hosts({0, 1, 2, 3})), Algorithm::kHalvingDoubling);
  EXPECT_EQ(ChooseAllReduce(DType::kFloat32, 100 << 20, Hosts({0, 0, 1})), Algorithm::kRing);
  EXPECT_EQ(ChooseAllReduce(DType::kFloat32, 4, {{0, 0}, {0, 0}, {1, 1}}), Algorithm::kHierarchical);
}

}  // namespace
}  // namespace cohort::collective
