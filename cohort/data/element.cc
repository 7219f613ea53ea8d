#include "cohort/data/element.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::data {
namespace {

constexpr size_t kMostBytes = 1000;  // of a string; the names of most files are shorter
constexpr int kMostNumbers = 4;      // of a tensor

std::string DescriptionOf(const Tensor& tensor) {
  if (tensor.dtype() != DType::kString) return tensor.ToString(kMostNumbers);
  if (tensor.shape().rank() != 0) return StrCat(tensor.dtype(), tensor.shape());
  const std::string& text = tensor.scalar<std::string>();
  const auto is_control = [](unsigned char c) { return c < ' '; };
  if (std::any_of(text.begin(), text.end(), is_control)) return StrCat("a string of ", text.size(), " bytes");
  return StrCat('"', text.substr(0, kMostBytes), '"', text.size() > kMostBytes ? "..." : "");
}

}  // namespace

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

std::string Description(const Element& element) {
  std::vector<std::string> parts;
  for (const Tensor& tensor : element) parts.push_back(DescriptionOf(tensor));
  return StrCat("(", StrJoin(parts, ", "), ")");
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

Element WithoutRows(const ElementSpec& spec, const std::string& caller) {
  Element element;
  for (const TensorSpec& part : spec) {
    Shape shape = part.shape;
    if (shape.has_rank() && shape.rank() > 0) shape.set_dim(0, 0);
    if (!shape.IsFullyDefined()) {
      throw InvalidArgumentError(StrCat(caller, " expected batches of known shapes where a worker or replica has no ",
                                        "data left; got ", part.dtype, part.shape));
    }
    element.push_back(Tensor::Zeros(part.dtype, shape));
  }
  return element;
}

}  // namespace cohort::data
