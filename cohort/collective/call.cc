#include "cohort/collective/call.h"

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

std::string Signature::ToString() const {
  if (kind == CallKind::kBarrier) return CallKindName(kind);
  std::string text = CallKindName(kind);
  if (kind == CallKind::kAllReduce || kind == CallKind::kReduceScatter) text += StrCat(" ", ReduceOpName(op));
  text += StrCat(" of ", dtype, shape);
  if (kind == CallKind::kAllReduce) text += StrCat(" by ", AlgorithmName(algorithm));
  if (kind == CallKind::kBroadcast) text += StrCat(" from rank ", root);
  return text;
}

std::string DescribeCall(const std::string& name, const CallId& call, const Signature& signature) {
  return StrCat("'", name, "' (instance ", call.instance, ", round ", call.round, "), ", signature.ToString());
}

Status Disagreement(const std::string& what, const std::string& who, const std::string& other,
                    const Signature& theirs) {
  return Status(Code::kInvalidArgument,
                StrCat("[collective] the members of a group bring different things to ", what, " at ", who, "; ", other,
                       " brings ", theirs.ToString(), ": build the same graph with the same shapes at every member"));
}

}  // namespace cohort::collective
