// Cases of queues and accumulators within one step. Elements are put in and taken out in an order that control
// dependencies fix.
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/ops/accumulators.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/queues.h"
#include "cohort/ops/step_clock.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

// A case of an op, or of a dtype, that TensorFlow does not have.
OpCase Local(const std::string& op, const std::string& label, std::vector<Tensor> inputs, OpCase::Build build) {
  OpCase made{op, label, std::move(inputs), std::move(build)};
  made.compare_values = false;
  return made;
}

// Makes a queue, puts the rows of in[0] and in[1] into it, and then calls `then`.
template <typename Then>
OpCase::Build WithQueue(Then then) {
  return [then](Graph& graph, const Outputs& in) {
    const ops::FIFOQueue queue(graph, {DType::kFloat64, DType::kString}, {.shapes = {Shape{2}, Shape{}}});
    Node* put = queue.EnqueueMany({in[0], in[1]});
    const ControlDependencies after(graph, {put});
    return then(graph, queue);
  };
}

void AddQueueCases(std::vector<OpCase>& cases) {
  const std::vector<Tensor> rows = {Ramp({3, 2}), Tensor::Vector(std::vector<std::string>{"a", "", "ccc"})};
  const auto add = [&](const std::string& op, const std::string& label, OpCase::Build build) {
    cases.push_back({op, label, rows, std::move(build)});
    cases.back().compare_values = op != "QueueReset" && op != "QueueFailSession";
  };
  const auto one = [](Graph&, const ops::Queue& queue) { return queue.Dequeue(); };
  add("FIFOQueueV2", "one", WithQueue(one));
  add("QueueEnqueueManyV2", "one", WithQueue(one));
  add("QueueDequeueV2", "one", WithQueue(one));
  add("QueueDequeueManyV2", "two", WithQueue([](Graph&, const ops::Queue& queue) { return queue.DequeueMany(2); }));
  add("QueueDequeueManyV2", "none", WithQueue([](Graph&, const ops::Queue& queue) { return queue.DequeueMany(0); }));
  add("QueueDequeueUpToV2", "closed", WithQueue([](Graph& graph, const ops::Queue& queue) {
        const ControlDependencies after(graph, {queue.Close()});
        return queue.DequeueUpTo(5);
      }));
  add("QueueSizeV2", "three", WithQueue([](Graph&, const ops::Queue& queue) { return Outputs{queue.Size()}; }));
  add("QueueCloseV2", "closed", WithQueue([](Graph& graph, const ops::Queue& queue) {
        const ControlDependencies after(graph, {queue.Close(true)});
        return Outputs{queue.IsClosed()};
      }));
  add("QueueIsClosedV2", "open", WithQueue([](Graph&, const ops::Queue& queue) { return Outputs{queue.IsClosed()}; }));
  add("QueueReset", "empty", WithQueue([](Graph& graph, const ops::Queue& queue) {
        const ControlDependencies after(graph, {queue.Reset()});
        return Outputs{queue.Size()};
      }));
  add("QueueFailSession", "size", WithQueue([](Graph& graph, const ops::Queue& queue) {
        Node* fail = queue.FailSession(static_cast<int>(Code::kInternal), ops::Const(graph, "a test"));
        const ControlDependencies after(graph, {fail});
        return Outputs{queue.Size()};
      }));
  cases.push_back({"QueueEnqueueV2", "any_shape", {Ramp({3, 2})}, [](Graph& graph, const Outputs& in) {
                     const ops::FIFOQueue queue(graph, {DType::kFloat64});
                     const ControlDependencies after(graph, {queue.Enqueue({in[0]})});
                     return queue.Dequeue();
                   }});
  cases.push_back({"RandomShuffleQueueV2", "seeds", {Ramp({8})}, [](Graph& graph, const Outputs& in) {
                     const ops::RandomShuffleQueue queue(graph, 2, {DType::kFloat64}, {.shapes = {Shape{}}}, 7);
                     const ControlDependencies after(graph, {queue.EnqueueMany({in[0]})});
                     return queue.DequeueMany(6);
                   }});
}

// The older, named accumulator, for which ops/ has no function.
struct NamedAccumulator {
  NamedAccumulator(Graph& graph, const Shape& shape)
      : graph(graph),
        handle(graph.Op("ConditionalAccumulator").Attr("dtype", DType::kFloat64).Attr("shape", shape).Finish1()) {}
  Node* Apply(Output gradient, int64_t step) const {
    return graph.Op("AccumulatorApplyGradient")
        .Input(handle)
        .Input(ops::Const(graph, Tensor::Scalar(step)))
        .Input(gradient)
        .Finish();
  }
  Output Take() const {
    return graph.Op("AccumulatorTakeGradient")
        .Input(handle)
        .Input(ops::Const(graph, 1))
        .Attr("dtype", DType::kFloat64)
        .Finish1();
  }
  Graph& graph;
  Output handle;
};

