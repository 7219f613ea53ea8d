// Tests the shapes that an op's rule gives when the node runs. A device with streams allocates the outputs of a kernel
// before the kernel runs, in these shapes. Every case of the table is run with known and with unknown dimensions. The
// rule has to know the shapes that the kernel makes, or the op has to have the trait data_dependent_shape.
#include "cohort/device/output_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "cohort/core/str_cat.h"
#include "tests/ops/interpreter.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using ::testing::IsEmpty;

class ShapeObserver final : public Interpreter::Observer {
 public:
  void Before(const KernelContext& ctx) override {
    shapes_.clear();
    // A host kernel allocates its outputs itself.
    own_ = KernelRegistry::Global().MemoryOf(ctx.node().op_name(), kHostDeviceType) == KernelMemory::kDevice;
    if (!own_) return;
    try {
      shapes_ = OutputShapes(ctx);
    } catch (const Error& error) {
      wrong_.insert(StrCat(ctx.node().op_name(), ": ", error.what()));
    }
  }

  void After(const KernelContext& ctx, std::span<const Tensor> outputs) override {
    const OpDef& op = ctx.node().op();
    for (size_t i = 0; own_ && i < shapes_.size(); ++i) {
      // A kernel makes values in host memory when it is called. PlaceholderWithDefault forwards its input, whose shape
      // may differ from that of its default.
      const bool at_once = ctx.node().output_arg(static_cast<int>(i)).host_memory;
      if (at_once || op.name() == "PlaceholderWithDefault") continue;
      if (!shapes_[i].IsFullyDefined()) {
        (op.has_data_dependent_shape() ? unknown_ : lacking_).insert(op.name());
      } else if (shapes_[i] != outputs[i].shape()) {
        wrong_.insert(StrCat(op.name(), ": output ", i, ": rule ", shapes_[i], ", kernel ", outputs[i].shape()));
      }
    }
  }

  const std::set<std::string>& lacking() const { return lacking_; }
  const std::set<std::string>& unknown() const { return unknown_; }
  const std::set<std::string>& wrong() const { return wrong_; }

 private:
  bool own_ = false;
  std::vector<Shape> shapes_;
  std::set<std::string> lacking_;  // ops whose rule knows too little and that lack the trait
  std::set<std::string> unknown_;  // ops that have the trait
  std::set<std::string> wrong_;
};

TEST(OutputShapesTest, RulesKnowTheShapesOrTheOpSaysThatTheyDependOnData) {
  ShapeObserver observer;
  for (const OpCase& op_case : AllOpCases()) {
    for (const bool unknown : {false, true}) {
      if (unknown && op_case.known_shapes_only) continue;
      const CaseGraph graph(op_case, unknown);
      Interpreter interpreter(2);
      interpreter.set_observer(observer);
      Interpreter::Feeds feeds;
      for (size_t i = 0; i < op_case.inputs.size(); ++i) feeds.emplace_back(graph.inputs[i], op_case.inputs[i]);
      interpreter.Run(graph.outputs, feeds);
    }
  }
  EXPECT_THAT(observer.lacking(), IsEmpty()) << "these need DataDependentShape(), or a rule that knows more";
  EXPECT_THAT(observer.wrong(), IsEmpty());
  std::vector<std::string> needless;
  for (const OpDef* op : OpRegistry::Global().All()) {
    if (op->has_data_dependent_shape() && !observer.unknown().contains(op->name())) needless.push_back(op->name());
  }
  EXPECT_THAT(needless, IsEmpty()) << "these have DataDependentShape(), but their rules always know the shapes";
}

}  // namespace
}  // namespace cohort::testing
