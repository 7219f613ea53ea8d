#include "cohort/data/element.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::data {

ElementSpec SpecOf(const Element& element) {
  ElementSpec spec;
  for (const Tensor& tensor : element) spec.push_back({tensor.dtype(), tensor.shape()});
  return spec;
}

std::string ToString(const ElementSpec& spec) {
  std::vector<std::string> parts;
  for (const TensorSpec& part : spec) parts.push_back(StrCat(part.dtype, part.shape));
  return StrCat("(", StrJoin(parts, ", "), ")");
}

Shape MostSpecificCommonShape(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return Shape::UnknownRank();
  Shape common = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i)) common.set_dim(i, Shape::kUnknownDim);
  }
  return common;
}

bool IsCompatible(const ElementSpec& spec, const ElementSpec& required) {
  if (spec.size() != required.size()) return false;
  for (size_t i = 0; i < spec.size(); ++i) {
    if (spec[i].dtype != required[i].dtype || !spec[i].shape.IsCompatibleWith(required[i].shape)) return false;
  }
  return true;
}

void CheckElement(const Element& element, const ElementSpec& spec) {
  const ElementSpec actual = SpecOf(element);
  if (IsCompatible(actual, spec)) return;
  throw InvalidArgumentError(StrCat("[data] expected an element of ", ToString(spec), "; got ", ToString(actual),
                                    "; correct the spec or what makes it"));
}

}  // namespace cohort::data
