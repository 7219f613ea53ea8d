#include "cohort/ops/variables.h"

#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/join.h"
#include "cohort/ops/state.h"

namespace cohort::ops {
namespace {

constexpr char kGlobalStep[] = "global_step";

VariableInfo* Create(Graph& graph, const VariableRequest& request) {
  return graph.CreateVariable([&graph](const VariableRequest& final) { return MakeVariable(graph, final); }, request);
}

VariableRequest RequestFor(Graph& graph, std::string name, const VariableOptions& options, DType dtype, Shape shape) {
  VariableRequest request;
  request.name = std::move(name);
  request.dtype = dtype;
  request.shape = std::move(shape);
  request.trainable = options.trainable && !options.local;
  request.local = options.local;
  return request;
}

VariableRequest InitializerRequestFor(Graph& graph, const std::string& name, const Shape& shape,
                                      const Initializer& initializer, const VariableOptions& options) {
  const DType dtype = options.dtype == DType::kInvalid ? DType::kFloat32 : options.dtype;
  VariableRequest request = RequestFor(graph, name, options, dtype, shape);
  request.initial_value = [&graph, initializer, shape, dtype, name] {
    return initializer(InitializerRequest{graph, shape, dtype, name});
  };
  return request;
}

Node* RunInitializers(Graph& graph, bool local, const std::string& name) {
  std::vector<Node*> initializers;
  for (const VariableInfo* variable : graph.variables()) {
    if (variable->local == local && variable->initializer != nullptr) initializers.push_back(variable->initializer);
  }
  return Group(graph, initializers, name);
}

}  // namespace

VariableInfo* MakeVariable(Graph& graph, const VariableRequest& request) {
  VariableInfo info;
  info.name = request.name;
  info.trainable = request.trainable;
  info.local = request.local;
  const ControlDependencies none(graph, nullptr);  // a variable does not depend on where in a program it is made
  {
    const NameScope scope(graph, request.name + "/Initializer/");
    info.initial_value = request.initial_value();
  }
  if (info.initial_value.dtype() != request.dtype || !request.shape.IsCompatibleWith(info.initial_value.shape())) {
    throw InvalidArgumentError(StrCat("[ops/variables] expected an initial value ", request.dtype, request.shape,
                                      " for variable '", request.name, "'; got ", info.initial_value.dtype(),
                                      info.initial_value.shape(), " from ", info.initial_value.node->Describe()));
  }
  info.dtype = request.dtype;
  info.shape = request.shape.MergedWith(info.initial_value.shape());
  Node* handle = graph.Op("VarHandleOp")
                     .ExactName(request.name)
                     .Attr("dtype", info.dtype)
                     .Attr("shape", info.shape)
                     .Attr("shared_name", request.name)
                     .Finish();
  info.handle = handle->output(0);
  const ColocateWith beside(graph, *handle);
  info.is_initialized = graph.Op("VarIsInitializedOp")
                            .ExactName(request.name + "/IsInitialized/VarIsInitializedOp")
                            .Input(info.handle)
                            .Finish1();
  info.initializer = graph.Op("AssignVariableOp")
                         .ExactName(request.name + "/Assign")
                         .Input(info.handle)
                         .Input(info.initial_value)
                         .Finish();
  info.value = graph.Op("ReadVariableOp")
                   .ExactName(request.name + "/Read/ReadVariableOp")
                   .Input(info.handle)
                   .Attr("dtype", info.dtype)
                   .Finish1();
  return graph.AddVariable(std::move(info));
}

Variable::Variable(Graph& graph, Output initial_value, const VariableOptions& options) {
  if (!initial_value.valid() || &initial_value.graph() != &graph) {
    throw InvalidArgumentError(StrCat("[ops/variables] expected an initial value of this graph for variable '",
                                      options.name, "'; got ", initial_value.valid() ? "another graph's" : "none"));
  }
  VariableRequest request =
      RequestFor(graph, graph.UniqueName(options.name), options, initial_value.dtype(), initial_value.shape());
  request.initial_value = [initial_value] { return initial_value; };
  info_ = Create(graph, request);
}

Variable::Variable(Graph& graph, const Tensor& initial_value, const VariableOptions& options)
    : Variable(graph, initial_value.shape(), Constant(initial_value),
               VariableOptions{options.name, options.trainable, options.local, initial_value.dtype()}) {}

Variable::Variable(Graph& graph, const Shape& shape, const Initializer& initializer, const VariableOptions& options)
    : info_(Create(graph, InitializerRequestFor(graph, graph.UniqueName(options.name), shape, initializer, options))) {}

void Variable::FailEmpty() {
  throw InvalidArgumentError(
      "[ops/variables] expected a variable; got an empty Variable, as Variable() is; make one with "
      "Variable(graph, initial value) or GetVariable");
}

Output Variable::Read() const { return ReadVariableOp(handle(), "ReadVariableOp"); }
Output Variable::Gather(const Operand& indices) const { return ResourceGather(handle(), indices); }
Node* Variable::Assign(const Operand& value) const { return AssignVariableOp(handle(), value); }
Node* Variable::AssignAdd(const Operand& value) const { return AssignAddVariableOp(handle(), value); }
Node* Variable::AssignSub(const Operand& value) const { return AssignSubVariableOp(handle(), value); }

Variable GetVariable(Graph& graph, const std::string& name, const Shape& shape, DType dtype,
                     const Initializer& initializer, bool trainable) {
  const std::string full = graph.UniqueName(name);
  if (!full.ends_with(name)) {  // something was put after it to make it unique
    throw AlreadyExistsError(StrCat("[ops/variables] expected a new name; got '", name,
                                    "', which the graph already has; give it another or keep the first Variable"));
  }
  VariableOptions options{name, trainable, false, dtype};
  Initializer chosen = initializer;
  if (!chosen) chosen = IsFloating(dtype) ? GlorotUniform() : Zeros();
  return Variable(Create(graph, InitializerRequestFor(graph, full, shape, chosen, options)));
}

Node* GlobalVariablesInitializer(Graph& graph, const std::string& name) { return RunInitializers(graph, false, name); }
Node* LocalVariablesInitializer(Graph& graph, const std::string& name) { return RunInitializers(graph, true, name); }

Output ReportUninitializedVariables(Graph& graph, const std::string& name) {
  std::vector<Output> initialized;
  std::vector<std::string> names;
  for (const VariableInfo* variable : graph.variables()) {
    initialized.push_back(variable->is_initialized);
    names.push_back(variable->name);
  }
  const NameScope scope(graph, name);
  const Output all_names = Const(graph, names);
  if (initialized.empty()) return all_names;
  const Output missing = Where(LogicalNot(Pack(initialized)));
  return ops::Gather(all_names, Reshape(missing, std::vector<int64_t>{-1}));
}

std::optional<Variable> GetGlobalStep(Graph& graph) {
  for (VariableInfo* variable : graph.variables()) {
    if (variable->name == kGlobalStep) return Variable(variable);
  }
  return std::nullopt;
}

Variable GetOrCreateGlobalStep(Graph& graph) {
  if (const std::optional<Variable> found = GetGlobalStep(graph)) return *found;
  VariableOptions options{kGlobalStep, /*trainable=*/false, /*local=*/false, DType::kInt64};
  const Variable step(Create(graph, InitializerRequestFor(graph, kGlobalStep, Shape(), Zeros(), options)));
  graph.AddToCollection(kGlobalStep, step.value());
  return step;
}

}  // namespace cohort::ops
