#include "cohort/keras/layers/preprocessing/category_encoding.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/reduction.h"

namespace cohort::keras {

void CheckOutputMode(const std::string& mode, const char* layer, bool allows_int, bool allows_tf_idf) {
  if (mode == "one_hot" || mode == "multi_hot" || mode == "count") return;
  if ((allows_int && mode == "int") || (allows_tf_idf && mode == "tf_idf")) return;
  throw InvalidArgumentError(StrCat("[keras/", layer, "] expected output_mode ", allows_int ? "\"int\", " : "",
                                    allows_tf_idf ? "\"tf_idf\", " : "",
                                    "\"one_hot\", \"multi_hot\" or \"count\"; got \"", mode, "\""));
}

void CheckDepth(int64_t depth, const std::string& mode) {
  if (depth <= kMostDepth) return;
  throw InvalidArgumentError(StrCat("[keras/category_encoding] expected at most ", kMostDepth,
                                    " different indices for output_mode \"", mode,
                                    "\", which makes vectors of so many numbers; got ", depth));
}

Output Encoded(const Output& indices, int64_t depth, const std::string& mode) {
  if (mode == "int") return indices;
  CheckDepth(depth, mode);
  const Shape& shape = indices.shape();
  if (mode == "one_hot") {
    const bool one = shape.rank() > 1 && shape.dim(shape.rank() - 1) == 1;
    return ops::OneHot(one ? ops::Squeeze(indices, {-1}) : indices, static_cast<int>(depth));
  }
  if (shape.rank() < 2) {
    throw InvalidArgumentError(StrCat("[keras/category_encoding] expected an input [batch, ..., n] for output_mode \"",
                                      mode, "\", which adds up the values of the last axis; got shape ", shape));
  }
  const Output each = ops::OneHot(indices, static_cast<int>(depth));
  return mode == "count" ? ops::Sum(each, {-2}) : ops::Max(each, {-2});
}

}  // namespace cohort::keras
