#include "cohort/collective/plan/all_reduce.h"

#include "cohort/collective/plan/plan_builder.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

struct PlanAlgorithm {
  Algorithm algorithm;
  void (*append)(PlanBuilder& plan, const AllReduceTask& task);
  bool (*suits)(const AllReduceFacts& facts);
};

// In the order in which AUTO calls the functions Suits.
constexpr PlanAlgorithm kPlanAlgorithms[] = {
#define COHORT_PLAN_ROW(enumerator, number, name, functions) \
  {Algorithm::enumerator, Append##functions, Suits##functions},
#define COHORT_IGNORE(...)
    COHORT_COLLECTIVE_ALGORITHMS(COHORT_PLAN_ROW, COHORT_IGNORE)
#undef COHORT_PLAN_ROW
#undef COHORT_IGNORE
};

}  // namespace

Plan PlanAllReduce(Algorithm algorithm, int rank, int world, int64_t count, const PlanOptions& options,
                   const std::vector<Location>& locations) {
  CheckPlanArguments(rank, world, count, options);
  PlanBuilder plan(count, count, options);
  if (world == 1) {
    plan.Copy({PlanBuffer::kInput, 0}, {PlanBuffer::kOutput, 0}, count);
    return plan.Take();
  }
  for (const PlanAlgorithm& one : kPlanAlgorithms) {
    if (one.algorithm != algorithm) continue;
    one.append(plan, {rank, world, count, locations});
    return plan.Take();
  }
  throw InternalError(StrCat("[collective] there is no plan of the algorithm ", AlgorithmName(algorithm)));
}

Algorithm ChooseAllReduce(DType dtype, int64_t bytes, const std::vector<Location>& locations) {
  const AllReduceFacts facts = {dtype, bytes, locations.size(), {locations.begin(), locations.end()}};
  for (const PlanAlgorithm& one : kPlanAlgorithms) {
    if (one.suits(facts)) return one.algorithm;
  }
  return Algorithm::kRing;
}

}  // namespace cohort::collective
