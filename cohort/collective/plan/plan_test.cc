// Every plan of up to nine members, run by the simulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "cohort/collective/plan/all_reduce.h"
#include "cohort/collective/plan/testing/plan_simulator.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort::collective {
namespace {

using testing::Element;
using ::testing::HasSubstr;
using testing::PlanSimulator;

constexpr int kMaxWorld = 9;
// The algorithms that need no locations; the hierarchy has tests of its own.
std::vector<Algorithm> FlatAlgorithms() {
  std::vector<Algorithm> flat = AllAlgorithms();
  std::erase_if(flat, [](Algorithm one) { return !HasPlan(one) || one == Algorithm::kHierarchical; });
  return flat;
}

std::vector<int64_t> Counts(int world) {
  std::set<int64_t> counts = {0, 1, 2, 3, world - 1, world, world + 1, 2 * world - 1, 2 * world, 3 * world + 2, 40};
  return {counts.begin(), counts.end()};
}

std::vector<PlanOptions> AllOptions() {
  std::vector<PlanOptions> all;
  for (const int64_t segment : {int64_t{1}, int64_t{2}, int64_t{5}, INT64_MAX}) {
    for (const bool in_scratch : {false, true}) all.push_back({segment, in_scratch});
  }
  return all;
}

// Every way to put `world` things into groups: the group of each.
std::vector<std::vector<int>> Groupings(int world) {
  std::vector<std::vector<int>> all = {{}};
  for (int i = 0; i < world; ++i) {
    std::vector<std::vector<int>> longer;
    for (const auto& begun : all) {
      const int groups = begun.empty() ? 0 : *std::max_element(begun.begin(), begun.end()) + 1;
      for (int group = 0; group <= groups; ++group) {
        longer.push_back(begun);
        longer.back().push_back(group);
      }
    }
    all = std::move(longer);
  }
  return all;
}

// Every way to put `world` ranks into processes, and those on hosts.
std::vector<std::vector<Location>> AllSplittings(int world) {
  std::vector<std::vector<Location>> all;
  for (const auto& process_of : Groupings(world)) {
    const int processes = *std::max_element(process_of.begin(), process_of.end()) + 1;
    for (const auto& host_of : Groupings(processes)) {
      auto& locations = all.emplace_back();
      for (const int process : process_of) locations.push_back({host_of[static_cast<size_t>(process)], process});
    }
  }
  return all;
}

// Of each host its processes, of each process how many ranks it has. `in_turns`: neighbours in rank are of different
// hosts where possible.
std::vector<Location> Spread(const std::vector<std::vector<int>>& hosts, bool in_turns = false) {
  std::vector<Location> locations;
  std::vector<std::pair<int, Location>> turns;
  for (size_t host = 0; host < hosts.size(); ++host) {
    int turn = 0;
    for (size_t process = 0; process < hosts[host].size(); ++process) {
      for (int i = 0; i < hosts[host][process]; ++i) {
        locations.push_back({static_cast<int>(host) + 5, static_cast<int>(process)});
        turns.emplace_back(turn++, locations.back());
      }
    }
  }
  if (!in_turns) return locations;
  std::stable_sort(turns.begin(), turns.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < turns.size(); ++i) locations[i] = turns[i].second;
  return locations;
}

std::string Describe(const std::vector<Location>& locations) {
  std::string text;
  for (const Location& location : locations) text += StrCat(" ", location.host, ".", location.process);
  return text;
}

std::vector<Plan> HierarchicalPlans(const std::vector<Location>& locations, int64_t count,
                                    const PlanOptions& options = {}) {
  std::vector<Plan> plans;
  const auto world = static_cast<int>(locations.size());
  for (int rank = 0; rank < world; ++rank) {
    plans.push_back(PlanAllReduce(Algorithm::kHierarchical, rank, world, count, options, locations));
  }
  return plans;
}

void ExpectAllReduce(const std::vector<Plan>& plans, int64_t count, bool in_place, const std::string& what) {
  const int world = static_cast<int>(plans.size());
  PlanSimulator simulator(plans, std::vector<int64_t>(plans.size(), 0), in_place);
  ASSERT_EQ(simulator.Run(), "") << what;
  for (int rank = 0; rank < world; ++rank) {
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(simulator.output(rank).at(static_cast<size_t>(i)), (Element{i, (1u << world) - 1})) << what;
    }
  }
}

