#include "cohort/device/communicator.h"

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

}  // namespace cohort
