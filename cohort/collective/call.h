// The facts about one collective that its members have to agree on, and the call by which one member takes part in it.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/collective/algorithm.h"
#include "cohort/core/dtype.h"
#include "cohort/core/shape.h"
#include "cohort/device/communicator.h"
#include "cohort/device/stream.h"

namespace cohort::collective {

class MemberList;

// The kinds of collectives.
enum class CallKind : uint8_t { kAllReduce, kBroadcast, kAllGather, kReduceScatter, kBarrier };
// Returns "all-reduce", "broadcast", ...
const char* CallKindName(CallKind kind);

// Names one execution of one collective.
struct CallId {
  int64_t instance = 0;
  int64_t round = 0;                                                // how often this instance was run before
  friend auto operator<=>(const CallId&, const CallId&) = default;  // NOLINT(modernize-use-nullptr)
};

// Describes a collective. All members have to call it with equal signatures.
struct CallSignature {
  CallKind kind = CallKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;            // only for kAllReduce and kReduceScatter
  Algorithm algorithm = Algorithm::kRing;  // only for kAllReduce
  int32_t root = 0;                        // only for kBroadcast: the rank of the root
  DType dtype = DType::kInvalid;
  Shape shape;  // of each member's input; in a schedule it may be partly unknown

  friend bool operator==(const CallSignature&, const CallSignature&) = default;
  // Returns "all-reduce SUM of float32[2,3] by RING".
  std::string ToString() const;
};

// Returns "'w' (instance 3, round 7), all-reduce SUM of float32[4] by RING".
std::string DescribeCall(const std::string& name, const CallId& call, const CallSignature& signature);
// Returns the InvalidArgumentError for a collective that two members call with different signatures. `what` describes
// the collective as the member `who` calls it. The member `other` calls it with the signature `theirs`.
Status SignatureMismatch(const std::string& what, const std::string& who, const std::string& other,
                         const CallSignature& theirs);

// One member's part in one execution of a collective: its input, and how it gets the result. From
// CollectiveEngine::Begin on, the engine that runs the collective owns it. The engine ends it with EndCall.
struct CollectiveCall {
  std::string name;
  CallId id;
  int rank = -1;
  CallSignature signature;
  Tensor input;  // undefined for a barrier
  Shape output_shape;
  Communicator::Done done;
  uint64_t schedule_fingerprint = 0;  // of the step's schedule; 0: the call is not part of a graph
  Device* device = nullptr;           // in whose memory the input may lie; null: it lies in host memory
  // For a SharedEngine whose members bring inputs in device memory; see DevicePart.
  Tensor output;
  std::shared_ptr<StreamEvent> ready;

  bool in_device_memory() const { return device != nullptr && input.defined() && !input.space().is_host(); }
};

// Ends the call: releases the input and calls `done`. `done` gets `result` if `status` is ok. Otherwise it gets an
// error that names the call and the member.
void EndCall(CollectiveCall& call, const MemberList& members, const Status& status, Tensor result);

// A collective that at least one member of the group has begun, and that may not have ended. The watchdog observes it.
// Thread-safe.
class UnfinishedCollective {
 public:
  virtual ~UnfinishedCollective() = default;
  // Returns a text that says which collective it is: that of DescribeCall, or only the instance and the round if the
  // signature is not known yet.
  virtual std::string Describe() const = 0;
  // Returns "waits for rank 2 (...) at step 3 of 12", or "" if there is nothing to report: the collective has ended, or
  // has not begun at this member, or has all messages that it needs.
  virtual std::string DescribeWait() const = 0;
  // Returns the name of the collective: that of the node that runs it, or "" if it is not known yet.
  virtual std::string name() const = 0;
  // Returns a number that changes when the collective makes progress: a member has begun it, or a message has come.
  // Returns nullopt if the collective needs no limit without progress, because its engine has one now.
  virtual std::optional<uint64_t> Stamp() const = 0;
  // Returns the ranks of the members that it waits for.
  virtual std::vector<int> AwaitedRanks() const = 0;
};

}  // namespace cohort::collective