TEST(PlanTest, AllReduce) {
  int64_t simulated = 0;
  for (int world = 1; world <= kMaxWorld; ++world) {
    for (const Algorithm algorithm : FlatAlgorithms()) {
      for (const int64_t count : Counts(world)) {
        for (const PlanOptions& options : AllOptions()) {
          std::vector<Plan> plans;
          for (int rank = 0; rank < world; ++rank) {
            plans.push_back(PlanAllReduce(algorithm, rank, world, count, options));
          }
          const std::string what =
              StrCat(AlgorithmName(algorithm), " world ", world, " count ", count, " segment ", options.segment);
          for (const bool in_place : {false, true}) {
            if (in_place && !plans[0].in_place) continue;
            ExpectAllReduce(plans, count, in_place, what);
            if (HasFatalFailure()) return;
            ++simulated;
          }
        }
      }
    }
  }
  EXPECT_GT(simulated, 4000);
}

void ExpectHierarchy(const std::vector<Location>& locations, int64_t count, const PlanOptions& options) {
  const std::vector<Plan> plans = HierarchicalPlans(locations, count, options);
  const std::string what = StrCat("locations", Describe(locations), " count ", count, " segment ", options.segment);
  for (const bool in_place : {false, true}) {
    ASSERT_TRUE(plans[0].in_place);
    ExpectAllReduce(plans, count, in_place, what);
  }
}

