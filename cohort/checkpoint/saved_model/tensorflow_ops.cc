#include "cohort/checkpoint/saved_model/tensorflow_ops.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/einsum.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/special_functions.h"
#include "cohort/ops/unary.h"

namespace cohort::saved_model {
namespace {

using Inputs = std::vector<Output>;

Output MakeEinsum(Graph&, const Inputs& in, const AttrMap& attrs) {
  const auto equation = attrs.find("equation");
  const auto* text = equation == attrs.end() ? nullptr : equation->second.get<std::string>();
  if (text == nullptr) throw InvalidArgumentError("expected an attribute 'equation', which is a text");
  return ops::Einsum(*text, in);
}

// For a large x the result has the absolute error of Erf, and not a small relative one.
Output MakeErfc(Graph&, const Inputs& in, const AttrMap&) { return 1.0f - ops::Erf(in[0]); }

ForeignOps MakeOps() {
  ForeignOps ops;
  ops.Add(OpDef("Einsum")
              .Input("inputs: N * T")
              .Output("output: T")
              .Attr("equation: string")
              .Attr("N: int >= 1")
              .Attr("T: type"),
          MakeEinsum);
  ops.Add(OpDef("Erfc").Input("x: T").Output("y: T").Attr("T: type"), MakeErfc);
  return ops;
}

}  // namespace

const ForeignOps& TensorFlowOps() {
  static const ForeignOps ops = MakeOps();
  return ops;
}

}  // namespace cohort::saved_model
