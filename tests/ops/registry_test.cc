// What every op must have. Each test names all ops that lack it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/graph/op_def.h"
#include "tests/ops/interpreter.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using ::testing::IsEmpty;

// Names of ops for which `lacks` holds. Those that begin with "_" are parts of the runtime.
template <typename Lacks>
std::vector<std::string> Offenders(const Lacks& lacks) {
  std::vector<std::string> names;
  for (const OpDef* op : OpRegistry::Global().All()) {
    if (op->name()[0] != '_' && lacks(*op)) names.push_back(op->name());
  }
  return names;
}

// Ops in the graphs of the cases that are about them.
const std::set<std::string>& OpsWithCases(bool differentiable) {
  static const auto* const sets = [] {
    auto* made = new std::array<std::set<std::string>, 2>;
    for (const OpCase& op_case : AllOpCases()) {
      const CaseGraph graph(op_case, false);
      for (const Node* node : graph.graph.nodes()) {
        if (node->op_name() != op_case.op) continue;
        (*made)[0].insert(op_case.op);
        if (!op_case.differentiable.empty()) (*made)[1].insert(op_case.op);
      }
    }
    return made;
  }();
  return (*sets)[differentiable ? 1 : 0];
}

TEST(RegistryTest, EveryOpIsDocumented) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return op.doc().empty(); }), IsEmpty());
}

TEST(RegistryTest, EveryOpHasAShapeRule) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return !op.shape_fn(); }), IsEmpty());
}

TEST(RegistryTest, EveryOpHasAGradientOrSaysWhyNot) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return !op.gradient_fn() && op.not_differentiable_reason().empty(); }),
              IsEmpty());
}

TEST(RegistryTest, EveryOpHasACpuKernel) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return !KernelRegistry::Global().Has(op.name(), "CPU"); }), IsEmpty());
}

TEST(RegistryTest, EveryKernelBelongsToAnOp) {
  std::vector<std::string> strangers;
  for (const std::string& op : KernelRegistry::Global().OpsOn("CPU")) {
    if (OpRegistry::Global().Find(op) == nullptr) strangers.push_back(op);
  }
  EXPECT_THAT(strangers, IsEmpty());
}

TEST(RegistryTest, EveryOpHasACase) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return !OpsWithCases(false).contains(op.name()); }), IsEmpty());
}

TEST(RegistryTest, EveryGradientIsCheckedNumerically) {
  EXPECT_THAT(Offenders([](const OpDef& op) { return op.gradient_fn() && !OpsWithCases(true).contains(op.name()); }),
              IsEmpty());
}

TEST(RegistryTest, CasesHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  std::vector<std::string> repeated;
  for (const OpCase& op_case : AllOpCases()) {
    if (!names.insert(CaseName(op_case)).second) repeated.push_back(CaseName(op_case));
  }
  EXPECT_THAT(repeated, IsEmpty());
}

}  // namespace
}  // namespace cohort::testing