void AddNamedAccumulatorCases(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& op, OpCase::Build build) {
    cases.push_back({op, "two", {Ramp({3, 2}), Ramp({3, 2}, 4, 5)}, std::move(build)});
    cases.back().compare_values = op != "AccumulatorNumStale";
  };
  for (const char* op : {"ConditionalAccumulator", "AccumulatorApplyGradient", "AccumulatorTakeGradient"}) {
    add(op, [](Graph& graph, const Outputs& in) {
      const NamedAccumulator mean(graph, Shape{3, 2});
      const ControlDependencies after(graph, {mean.Apply(in[0], 0), mean.Apply(in[1], 0)});
      return Outputs{mean.Take()};
    });
  }
  add("AccumulatorNumAccumulated", [](Graph& graph, const Outputs& in) {
    const NamedAccumulator mean(graph, Shape::UnknownRank());
    const ControlDependencies after(graph, {mean.Apply(in[0], 0), mean.Apply(in[1], 0)});
    return Outputs{graph.Op("AccumulatorNumAccumulated").Input(mean.handle).Finish1()};
  });
  for (const char* op : {"AccumulatorSetGlobalStep", "AccumulatorNumStale"}) {
    add(op, [op](Graph& graph, const Outputs& in) {
      const NamedAccumulator mean(graph, Shape{3, 2});
      Node* set = graph.Op("AccumulatorSetGlobalStep")
                      .Input(mean.handle)
                      .Input(ops::Const(graph, Tensor::Scalar(int64_t{1})))
                      .Finish();
      const ControlDependencies then(graph, {set});
      const ControlDependencies after(graph, {mean.Apply(in[0], 0), mean.Apply(in[1], 1)});
      const bool counts_stale = op == std::string("AccumulatorNumStale");
      return Outputs{graph.Op(counts_stale ? op : "AccumulatorNumAccumulated").Input(mean.handle).Finish1()};
    });
  }
}

void AddAccumulatorCases(std::vector<OpCase>& cases) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16}) {
    const std::string label(DTypeName(dtype));
    const std::vector<Tensor> values = {AsType(Ramp({3, 2}), dtype), AsType(Ramp({3, 2}, 4, 5), dtype)};
    for (const char* op :
         {"ResourceConditionalAccumulator", "ResourceAccumulatorApplyGradient", "ResourceAccumulatorTakeGradient",
          "ResourceAccumulatorNumAccumulated", "ResourceAccumulatorSetGlobalStep"}) {
      cases.push_back({op, label, values, [dtype](Graph& graph, const Outputs& in) {
                         const ops::ConditionalAccumulator mean(graph, dtype, Shape{3, 2});
                         const ControlDependencies then(graph, {mean.SetGlobalStep(int64_t{2})});
                         const ControlDependencies after(
                             graph, {mean.ApplyGrad(in[0], int64_t{2}), mean.ApplyGrad(in[1], int64_t{3})});
                         const Output count = mean.NumAccumulated();
                         const ControlDependencies counted(graph, {count.node});
                         return Outputs{mean.TakeGrad(2), count};
                       }});
      cases.back().compare_values = dtype != DType::kBfloat16;  // TensorFlow has no kernel
    }
    for (const char* op :
         {"SparseConditionalAccumulator", "SparseAccumulatorApplyGradient", "SparseAccumulatorTakeGradient"}) {
      std::vector<Tensor> rows = values;
      rows.push_back(Tensor::Vector<int64_t>({0, 2, 4}));
      rows.push_back(Tensor::Vector<int64_t>({1, 2, 3}));
      cases.push_back({op, label, rows, [dtype](Graph& graph, const Outputs& in) {
                         const ops::SparseConditionalAccumulator mean(graph, dtype, Shape{5, 2});
                         const Output shape = ops::Const(graph, std::vector<int64_t>{5, 2});
                         Node* first = mean.ApplyIndexedSlicesGrad(Gradient(in[0], in[2], shape), int64_t{0});
                         Node* second = mean.ApplyIndexedSlicesGrad(Gradient(in[1], in[3], shape), int64_t{0});
                         const ControlDependencies after(graph, {first, second});
                         const Gradient taken = mean.TakeIndexedSlicesGrad(2);
                         return Outputs{taken.indices, taken.values, taken.dense_shape};
                       }});
      cases.back().compare_values = dtype != DType::kBfloat16;  // TensorFlow has no kernel
    }
  }
}

void AddStepClockCases(std::vector<OpCase>& cases) {
  for (const char* op : {"StepClock", "StepClockJoin", "StepClockTick", "StepClockTakeStaleness"}) {
    const Tensor staleness = Tensor::Scalar(int64_t{3});
    cases.push_back(Local(op, "one", {staleness}, [](Graph& graph, const Outputs& in) {
      const Output clock = ops::StepClock(graph);
      const ControlDependencies joined(graph, {ops::StepClockJoin(clock)});
      const ControlDependencies after(graph, {ops::StepClockTick(clock, in[0], 1)});
      return Outputs{ops::StepClockTakeStaleness(clock)};
    }));
  }
}

void AddChiefRecordCases(std::vector<OpCase>& cases) {
  for (const char* op : {"ChiefRecord", "ChiefRecordHold", "ChiefRecordRead"}) {
    cases.push_back(Local(op, "one", {Tensor::Scalar(std::string("task")), Tensor::Scalar(std::string("model"))},
                          [](Graph& graph, const Outputs& in) {
                            const Output record = ops::ChiefRecord(graph);
                            const ControlDependencies held(graph, {ops::ChiefRecordHold(record, in[0], in[1])});
                            const ops::ChiefRecordText text = ops::ChiefRecordRead(record);
                            return Outputs{text.holder, text.description};
                          }));
  }
}

}  // namespace

void AddDataFlowCases(std::vector<OpCase>& cases) {
  AddQueueCases(cases);
  AddNamedAccumulatorCases(cases);
  AddAccumulatorCases(cases);
  AddStepClockCases(cases);
  AddChiefRecordCases(cases);
}

}  // namespace cohort::testing
