#include "cohort/ops/partitioned_variables.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/variable_parts.h"

namespace cohort::ops {

int64_t NumberOfParts(const Partitioner& partitioner, const VariableRequest& request) {
  if (partitioner == nullptr || request.cut_is_decided || request.shape.rank() < 1 || !request.shape.IsFullyDefined())
    return 1;
  const std::vector<int64_t> parts = partitioner(request.shape, request.dtype);
  bool fits = parts.size() == static_cast<size_t>(request.shape.rank()) && parts[0] >= 1;
  for (size_t axis = 1; axis < parts.size(); ++axis) fits = fits && parts[axis] == 1;
  if (!fits) {
    throw InvalidArgumentError(
        StrCat("[ops/variables] expected a partitioner that cuts axis 0 alone, and so returns a number and then ",
               "ones, for variable '", request.name, "' ", request.shape, "; got [", StrJoin(parts, ","), "]"));
  }
  if (parts[0] > std::max<int64_t>(1, request.shape.dim(0))) {
    throw InvalidArgumentError(StrCat("[ops/variables] expected at most as many parts as rows for variable '",
                                      request.name, "' ", request.shape, "; the partitioner wants ", parts[0],
                                      " parts"));
  }
  return parts[0];
}

VariableInfo* CreateInParts(Graph& graph, const VariableMaker& next, const VariableRequest& request,
                            const std::vector<VariablePart>& parts) {
  int64_t rows = 0;
  for (const VariablePart& part : parts) rows += part.rows;
  if (parts.empty() || request.shape.rank() < 1 || rows != request.shape.dim(0)) {
    throw InvalidArgumentError(StrCat("[ops/variables] expected parts that make up axis 0 of variable '", request.name,
                                      "' ", request.shape, "; got ", parts.size(), " parts with ", rows, " rows"));
  }
  const ColocateWith nowhere(graph, nullptr);
  Output whole;
  std::vector<VariableInfo*> made;
  int64_t begin = 0;
  for (const VariablePart& part : parts) {
    const DeviceScope device(graph, part.device);
    VariableRequest own = request;
    own.name = StrCat(request.name, "/part_", made.size());
    own.shape.set_dim(0, part.rows);
    own.cut_is_decided = true;
    own.initial_value = [&] {
      if (!whole.valid()) whole = request.initial_value();
      std::vector<int64_t> from(static_cast<size_t>(request.shape.rank()), 0);
      std::vector<int64_t> size(from.size(), -1);  // -1: to the end
      from[0] = begin;
      size[0] = part.rows;
      return Slice(whole, from, size);
    };
    made.push_back(next(own));
    begin += part.rows;
  }
  const DeviceScope device(graph, parts[0].device);
  return MakeVariableOfParts(graph, request, made);
}

namespace {

// Returns a creator that cuts variables, and leaves the places of the parts to the device scopes.
VariableCreator CutBy(Graph& graph, Partitioner partitioner) {
  return [&graph, partitioner = std::move(partitioner)](const VariableMaker& next, const VariableRequest& request) {
    const int64_t count = request.local ? 1 : NumberOfParts(partitioner, request);
    if (count == 1) {
      VariableRequest whole = request;  // the partitioner of an outer scope is not asked
      whole.cut_is_decided = whole.cut_is_decided || partitioner != nullptr;
      return next(whole);
    }
    std::vector<VariablePart> parts(static_cast<size_t>(count), {.rows = request.shape.dim(0) / count});
    for (int64_t i = 0; i < request.shape.dim(0) % count; ++i) ++parts[static_cast<size_t>(i)].rows;
    return CreateInParts(graph, next, request, parts);
  };
}

}  // namespace

PartitionerScope::PartitionerScope(Graph& graph, Partitioner partitioner)
    : scope_(graph, CutBy(graph, std::move(partitioner))) {}

Variable GetVariable(Graph& graph, const std::string& name, const Shape& shape, const GetVariableOptions& options,
                     CallSite site) {
  std::optional<PartitionerScope> scope;
  if (options.partitioner) scope.emplace(graph, options.partitioner);
  return GetVariable(graph, name, shape, options.dtype, options.initializer, options.trainable, site);
}

Output EmbeddingLookup(const Variable& params, const Operand& ids, PartitionStrategy partition_strategy,
                       const NodeName& name) {
  const std::vector<Variable> parts = params.parts();
  if (parts.empty() || partition_strategy == PartitionStrategy::kDiv) return params.Gather(ids, name);
  return EmbeddingLookup(parts, ids, partition_strategy, name);
}

Output EmbeddingLookup(const std::vector<Variable>& params, const Operand& ids, PartitionStrategy partition_strategy,
                       const NodeName& name) {
  if (params.empty()) throw InvalidArgumentError("[ops] EmbeddingLookup expected one variable at least; got none");
  const Output rows = ids.In(params[0].graph(), DType::kInt64, params[0].name());
  if (params.size() == 1) return EmbeddingLookup(params[0], rows, partition_strategy, name);
  if (partition_strategy == PartitionStrategy::kDiv) return GatherInOrder(params, rows, name);
  const Output count = ScalarLike(rows, static_cast<double>(params.size()));
  PlacesInParts places{Cast(FloorMod(rows, count), DType::kInt32), FloorDiv(rows, count), {}, std::ssize(params)};
  for (int64_t part = 0; part < places.step; ++part) places.first.push_back(part);
  return GatherFrom(params, rows, places, name);
}

Output EmbeddingLookup(Output params, const Operand& ids, const NodeName& name) {
  return Gather(params, ids, 0, 0, name);
}

}  // namespace cohort::ops
