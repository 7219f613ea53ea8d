// The interface of one rank of an all-reduce that is measured, and its implementation with Gloo as the peer (if the
// library was found when this was built).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace all_reduce {

// All ranks make the same calls in the same order. Not thread-safe.
class Rank {
 public:
  virtual ~Rank() = default;
  // Makes vectors of so many floats. They replace those of an earlier call.
  virtual void Prepare(const std::vector<int64_t>& counts) = 0;
  // Returns the elements. Valid until the next AllReduce of the same vector.
  virtual float* data(size_t vector) = 0;
  // Returns when all ranks have called it.
  virtual void Barrier() = 0;
  // Replaces the vector by the sum of the vectors of all ranks. Returns when this rank has the sum.
  virtual void AllReduce(size_t vector) = 0;
};

// Returns "ring", "bcube" (gloo::allreduce), "ring_chunked", "halving_doubling" (Gloo's older classes), or an empty
// list without Gloo.
std::vector<std::string> GlooAlgorithms();
// Makes a rank that uses Gloo over TCP on loopback. `store` is an empty folder that all ranks share.
std::unique_ptr<Rank> MakeGlooRank(const std::string& algorithm, int rank, int size, const std::string& store);

}  // namespace all_reduce
