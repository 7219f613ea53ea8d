// What hooks and estimators need to read and to show fetched values.
#pragma once

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/variables.h"
#include "cohort/runtime/session.h"

namespace cohort::train {

// Returns the graph's global step. Throws FailedPreconditionError, which names the hook, if there is none.
inline ops::Variable RequireGlobalStep(Graph& graph, const std::string& hook) {
  const auto step = ops::GetGlobalStep(graph);
  if (step) return *step;
  throw FailedPreconditionError(StrCat("[", hook, "] Global step should be created to use ", hook,
                                       ": call ops::GetOrCreateGlobalStep(graph) before the session is made"));
}

// Returns the number in a fetched global step, which is int32 or int64 [].
inline int64_t StepOf(const Tensor& value) {
  return value.dtype() == DType::kInt32 ? value.scalar<int32_t>() : value.scalar<int64_t>();
}

// Returns a value as log lines show it: a number with the fewest digits that are read back as the same number
// ("0.061832994"), any other value as Tensor::ToString.
inline std::string ValueText(const Tensor& value) {
  if (value.shape() == Shape{}) {
    switch (value.dtype()) {
      case DType::kFloat32: return ShortestText(value.scalar<float>());
      case DType::kFloat64: return ShortestText(value.scalar<double>());
      case DType::kInt32: return StrCat(value.scalar<int32_t>());
      case DType::kInt64: return StrCat(value.scalar<int64_t>());
      default: break;
    }
  }
  return value.ToString();
}

inline int64_t ReadStep(Session& session, const ops::Variable& step) { return StepOf(session.Run(step.value())); }

// Runs without a change of the global step after which a warning is logged.
inline constexpr int kStillRuns = 20;

}  // namespace cohort::train
