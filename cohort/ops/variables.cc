#include "cohort/ops/variables.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/broadcast_gradient.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/join.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/state.h"
#include "cohort/ops/variable_parts.h"

namespace cohort::ops {
namespace {

constexpr char kGlobalStep[] = "global_step";
// The collection of the nodes of AddLocalInitializer. Only the node of an element matters: it may have no outputs.
constexpr char kLocalInitializers[] = "local_initializers";

// The collection that holds the handles of a variable's parts.
std::string PartsOf(const NodeName& name) { return StrCat("parts of variable ", name); }

std::vector<int64_t> RowsOfParts(const std::vector<Variable>& parts) {
  std::vector<int64_t> rows;
  for (const Variable& part : parts) rows.push_back(part.shape().dim(0));
  return rows;
}

// Adds a node for each part that gets the part's rows of `value`. Returns a node, called `name`, that has run when all
// have.
template <typename Update>
Node* UpdateParts(const Variable& variable, const Operand& value, const NodeName& name, const Update& update) {
  const Output whole = value.In(variable.graph(), variable.dtype(), variable.name());
  Graph& graph = whole.graph();
  const CallSiteScope site(graph, name.site());
  const std::vector<Variable> parts = variable.parts();
  const std::vector<Output> values = SplitV(whole, RowsOfParts(parts), 0);
  std::vector<Node*> updates;
  for (size_t i = 0; i < parts.size(); ++i) updates.push_back(update(parts[i], values[i]));
  return Group(graph, updates, name);
}

VariableInfo* Create(Graph& graph, const VariableRequest& request, CallSite site) {
  const CallSiteScope scope(graph, site);
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

Node* RunInitializers(Graph& graph, bool local, const NodeName& name) {
  std::vector<Node*> initializers;
  for (const VariableInfo* variable : graph.variables()) {
    if (variable->local == local && variable->initializer != nullptr) initializers.push_back(variable->initializer);
  }
  if (local) {
    for (const Output& added : graph.collection(kLocalInitializers)) initializers.push_back(added.node);
  }
  return Group(graph, initializers, name);
}

}  // namespace

std::vector<Variable> PartsOf(const std::vector<Variable>& variables) {
  std::vector<Variable> all;
  for (const Variable& variable : variables) {
    const std::vector<Variable> parts = variable.parts();
    all.insert(all.end(), parts.begin(), parts.end());
    if (parts.empty()) all.push_back(variable);
  }
  return all;
}

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

Variable::Variable(Graph& graph, Output initial_value, const VariableOptions& options, CallSite site) {
  if (!initial_value.valid() || &initial_value.graph() != &graph) {
    throw InvalidArgumentError(StrCat("[ops/variables] expected an initial value of this graph for variable '",
                                      options.name, "'; got ", initial_value.valid() ? "another graph's" : "none"));
  }
  VariableRequest request =
      RequestFor(graph, graph.UniqueName(options.name), options, initial_value.dtype(), initial_value.shape());
  request.initial_value = [initial_value] { return initial_value; };
  info_ = Create(graph, request, site);
}

Variable::Variable(Graph& graph, const Tensor& initial_value, const VariableOptions& options, CallSite site)
    : Variable(graph, initial_value.shape(), initializers::Constant(initial_value),
               VariableOptions{options.name, options.trainable, options.local, initial_value.dtype()}, site) {}

Variable::Variable(Graph& graph, const Shape& shape, const Initializer& initializer, const VariableOptions& options,
                   CallSite site)
    : info_(Create(graph, InitializerRequestFor(graph, graph.UniqueName(options.name), shape, initializer, options),
                   site)) {}

void Variable::FailEmpty() {
  throw InvalidArgumentError(
      "[ops/variables] expected a variable; got an empty Variable, as Variable() is; make one with "
      "Variable(graph, initial value) or GetVariable");
}

Output Variable::handle() const {
  if (Get().handle.valid()) return Get().handle;
  throw FailedPreconditionError(StrCat("[ops/variables] expected a variable with a handle; got '", name(),
                                       "', which stands for ", parts().size(),
                                       " parts: take the handles of Variable::parts()"));
}

std::vector<Variable> Variable::parts() const {
  if (Get().handle.valid()) return {};
  std::vector<Variable> found;
  const std::vector<VariableInfo*> variables = graph().variables();
  for (const Output& handle : graph().collection(PartsOf(name()))) {
    for (VariableInfo* variable : variables) {
      if (variable->handle == handle) found.emplace_back(variable);
    }
  }
  return found;
}

Node* Variable::initializer() const {
  if (Get().handle.valid()) return Get().initializer;
  std::vector<Node*> initializers;
  for (const Variable& part : parts()) initializers.push_back(part.initializer());
  return Group(graph(), initializers, name() + "/Assign");
}

Output Variable::Read(const NodeName& name) const {
  if (Get().handle.valid()) return ReadVariableOp(handle(), name);
  const CallSiteScope site(graph(), name.site());
  std::vector<Output> values;
  for (const Variable& part : parts()) values.push_back(part.Read());
  return Concat(values, 0, name);
}

Output GatherFrom(const std::vector<Variable>& parts, Output indices, const PlacesInParts& places,
                  const NodeName& name) {
  Graph& graph = indices.graph();
  const CallSiteScope site(graph, name.site());
  const int count = static_cast<int>(parts.size());
  const Output numbers = Reshape(places.part, std::vector<int64_t>{-1});
  const Output flat = Reshape(places.row, std::vector<int64_t>{-1});
  const std::vector<Output> positions =
      DynamicPartition(Range(Const(graph, 0), Size(flat), Const(graph, 1)), numbers, count);
  const std::vector<Output> of_parts = DynamicPartition(flat, numbers, count);
  std::vector<Output> found;
  for (size_t i = 0; i < parts.size(); ++i) {
    found.push_back(parts[i].Gather(of_parts[i]));
    const std::string step = places.step == 1 ? "" : StrCat(places.step, " * ");
    found.back().node->SetAttr(kErrorNote,
                               StrCat("Row r of '", parts[i].name(), "', which is part ", i, " of a table, is row ",
                                      places.first[i], " + ", step, "r of the table."));
  }
  const Output merged = DynamicStitch(positions, found);
  const Shape& row = parts[0].shape();
  std::vector<Output> shape = {ShapeOf(indices)};
  const std::vector<int32_t> dims(row.dims().begin() + 1, row.dims().end());
  if (!dims.empty()) shape.push_back(Const(graph, dims));
  return Reshape(merged, shape.size() == 1 ? shape[0] : Concat(shape, 0), name);
}

Output GatherInOrder(const std::vector<Variable>& parts, Output indices, const NodeName& name) {
  const CallSiteScope site(indices.graph(), name.site());
  Output number = ScalarLike(indices, 0), first = number;
  std::vector<int64_t> begins = {0};
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const int64_t rows = parts[i].shape().dim(0);
    begins.push_back(begins.back() + rows);
    const Output end = ScalarLike(indices, static_cast<double>(begins.back()));
    const Output behind = Cast(GreaterEqual(indices, end), indices.dtype());
    number = Add(number, behind);
    first = Add(first, Mul(behind, ScalarLike(indices, static_cast<double>(rows))));
  }
  return GatherFrom(parts, indices, {Cast(number, DType::kInt32), Sub(indices, first), std::move(begins), 1}, name);
}

Output Variable::Gather(const Operand& indices, const NodeName& name) const {
  if (Get().handle.valid()) return ResourceGather(handle(), indices, name);
  return GatherInOrder(parts(), indices.In(graph(), DType::kInt64, this->name()), name);
}

Output Variable::GatherUnique(Output indices, const NodeName& name) const {
  if (indices.shape().rank() == 1) {
    const UniqueResult different = Unique(indices);
    return ops::Gather(Gather(different.y, name), different.idx);
  }
  const UniqueResult different = Unique(Reshape(indices, {-1}));
  return ops::Gather(Gather(different.y, name), ReshapeLike(different.idx, indices));
}

Node* Variable::Assign(const Operand& value, const NodeName& name) const {
  if (Get().handle.valid()) return AssignVariableOp(handle(), value, name);
  return UpdateParts(*this, value, name, [](const Variable& part, Output rows) { return part.Assign(rows); });
}

Node* Variable::AssignAdd(const Operand& value, const NodeName& name) const {
  if (Get().handle.valid()) return AssignAddVariableOp(handle(), value, name);
  return UpdateParts(*this, value, name, [](const Variable& part, Output rows) { return part.AssignAdd(rows); });
}

Node* Variable::AssignSub(const Operand& value, const NodeName& name) const {
  if (Get().handle.valid()) return AssignSubVariableOp(handle(), value, name);
  return UpdateParts(*this, value, name, [](const Variable& part, Output rows) { return part.AssignSub(rows); });
}

VariableInfo* MakeVariableOfParts(Graph& graph, const VariableRequest& request,
                                  const std::vector<VariableInfo*>& parts) {
  int64_t rows = 0;
  std::vector<std::string> shapes;
  bool fit = request.shape.rank() > 0 && !parts.empty();
  for (const VariableInfo* part : parts) {
    shapes.push_back(part->shape.ToString());
    fit = fit && part->dtype == request.dtype && part->shape.rank() == request.shape.rank() &&
          part->shape.Sub(1, part->shape.rank()) == request.shape.Sub(1, request.shape.rank());
    rows += fit ? part->shape.dim(0) : 0;
  }
  if (!fit || rows != request.shape.dim(0)) {
    throw InvalidArgumentError(StrCat("[ops/variables] expected parts that make up variable '", request.name, "' ",
                                      request.dtype, request.shape, " along axis 0; got ", StrJoin(shapes, ", ")));
  }
  const ControlDependencies none(graph, nullptr);
  const NameScope scope(graph, request.name + "/");
  std::vector<Output> values, initial_values;
  VariableInfo info;
  int64_t first_row = 0;
  for (VariableInfo* part : parts) {
    part->rows_of = {request.name, request.shape, first_row};
    first_row += part->shape.dim(0);
    graph.AddToCollection(PartsOf(request.name), part->handle);
    values.push_back(part->value);
    initial_values.push_back(part->initial_value);
    info.is_initialized =
        info.is_initialized.valid() ? LogicalAnd(info.is_initialized, part->is_initialized) : part->is_initialized;
  }
  info.name = request.name;
  info.dtype = request.dtype;
  info.shape = request.shape;
  info.value = Concat(values, 0);
  info.initial_value = Concat(initial_values, 0);
  info.trainable = false;
  info.local = true;
  return graph.AddVariable(std::move(info));
}

Variable GetVariable(Graph& graph, const std::string& name, const Shape& shape, DType dtype,
                     const Initializer& initializer, bool trainable, CallSite site) {
  const std::string full = graph.UniqueName(name);
  const size_t scope = full.size() - std::min(full.size(), name.size());
  if (full.substr(scope) != name || (scope > 0 && full[scope - 1] != '/')) {  // a number was added to make it unique
    throw AlreadyExistsError(StrCat("[ops/variables] expected a new name; got '", name,
                                    "', which the graph already has; give it another or keep the first Variable"));
  }
  VariableOptions options{name, trainable, false, dtype};
  Initializer chosen = initializer;
  if (!chosen) chosen = IsFloating(dtype) ? initializers::GlorotUniform() : initializers::Zeros();
  return Variable(Create(graph, InitializerRequestFor(graph, full, shape, chosen, options), site));
}

void AddLocalInitializer(Node* node) {
  if (node == nullptr) throw InvalidArgumentError("[ops/variables] expected a local initializer; got no node");
  node->graph().AddToCollection(kLocalInitializers, Output{node});
}

Node* GlobalVariablesInitializer(Graph& graph, const NodeName& name) { return RunInitializers(graph, false, name); }
Node* LocalVariablesInitializer(Graph& graph, const NodeName& name) { return RunInitializers(graph, true, name); }

Output ReportUninitializedVariables(Graph& graph, const NodeName& name) {
  std::vector<Output> initialized;
  std::vector<std::string> names;
  for (const VariableInfo* variable : graph.variables()) {
    initialized.push_back(variable->is_initialized);
    names.push_back(variable->name);
  }
  const NameScope scope(graph, name);
  const CallSiteScope site(graph, name.site());
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
  const Variable step(
      Create(graph, InitializerRequestFor(graph, kGlobalStep, Shape(), initializers::Zeros(), options), {}));
  graph.AddToCollection(kGlobalStep, step.value());
  return step;
}

}  // namespace cohort::ops
