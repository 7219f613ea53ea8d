#include "cohort/distribute/variable_placer.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/slice.h"

namespace cohort::distribute {

ops::Variable VariablePlacer::CopyOf(const Strategy& /*strategy*/, const ops::Variable& variable, int /*local*/) const {
  return variable;
}

VariableInfo* CreateInParts(Graph& graph, const VariableMaker& next, const VariableRequest& request,
                            const std::vector<VariablePart>& parts) {
  int64_t rows = 0;
  for (const VariablePart& part : parts) rows += part.rows;
  if (parts.empty() || request.shape.rank() < 1 || rows != request.shape.dim(0)) {
    throw InvalidArgumentError(StrCat("[distribute] expected parts that make up axis 0 of variable '", request.name,
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
    own.initial_value = [&] {
      if (!whole.valid()) whole = request.initial_value();
      std::vector<int64_t> from(static_cast<size_t>(request.shape.rank()), 0);
      std::vector<int64_t> size(from.size(), -1);  // -1: to the end
      from[0] = begin;
      size[0] = part.rows;
      return ops::Slice(whole, from, size);
    };
    made.push_back(next(own));
    begin += part.rows;
  }
  const DeviceScope device(graph, parts[0].device);
  return ops::MakeVariableOfParts(graph, request, made);
}

}  // namespace cohort::distribute
