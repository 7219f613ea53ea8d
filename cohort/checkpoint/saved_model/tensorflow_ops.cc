#include "cohort/checkpoint/saved_model/tensorflow_ops.h"

#include "cohort/ops/arithmetic.h"
#include "cohort/ops/einsum.h"
#include "cohort/ops/special_functions.h"
#include "cohort/ops/unary.h"

namespace cohort::saved_model {
namespace {

using Inputs = std::vector<Output>;

Output MakeEinsum(Graph&, const Inputs& in, const AttrMap& attrs) {
  return ops::Einsum(*attrs.at("equation").get<std::string>(), in);
}

ForeignOps MakeOps() {
  ForeignOps ops;
  ops.Add(OpDef("Einsum")
              .Input("inputs: N * T")
              .Output("output: T")
              .Attr("equation: string")
              .Attr("N: int >= 1")
              .Attr("T: type"),
          MakeEinsum);
  return ops;
}

}  // namespace

const ForeignOps& TensorFlowOps() {
  static const ForeignOps ops = MakeOps();
  return ops;
}

}  // namespace cohort::saved_model
