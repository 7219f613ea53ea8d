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
  int64_t round = 0;  // how many times this instance has been run before
  friend auto operator<=>(const CallId&, const CallId&) = default;
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

}  // namespace cohort::collective
