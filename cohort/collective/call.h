// What members have to agree on about one collective, and how it is told apart from others.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "cohort/collective/plan.h"
#include "cohort/core/dtype.h"
#include "cohort/core/shape.h"
#include "cohort/device/communicator.h"

namespace cohort::collective {

enum class CallKind : uint8_t { kAllReduce, kBroadcast, kAllGather, kReduceScatter, kBarrier };
// "all-reduce", ...
const char* CallKindName(CallKind kind);

// One execution of one collective.
struct CallId {
  int64_t instance = 0;
  int64_t round = 0;                                                // how many times this instance has been run before
  friend auto operator<=>(const CallId&, const CallId&) = default;  // NOLINT(modernize-use-nullptr)
};

struct Signature {
  CallKind kind = CallKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;            // of kAllReduce, kReduceScatter
  Algorithm algorithm = Algorithm::kRing;  // of kAllReduce
  int32_t root = 0;                        // of kBroadcast
  DType dtype = DType::kInvalid;
  Shape shape;  // what each member brings; may be partly unknown in a schedule

  friend bool operator==(const Signature&, const Signature&) = default;
  // "all-reduce SUM of float32[2,3] by RING".
  std::string ToString() const;
};

// "'w' (instance 3, round 7), all-reduce SUM of float32[4] by RING".
std::string DescribeCall(const std::string& name, const CallId& call, const Signature& signature);
// `what`, as `who` calls it, is `theirs` for `other`.
Status Disagreement(const std::string& what, const std::string& who, const std::string& other, const Signature& theirs);

// A collective that a member has begun. Thread-safe.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual std::string Describe() const = 0;
  // "waits for rank 2 (...), step 3 of 12", or "" when it has ended.
  virtual std::string DescribeWait() const = 0;
};

}  // namespace cohort::collective
