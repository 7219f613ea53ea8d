// LayerNormSizes: the checks of the inputs of LayerNorm and LayerNormGrad, which the kernels of all backends share.
#pragma once

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"

namespace cohort {

// The sizes of an x that is seen as a matrix. Both may be 0.
struct LayerNormSizes {
  Shape statistics;  // the shape of x without the last dimension
  int64_t rows = 0;
  int64_t columns = 0;

  // Return the sizes for the inputs of a node. Throw InvalidArgumentError for shapes that do not fit.
  static LayerNormSizes OfForward(const KernelContext& ctx) {
    const LayerNormSizes sizes(ctx.input(0).shape());
    for (const int vector : {1, 2}) CheckShape(ctx, vector, Shape{sizes.columns});
    return sizes;
  }
  static LayerNormSizes OfGradient(const KernelContext& ctx) {
    const LayerNormSizes sizes(ctx.input(1).shape());
    CheckShape(ctx, 0, ctx.input(1).shape());
    CheckShape(ctx, 2, Shape{sizes.columns});
    for (const int statistic : {3, 4}) CheckShape(ctx, statistic, sizes.statistics);
    return sizes;
  }

 private:
  explicit LayerNormSizes(const Shape& x) {
    if (x.rank() < 1) throw InvalidArgumentError("[kernels/layer_norm] expected x of rank 1 or more; got a scalar");
    statistics = x.Sub(0, x.rank() - 1);
    rows = statistics.num_elements();
    columns = x.dim(x.rank() - 1);
  }

  static void CheckShape(const KernelContext& ctx, int input, const Shape& expected) {
    const Shape& shape = ctx.input(input).shape();
    if (shape == expected) return;
    throw InvalidArgumentError(StrCat("[kernels/layer_norm] expected ", ctx.node().input_arg(input).name, " of shape ",
                                      expected, "; got ", shape));
  }
};

}  // namespace cohort
