// One rank of an all-reduce that is measured, and Gloo's as the peer (where its library was found when this was built).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace all_reduce {

// Ranks call the same things in the same order. Not thread-safe.
class Rank {
 public:
  virtual ~Rank() = default;
  // Vectors of so many floats; replaces those of an earlier call.
  virtual void Prepare(const std::vector<int64_t>& counts) = 0;
  // Valid until the next AllReduce of the same vector.
  virtual float* data(size_t vector) = 0;
  // Returns when all ranks have come.
  virtual void Barrier() = 0;
  // Replaces the vector by the sum of all ranks' ones; returns when this rank has it.
  virtual void AllReduce(size_t vector) = 0;
};

// "ring", "bcube" (gloo::allreduce), "ring_chunked", "halving_doubling" (of its older classes); none without Gloo.
std::vector<std::string> GlooAlgorithms();
// Over TCP on loopback. `store`: an empty folder that all ranks share.
std::unique_ptr<Rank> MakeGlooRank(const std::string& algorithm, int rank, int size, const std::string& store);

}  // namespace all_reduce
