// Cases of iterators and optionals within one step. data/graph_iterator_test.cc tests them over many steps.
#include <string>
#include <utility>

#include "cohort/data/graph_iterator.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

// A case whose graph has an iterator. `next` adds nodes that run after the iterator was initialized. TensorFlow cannot
// run it, because datasets of ours have an op of their own.
OpCase WithIterator(std::string op, Outputs (*next)(const data::GraphIterator&)) {
  const auto build = [next](Graph& graph, const Outputs&) {
    const Tensor numbers = Tensor::Vector<float>({1, 2, 3, 4, 5});
    const data::GraphIterator iterator =
        data::MakeGraphIterator(graph, data::Dataset::FromTensorSlices({numbers, numbers}).Batch(3));
    const ControlDependencies after(graph, {iterator.initializer()});
    return next(iterator);
  };
  OpCase made = {std::move(op), "batch", {}, build};
  made.compare_values = false;
  return made;
}

Outputs Next(const data::GraphIterator& iterator) { return iterator.GetNext(); }
Outputs NextAsOptional(const data::GraphIterator& iterator) {
  const data::GraphOptional next = iterator.GetNextAsOptional();
  Outputs outputs = next.GetValue();
  outputs.push_back(next.HasValue());
  return outputs;
}

}  // namespace

void AddDatasetCases(std::vector<OpCase>& cases) {
  for (const char* op : {"DatasetFromDescription", "IteratorV2", "MakeIterator", "IteratorGetNext"}) {
    cases.push_back(WithIterator(op, Next));
  }
  cases.push_back(WithIterator("IteratorGetNextAsOptional", NextAsOptional));
  const std::vector<Tensor> values = {AsType(Ramp({2, 3}), DType::kFloat32),
                                      Tensor::Vector(std::vector<std::string>{"x", "", "yz"})};
  for (const char* op : {"OptionalFromValue", "OptionalGetValue"}) {
    cases.push_back(
        {op, "two", values, [](Graph&, const Outputs& in) { return data::OptionalFromValue(in).GetValue(); }});
  }
  cases.push_back({"OptionalHasValue", "yes", values,
                   [](Graph&, const Outputs& in) { return Outputs{data::OptionalFromValue(in).HasValue()}; }});
  cases.push_back({"OptionalNone", "no", {}, [](Graph& graph, const Outputs&) {
                     return Outputs{data::OptionalNone(graph, {{DType::kFloat32, Shape()}}).HasValue()};
                   }});
}

}  // namespace cohort::testing