TEST(PlanTest, HierarchyOfEverySplittingOfSmallWorlds) {
  size_t splittings = 0;
  for (int world = 1; world <= 6; ++world) {
    for (const auto& locations : AllSplittings(world)) {
      ++splittings;
      for (const int64_t count : {0, 1, world - 1, 2 * world + 1, 17}) {
        for (const PlanOptions& options : AllOptions()) {
          if (world == 6 && (options.segment != 2 || count < 13)) continue;
          ExpectHierarchy(locations, count, options);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_EQ(splittings, 1u + 3 + 12 + 60 + 358 + 2471);
}

// Hosts of 1 to 3 processes, processes of 1 to 3 ranks.
TEST(PlanTest, HierarchyOfUnevenHosts) {
  using Hosts = std::vector<std::vector<int>>;
  for (const Hosts& hosts :
       {Hosts{{2, 2}, {2, 2}}, Hosts{{1}, {2, 3}, {1, 1, 1}}, Hosts{{3, 1, 2}, {2}, {1, 3}}, Hosts{{3, 3}, {3, 3, 3}},
        Hosts{{2, 1}, {1, 2}, {2, 2}, {1, 1}}, Hosts{{3}, {2}, {1}}, Hosts{{3, 2, 1}}}) {
    for (const bool in_turns : {false, true}) {
      const auto locations = Spread(hosts, in_turns);
      for (const int64_t count : Counts(static_cast<int>(locations.size()))) {
        for (const PlanOptions& options : AllOptions()) {
          ExpectHierarchy(locations, count, options);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// What each host sends to others and gets from them, by host.
std::map<int, std::pair<int64_t, int64_t>> BetweenHosts(const std::vector<Location>& locations,
                                                        const std::vector<Plan>& plans) {
  std::map<int, std::pair<int64_t, int64_t>> crossing;
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    for (const PlanStep& step : plans[rank].steps) {
      if (step.kind != StepKind::kSend) continue;
      const int from = locations[rank].host;
      const int to = locations[static_cast<size_t>(step.peer)].host;
      if (from == to) continue;
      crossing[from].first += step.count;
      crossing[to].second += step.count;
    }
  }
  return crossing;
}

TEST(PlanTest, BetweenHostsTravelsOnlyWhatARingOfHostsSends) {
  using Hosts = std::vector<std::vector<int>>;
  constexpr int64_t kCount = 5040;
  for (const Hosts& hosts : {Hosts{{1}, {1}}, Hosts{{2, 2}, {2, 2}}, Hosts{{1, 1, 1}, {1, 1, 1}},
                             Hosts{{1}, {2, 3}, {1, 1, 1}}, Hosts{{3, 1, 2}, {2}, {1, 3}},
                             Hosts{{2, 1}, {1, 2}, {2, 2}, {1, 1}}, Hosts{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}}) {
    const auto h = static_cast<int64_t>(hosts.size());
    for (const bool in_turns : {false, true}) {
      const auto locations = Spread(hosts, in_turns);
      const auto crossing = BetweenHosts(locations, HierarchicalPlans(locations, kCount));
      ASSERT_EQ(static_cast<int64_t>(crossing.size()), h);
      for (const auto& [host, bytes] : crossing) {
        EXPECT_EQ(bytes.first, 2 * (h - 1) * kCount / h) << "host " << host << " of" << Describe(locations);
        EXPECT_EQ(bytes.second, 2 * (h - 1) * kCount / h) << "host " << host << " of" << Describe(locations);
      }
    }
  }
  // What others send there.
  const auto locations = Spread({{1, 1}, {1, 1}});
  std::vector<Plan> halving;
  for (int rank = 0; rank < 4; ++rank) halving.push_back(PlanAllReduce(Algorithm::kHalvingDoubling, rank, 4, kCount));
  EXPECT_EQ(BetweenHosts(locations, halving)[5].first, 2 * kCount);
}

// Levels of one member vanish.
TEST(PlanTest, HierarchiesOfOneLevelAreRings) {
  const auto ring = [](int rank) { return ToString(PlanAllReduce(Algorithm::kRing, rank, 4, 40)); };
  for (const auto& locations : {Spread({{1}, {1}, {1}, {1}}), Spread({{1, 1, 1, 1}})}) {
    const auto plans = HierarchicalPlans(locations, 40);
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(ToString(plans[static_cast<size_t>(rank)]), ring(rank));
  }
  const auto plans = HierarchicalPlans(Spread({{4}}), 40);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(ToString(plans[static_cast<size_t>(rank)]), ToString(PlanAllReduce(Algorithm::kDirect, rank, 4, 40)));
  }
}

TEST(PlanTest, ReduceScatter) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    for (const int64_t count : Counts(world)) {
      for (const PlanOptions& options : AllOptions()) {
        std::vector<Plan> plans;
        for (int rank = 0; rank < world; ++rank) plans.push_back(PlanReduceScatter(rank, world, count, options));
        PlanSimulator simulator(plans, std::vector<int64_t>(plans.size(), 0), false);
        ASSERT_EQ(simulator.Run(), "") << world << " " << count << " " << options.segment;
        for (int rank = 0; rank < world; ++rank) {
          const Range own = PartOf(count, world, rank);
          ASSERT_EQ(static_cast<int64_t>(simulator.output(rank).size()), own.size());
          for (int64_t i = 0; i < own.size(); ++i) {
            ASSERT_EQ(simulator.output(rank)[static_cast<size_t>(i)], (Element{own.begin + i, (1u << world) - 1}));
          }
        }
      }
    }
  }
}

TEST(PlanTest, AllGatherOfEqualAndUnequalParts) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    for (const int64_t count : Counts(world)) {
      for (const bool equal : {false, true}) {
        for (const PlanOptions& options : AllOptions()) {
          std::vector<int64_t> counts, first;
          int64_t total = 0;
          for (int rank = 0; rank < world; ++rank) {
            counts.push_back(equal ? count : (count * (rank + 1)) % 7);
            first.push_back(total);
            total += counts.back();
          }
          std::vector<Plan> plans;
          for (int rank = 0; rank < world; ++rank) plans.push_back(PlanAllGather(rank, counts, options));
          PlanSimulator simulator(plans, first, false);
          ASSERT_EQ(simulator.Run(), "") << world << " " << count << " " << options.segment;
          for (int rank = 0; rank < world; ++rank) {
            ASSERT_EQ(static_cast<int64_t>(simulator.output(rank).size()), total);
            for (int from = 0; from < world; ++from) {
              for (int64_t i = 0; i < counts[static_cast<size_t>(from)]; ++i) {
                const int64_t at = first[static_cast<size_t>(from)] + i;
                ASSERT_EQ(simulator.output(rank)[static_cast<size_t>(at)], (Element{at, 1u << from}));
              }
            }
          }
        }
      }
    }
  }
}

TEST(PlanTest, Broadcast) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    for (int root = 0; root < world; ++root) {
      for (const int64_t count : {0, 1, 5, 17}) {
        for (const PlanOptions& options : AllOptions()) {
          for (const bool in_place : {false, true}) {
            std::vector<Plan> plans;
            for (int rank = 0; rank < world; ++rank) {
              plans.push_back(PlanBroadcast(rank, world, root, count, options));
            }
            PlanSimulator simulator(plans, std::vector<int64_t>(plans.size(), 0), in_place);
            ASSERT_EQ(simulator.Run(), "") << world << " root " << root << " " << count << " " << options.segment;
            for (int rank = 0; rank < world; ++rank) {
              for (int64_t i = 0; i < count; ++i) {
                ASSERT_EQ(simulator.output(rank)[static_cast<size_t>(i)], (Element{i, 1u << root}));
              }
            }
          }
        }
      }
    }
  }
}

// Whoever passes a barrier knows of every member's first step.
TEST(PlanTest, ABarrierHearsOfEveryMember) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    std::vector<Plan> plans;
    for (int rank = 0; rank < world; ++rank) plans.push_back(PlanBarrier(rank, world));
    EXPECT_EQ(PlanSimulator(plans, std::vector<int64_t>(plans.size(), 0), false).Run(), "");
    // Who is heard of, round by round: all members take the same rounds.
    std::vector<uint32_t> heard;
    for (int rank = 0; rank < world; ++rank) heard.push_back(1u << rank);
    for (size_t step = 0; step < plans[0].steps.size(); step += 2) {
      const std::vector<uint32_t> before = heard;
      for (size_t rank = 0; rank < plans.size(); ++rank) {
        ASSERT_EQ(plans[rank].steps[step + 1].kind, StepKind::kReceive);
        heard[rank] |= before[static_cast<size_t>(plans[rank].steps[step + 1].peer)];
      }
    }
    for (const uint32_t members : heard) EXPECT_EQ(members, (1u << world) - 1);
  }
}

