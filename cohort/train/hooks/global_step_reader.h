// What several hooks need to read the global step.
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

inline int64_t ReadStep(Session& session, const ops::Variable& step) { return StepOf(session.Run(step.value())); }

// Runs without a change of the global step after which a warning is logged.
inline constexpr int kStillRuns = 20;

}  // namespace cohort::train
