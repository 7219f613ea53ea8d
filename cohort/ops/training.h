// Updates of variables by gradients, each one pass over variable and slots. `var` and the slots are handles; learning
// rates and the like are scalars of the variable's dtype; formulas are TensorFlow's for the op of the same name. Where
// indices repeat, the sparse forms apply one row after another: sum repeated rows first (see train/optimizer.h).
#pragma once

#include <string>

#include "cohort/graph/graph.h"

namespace cohort::ops {

// var -= alpha delta
Node* ResourceApplyGradientDescent(Output var, Output alpha, Output delta, const NodeName& name = "");
// accum = momentum accum + g;  var -= lr accum, with Nesterov: var -= lr (g + momentum accum)
Node* ResourceApplyMomentum(Output var, Output accum, Output lr, Output grad, Output momentum,
                            bool use_nesterov = false, const NodeName& name = "");
// accum = momentum accum - lr g;  var += accum, with Nesterov: var += momentum accum - lr g
Node* ResourceApplyKerasMomentum(Output var, Output accum, Output lr, Output grad, Output momentum,
                                 bool use_nesterov = false, const NodeName& name = "");
// accum += g^2;  var -= lr g / sqrt(accum)
Node* ResourceApplyAdagrad(Output var, Output accum, Output lr, Output grad, const NodeName& name = "");
// accum += g^2;  var -= lr g / (sqrt(accum) + epsilon)
Node* ResourceApplyAdagradV2(Output var, Output accum, Output lr, Output epsilon, Output grad,
                             const NodeName& name = "");

// accum += g^2;  var -= lr g / sqrt(accum + epsilon): Keras's formula; TensorFlow has no op for it.
Node* ResourceApplyKerasAdagrad(Output var, Output accum, Output lr, Output epsilon, Output grad,
                                const NodeName& name = "");

struct AdamScalars {
  Output beta1_power, beta2_power, lr, beta1, beta2, epsilon;
};
// a = lr sqrt(1 - beta2_power) / (1 - beta1_power);  m += (g - m)(1 - beta1);  v += (g^2 - v)(1 - beta2);
// var -= a m / (sqrt(v) + epsilon), with Nesterov: m replaced by g (1 - beta1) + beta1 m
Node* ResourceApplyAdam(Output var, Output m, Output v, const AdamScalars& scalars, Output grad,
                        bool use_nesterov = false, const NodeName& name = "");

// The same without Nesterov, then vhat = max(vhat, v), and vhat in place of v under the root.
Node* ResourceApplyAdamWithAmsgrad(Output var, Output m, Output v, Output vhat, const AdamScalars& scalars, Output grad,
                                   const NodeName& name = "");

struct RMSPropScalars {
  Output lr, rho, momentum, epsilon;
};
// ms += (g^2 - ms)(1 - rho);  mom = momentum mom + lr g / sqrt(ms + epsilon);  var -= mom
Node* ResourceApplyRMSProp(Output var, Output ms, Output mom, const RMSPropScalars& scalars, Output grad,
                           const NodeName& name = "");
// mg += (g - mg)(1 - rho), and ms - mg^2 in place of ms under the root
Node* ResourceApplyCenteredRMSProp(Output var, Output mg, Output ms, Output mom, const RMSPropScalars& scalars,
                                   Output grad, const NodeName& name = "");

struct FtrlScalars {
  Output lr, l1, l2, lr_power;
};
// a' = accum + g^2;  linear += g - (a'^-p - accum^-p) / lr var, p = lr_power;  q = a'^-p / lr + 2 l2;
// var = (clip(linear, -l1, l1) - linear) / q;  accum = a'
Node* ResourceApplyFtrl(Output var, Output accum, Output linear, Output grad, const FtrlScalars& scalars,
                        const NodeName& name = "");
// linear also grows by 2 l2_shrinkage var.
Node* ResourceApplyFtrlV2(Output var, Output accum, Output linear, Output grad, const FtrlScalars& scalars,
                          Output l2_shrinkage, const NodeName& name = "");
// var -= alpha var: decoupled weight decay, alpha = its rate times the learning rate. TensorFlow has no op for it.
Node* ResourceApplyWeightDecay(Output var, Output alpha, const NodeName& name = "");

// The same for rows `indices` [n] (int32 or int64) of the variable; grad [n, ...row].
Node* ResourceSparseApplyMomentum(Output var, Output accum, Output lr, Output grad, Output indices, Output momentum,
                                  bool use_nesterov = false, const NodeName& name = "");
Node* ResourceSparseApplyKerasMomentum(Output var, Output accum, Output lr, Output grad, Output indices,
                                       Output momentum, bool use_nesterov = false, const NodeName& name = "");
Node* ResourceSparseApplyAdagrad(Output var, Output accum, Output lr, Output grad, Output indices,
                                 const NodeName& name = "");
Node* ResourceSparseApplyAdagradV2(Output var, Output accum, Output lr, Output epsilon, Output grad, Output indices,
                                   const NodeName& name = "");
Node* ResourceSparseApplyKerasAdagrad(Output var, Output accum, Output lr, Output epsilon, Output grad, Output indices,
                                      const NodeName& name = "");
Node* ResourceSparseApplyRMSProp(Output var, Output ms, Output mom, const RMSPropScalars& scalars, Output grad,
                                 Output indices, const NodeName& name = "");
Node* ResourceSparseApplyCenteredRMSProp(Output var, Output mg, Output ms, Output mom, const RMSPropScalars& scalars,
                                         Output grad, Output indices, const NodeName& name = "");
Node* ResourceSparseApplyFtrl(Output var, Output accum, Output linear, Output grad, Output indices,
                              const FtrlScalars& scalars, const NodeName& name = "");
Node* ResourceSparseApplyFtrlV2(Output var, Output accum, Output linear, Output grad, Output indices,
                                const FtrlScalars& scalars, Output l2_shrinkage, const NodeName& name = "");

}  // namespace cohort::ops
