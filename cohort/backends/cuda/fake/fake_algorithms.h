// FakeAlgorithms: the algorithms that the fakes of libraries offer. For tests only.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include "cohort/backends/cuda/libraries/algorithm.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {

// For each call there are three algorithms, 1 to 3, in the order of the heuristics. They give the same results, but
// need different workspaces, and different times on the clocks of the fake driver's streams. A fake owns it.
// Thread-safe.
class FakeAlgorithms {
 public:
  static constexpr uint64_t kCount = 3;

  // Algorithm n needs n times `workspace` bytes.
  explicit FakeAlgorithms(size_t workspace) : workspace_(workspace) {}

  std::vector<Algorithm> Candidates(size_t most) const {
    std::vector<Algorithm> candidates;
    for (uint64_t n = 1; n <= std::min<uint64_t>(none_ ? 0 : kCount, most); ++n) candidates.push_back(Make(n));
    return candidates;
  }
  std::optional<Algorithm> Check(const Algorithm& algorithm) const {
    const uint64_t n = algorithm.words[0];
    const bool takes = n >= 1 && n <= kCount && n != refused_ && algorithm.words == Make(n).words;
    return takes ? std::optional<Algorithm>(Make(n)) : std::nullopt;
  }
  // Counts a call with the algorithm. Returns how many microseconds it takes. Throws InternalError if the fake does not
  // know the algorithm, or if it is the one that fails, and the error that FailCall wants.
  double Use(const Algorithm& algorithm) {
    const uint64_t n = algorithm.words[0];
    if (n < 1 || n > kCount || algorithm.workspace != Make(n).workspace || n == failing_) {
      throw InternalError(StrCat("[fake library] expected an algorithm that works; got number ", n, " with ",
                                 algorithm.workspace, " bytes of workspace"));
    }
    if (until_failure_ > 0) --until_failure_;
    if (until_failure_ == 0 && failures_ > 0) {
      --failures_;
      ThrowError(code_, "[fake library] expected a call to succeed; got STATUS_OF_TEST");
    }
    ++calls_[n - 1];
    last_ = n;
    return microseconds_[n - 1];
  }

  // What a test may do, and see. `n` is a number of an algorithm.
  void SetMicroseconds(uint64_t n, double microseconds) { microseconds_[n - 1] = microseconds; }
  // Makes Check refuse algorithm n from now on. 0: none.
  void Refuse(uint64_t n) { refused_ = n; }
  // Makes the fake offer no algorithm for calls that are new, until it is called with false.
  void OfferNone(bool none) { none_ = none; }
  // Makes calls with algorithm n fail from now on. 0: none.
  void Fail(uint64_t n) { failing_ = n; }
  // Makes the n-th call from now on and the next ones, `calls` in all, fail at once with this code: kInternal,
  // kUnimplemented if the library does not support the call, or kResourceExhausted if it finds no memory. 1: the next.
  // Later calls work. kCount calls in a row are all algorithms of one call.
  void FailCall(int64_t n, Code code, int64_t calls = 1) {
    code_ = code;
    failures_ = calls;
    until_failure_ = n;
  }
  int64_t calls(uint64_t n) const { return calls_[n - 1]; }
  // Returns the algorithm of the last call.
  uint64_t last() const { return last_; }

 private:
  Algorithm Make(uint64_t n) const {
    Algorithm algorithm;
    algorithm.words[0] = n;
    algorithm.workspace = n * workspace_;
    return algorithm;
  }

  const size_t workspace_;
  std::array<std::atomic<double>, kCount> microseconds_{30, 10, 20};
  std::array<std::atomic<int64_t>, kCount> calls_{};
  std::atomic<uint64_t> last_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> failing_{0};
  std::atomic<bool> none_{false};
  std::atomic<Code> code_{Code::kInternal};
  std::atomic<int64_t> until_failure_{0};
  std::atomic<int64_t> failures_{0};
};

}  // namespace cohort::cuda
