// Clicks of made-up users on made-up films, as files of text, and the dataset that reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/cohort.h"

namespace examples {

inline constexpr int64_t kWatched = 5;             // the length of the list of films that a user has seen
inline constexpr int64_t kClicksOfAFile = 10'000;  // lines after the first one

// The columns of a file: user (a number), city, item (a film), watched_1 to watched_5 (films, or nothing), age, and
// clicked (0 or 1), with a line of these names at the beginning.
struct ClickFiles {
  std::vector<std::string> train;
  std::string test;
};

// Returns the paths of the files in `folder`. If `writes`, makes those that are not there: each user likes one kind of
// film, has mostly seen films of that kind, and clicks on them more often. The same numbers are drawn in every run.
ClickFiles MakeClicks(const std::string& folder, bool writes);

// All films, for example to rank them for a user.
std::vector<std::string> Films();

// The elements are the clicks: user [1], city [1], item [1], watched [kWatched], age [1] and clicked [1]. All stages
// are functions of graphs, so that the dataset can be sent to the workers of a cluster.
cohort::data::Dataset ReadClicks(const std::vector<std::string>& files);

}  // namespace examples