TEST(PlanTest, BytesAndRoundsAreThoseOfTheAlgorithm) {
  constexpr int64_t kCount = 840;  // divided by all worlds below
  for (const int world : {2, 3, 4, 5, 7, 8}) {
    for (int rank = 0; rank < world; ++rank) {
      for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kDirect}) {
        int64_t sent = 0;
        for (const PlanStep& step : PlanAllReduce(algorithm, rank, world, kCount).steps) {
          if (step.kind == StepKind::kSend) sent += step.count;
        }
        EXPECT_EQ(sent, 2 * (world - 1) * kCount / world) << AlgorithmName(algorithm) << " " << world;
      }
    }
  }
  for (const int world : {2, 4, 8}) {
    const auto steps = PlanAllReduce(Algorithm::kDoubling, 1, world, kCount).steps;
    EXPECT_EQ(steps.size(), 2 * std::log2(world));
    int64_t sent = 0;
    for (const PlanStep& step : PlanAllReduce(Algorithm::kHalvingDoubling, 1, world, kCount).steps) {
      if (step.kind == StepKind::kSend) sent += step.count;
    }
    EXPECT_EQ(sent, 2 * (world - 1) * kCount / world);
  }
}

TEST(PlanTest, PartsCoverTheWhole) {
  for (int parts = 1; parts <= 9; ++parts) {
    for (int64_t count = 0; count <= 30; ++count) {
      int64_t at = 0;
      for (int i = 0; i < parts; ++i) {
        const Range part = PartOf(count, parts, i);
        EXPECT_EQ(part.begin, at);
        EXPECT_LE(part.size() - count / parts, 1);
        EXPECT_GE(part.size(), count / parts);
        at = part.end;
      }
      EXPECT_EQ(at, count);
    }
  }
}

TEST(PlanTest, RefusesWhatMakesNoSense) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { PlanAllReduce(Algorithm::kRing, 3, 3, 1); }),
              HasSubstr("rank 3, world 3"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { PlanAllReduce(Algorithm::kRing, -1, 3, 1); }), HasSubstr("rank -1"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { PlanReduceScatter(0, 2, -4); }), HasSubstr("count -4"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { PlanBroadcast(0, 2, 2, 4); }), HasSubstr("rank 2, world 2"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { PlanAllGather(0, {1, -2}); }), HasSubstr("count -2"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { PlanAllGather(0, {}); }), HasSubstr("world 0"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                PlanAllReduce(Algorithm::kHierarchical, 0, 3, 1, {}, {{0, 0}, {0, 1}});
              }),
              HasSubstr("got 2"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                PlanAllReduce(Algorithm::kRing, 0, 3, 1, {0, false});
              }),
              HasSubstr("segment 0"));
}

// The simulator sees what it is there to see.
TEST(PlanSimulatorTest, FindsFaults) {
  const auto problem = [](auto spoil, bool in_place = true) {
    std::vector<Plan> plans;
    for (int rank = 0; rank < 3; ++rank) plans.push_back(PlanAllReduce(Algorithm::kRing, rank, 3, 6));
    spoil(plans);
    return PlanSimulator(plans, {0, 0, 0}, in_place).Run();
  };
  EXPECT_EQ(problem([](auto&) {}), "");
  EXPECT_THAT(problem([](auto& plans) { plans[1].steps.erase(plans[1].steps.begin()); }),
              HasSubstr("expects message 0"));
  EXPECT_THAT(problem([](auto& plans) { plans[1].steps.pop_back(); }), HasSubstr("is not received"));
  EXPECT_THAT(problem([](auto& plans) { plans[2].steps[0].count = 1; }), HasSubstr("of 1"));
  EXPECT_THAT(problem([](auto& plans) {
                std::rotate(plans[0].steps.begin(), plans[0].steps.begin() + 1, plans[0].steps.end());
              }),
              HasSubstr("rank"));
  EXPECT_THAT(problem([](auto& plans) { plans[0].steps[1].to.begin += 2; }), HasSubstr("rank"));
  EXPECT_THAT(problem([](auto& plans) { plans[0].steps[1].from.buffer = PlanBuffer::kScratch; }),
              HasSubstr("beyond its memory"));
  // Doubling writes its last sum where its first message may still be read.
  std::vector<Plan> plans;
  for (int rank = 0; rank < 2; ++rank) plans.push_back(PlanAllReduce(Algorithm::kDoubling, rank, 2, 6));
  EXPECT_THAT(PlanSimulator(plans, {0, 0}, true).Run(), HasSubstr("may not have read yet"));
}

}  // namespace
}  // namespace cohort::collective
