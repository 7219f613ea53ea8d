// Replaces gloo_rank.cc if Gloo was not found.
#include <stdexcept>

#include "bench/peers/gloo_rank.h"

namespace all_reduce {

std::vector<std::string> GlooAlgorithms() { return {}; }

std::unique_ptr<Rank> MakeGlooRank(const std::string&, int, int, const std::string&) {
  throw std::runtime_error("built without Gloo: install libgloo-dev and configure again");
}

}  // namespace all_reduce
