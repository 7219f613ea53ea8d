// Ops that update variables by gradients. Each op makes one pass over the variable and its slots. `var` and the slots
// are handles. Learning rates and similar values are scalars of the variable's dtype. The gradient has the variable's
// shape and dtype. Unless a comment says otherwise, the formulas are those of TensorFlow's op of the same name. If
// indices repeat, the sparse forms apply one row after another. This is not the update by the sum of these rows, so sum
// repeated rows first (SumRepeatedRows in train/optimizer.h). The functions throw InvalidArgumentError if the
// shapes that are known do not fit, or if gradient and scalars differ in dtype. If only the step finds that a shape or
// dtype does not fit, the step fails with this error.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// var -= alpha delta
COHORT_EXPORT Node* ResourceApplyGradientDescent(Output var, Output alpha, Output delta, const NodeName& name = "");
// accum = momentum accum + g;  var -= lr accum, with Nesterov: var -= lr (g + momentum accum)
COHORT_EXPORT Node* ResourceApplyMomentum(Output var, Output accum, Output lr, Output grad, Output momentum,
                                          bool use_nesterov = false, const NodeName& name = "");
// accum = momentum accum - lr g;  var += accum, with Nesterov: var += momentum accum - lr g
COHORT_EXPORT Node* ResourceApplyKerasMomentum(Output var, Output accum, Output lr, Output grad, Output momentum,
                                               bool use_nesterov = false, const NodeName& name = "");
// accum += g^2;  var -= lr g / sqrt(accum)
COHORT_EXPORT Node* ResourceApplyAdagrad(Output var, Output accum, Output lr, Output grad, const NodeName& name = "");
// accum += g^2;  var -= lr g / (sqrt(accum) + epsilon)
COHORT_EXPORT Node* ResourceApplyAdagradV2(Output var, Output accum, Output lr, Output epsilon, Output grad,
                                           const NodeName& name = "");

// accum += g^2;  var -= lr g / sqrt(accum + epsilon): Keras's formula; TensorFlow has no op for it.
COHORT_EXPORT Node* ResourceApplyKerasAdagrad(Output var, Output accum, Output lr, Output epsilon, Output grad,
                                              const NodeName& name = "");

struct COHORT_EXPORT AdamScalars {
  Output beta1_power, beta2_power, lr, beta1, beta2, epsilon;
};
// a = lr sqrt(1 - beta2_power) / (1 - beta1_power);  m += (g - m)(1 - beta1);  v += (g^2 - v)(1 - beta2);
// var -= a m / (sqrt(v) + epsilon), with Nesterov: m replaced by g (1 - beta1) + beta1 m
COHORT_EXPORT Node* ResourceApplyAdam(Output var, Output m, Output v, const AdamScalars& scalars, Output grad,
                                      bool use_nesterov = false, const NodeName& name = "");

// As ResourceApplyAdam without Nesterov. Then vhat = max(vhat, v), and vhat replaces v under the root.
COHORT_EXPORT Node* ResourceApplyAdamWithAmsgrad(Output var, Output m, Output v, Output vhat,
                                                 const AdamScalars& scalars, Output grad, const NodeName& name = "");

struct COHORT_EXPORT RMSPropScalars {
  Output lr, rho, momentum, epsilon;
};
// ms += (g^2 - ms)(1 - rho);  mom = momentum mom + lr g / sqrt(ms + epsilon);  var -= mom
COHORT_EXPORT Node* ResourceApplyRMSProp(Output var, Output ms, Output mom, const RMSPropScalars& scalars, Output grad,
                                         const NodeName& name = "");
// As ResourceApplyRMSProp, with mg += (g - mg)(1 - rho), and ms - mg^2 instead of ms under the root.
COHORT_EXPORT Node* ResourceApplyCenteredRMSProp(Output var, Output mg, Output ms, Output mom,
                                                 const RMSPropScalars& scalars, Output grad, const NodeName& name = "");

struct COHORT_EXPORT FtrlScalars {
  Output lr, l1, l2, lr_power;
};
// a' = accum + g^2;  linear += g - (a'^-p - accum^-p) var / lr, p = lr_power;  q = a'^-p / lr + 2 l2;
// var = (clip(linear, -l1, l1) - linear) / q;  accum = a'
COHORT_EXPORT Node* ResourceApplyFtrl(Output var, Output accum, Output linear, Output grad, const FtrlScalars& scalars,
                                      const NodeName& name = "");
// As ResourceApplyFtrl, but linear also grows by 2 l2_shrinkage var.
COHORT_EXPORT Node* ResourceApplyFtrlV2(Output var, Output accum, Output linear, Output grad,
                                        const FtrlScalars& scalars, Output l2_shrinkage, const NodeName& name = "");
// var -= alpha var. This is decoupled weight decay; alpha is the rate of the decay times the learning rate. TensorFlow
// has no op for it.
COHORT_EXPORT Node* ResourceApplyWeightDecay(Output var, Output alpha, const NodeName& name = "");

// The sparse forms use the same formulas, but update only the rows `indices` [n] (int32 or int64) of the variable and
// its slots. `grad` has one row for each index: [n, ...].
COHORT_EXPORT Node* ResourceSparseApplyMomentum(Output var, Output accum, Output lr, Output grad, Output indices,
                                                Output momentum, bool use_nesterov = false, const NodeName& name = "");
COHORT_EXPORT Node* ResourceSparseApplyKerasMomentum(Output var, Output accum, Output lr, Output grad, Output indices,
                                                     Output momentum, bool use_nesterov = false,
                                                     const NodeName& name = "");
COHORT_EXPORT Node* ResourceSparseApplyAdagrad(Output var, Output accum, Output lr, Output grad, Output indices,
                                               const NodeName& name = "");
COHORT_EXPORT Node* ResourceSparseApplyAdagradV2(Output var, Output accum, Output lr, Output epsilon, Output grad,
                                                 Output indices, const NodeName& name = "");
COHORT_EXPORT Node* ResourceSparseApplyKerasAdagrad(Output var, Output accum, Output lr, Output epsilon, Output grad,
                                                    Output indices, const NodeName& name = "");
// The moments of other rows do not decay; TensorFlow has no such op.
COHORT_EXPORT Node* ResourceSparseApplyAdam(Output var, Output m, Output v, const AdamScalars& scalars, Output grad,
                                            Output indices, bool use_nesterov = false, const NodeName& name = "");
COHORT_EXPORT Node* ResourceSparseApplyRMSProp(Output var, Output ms, Output mom, const RMSPropScalars& scalars,
                                               Output grad, Output indices, const NodeName& name = "");
COHORT_EXPORT Node* ResourceSparseApplyCenteredRMSProp(Output var, Output mg, Output ms, Output mom,
                                                       const RMSPropScalars& scalars, Output grad, Output indices,
                                                       const NodeName& name = "");
COHORT_EXPORT Node* ResourceSparseApplyFtrl(Output var, Output accum, Output linear, Output grad, Output indices,
                                            const FtrlScalars& scalars, const NodeName& name = "");
COHORT_EXPORT Node* ResourceSparseApplyFtrlV2(Output var, Output accum, Output linear, Output grad, Output indices,
                                              const FtrlScalars& scalars, Output l2_shrinkage,
                                              const NodeName& name = "");

}  // namespace cohort::ops
