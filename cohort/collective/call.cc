#include "cohort/collective/call.h"

#include "cohort/collective/member_list.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {

const char* CallKindName(CallKind kind) {
  switch (kind) {
    case CallKind::kAllReduce: return "all-reduce";
    case CallKind::kBroadcast: return "broadcast";
    case CallKind::kAllGather: return "all-gather";
    case CallKind::kReduceScatter: return "reduce-scatter";
    case CallKind::kBarrier: return "barrier";
  }
  return "unknown collective";
}

std::string CallSignature::ToString() const {
  if (kind == CallKind::kBarrier) return CallKindName(kind);
  std::string text = CallKindName(kind);
  if (kind == CallKind::kAllReduce || kind == CallKind::kReduceScatter) text += StrCat(" ", ReduceOpName(op));
  text += StrCat(" of ", dtype, shape);
  if (kind == CallKind::kAllReduce) text += StrCat(" by ", AlgorithmName(algorithm));
  if (kind == CallKind::kBroadcast) text += StrCat(" from rank ", root);
  return text;
}

std::string DescribeCall(const std::string& name, const CallId& call, const CallSignature& signature) {
  return StrCat("'", name, "' (instance ", call.instance, ", round ", call.round, "), ", signature.ToString());
}

Status SignatureMismatch(const std::string& what, const std::string& who, const std::string& other,
                         const CallSignature& theirs) {
  return Status(Code::kInvalidArgument,
                StrCat("[collective] the members of a group bring different things to ", what, " at ", who, "; ", other,
                       " brings ", theirs.ToString(), ": build the same graph with the same shapes at every member"));
}

void EndCall(CollectiveCall& call, const MemberList& members, const Status& status, Tensor result) {
  const Communicator::Done done = std::move(call.done);
  call.input.Reset();
  if (status.ok()) return done(Status(), std::move(result));
  result.Reset();
  done(Status(status.code(), StrCat("[collective] ", DescribeCall(call.name, call.id, call.signature), " failed at ",
                                    members.DescribeRank(call.rank), ": ", status.message())),
       Tensor());
}

}  // namespace cohort::collective
