#include "cohort/device/communicator.h"

#include "cohort/core/str_cat.h"

namespace cohort {

const char* ReduceOpName(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return "SUM";
    case ReduceOp::kProduct: return "PROD";
    case ReduceOp::kMin: return "MIN";
    case ReduceOp::kMax: return "MAX";
    case ReduceOp::kMean: return "MEAN";
  }
  return "UNKNOWN";
}

std::string CommunicatorName(int64_t group_key, const std::string& device) { return StrCat(group_key, "@", device); }

}  // namespace cohort
