// Local response normalization, as AlexNet has it (Krizhevsky, Sutskever and Hinton, 2012, section 3.3).
#pragma once

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

struct COHORT_EXPORT LRNOptions {
  int depth_radius = 5;  // how many channels before and after one count
  float bias = 1.0f;
  float alpha = 1.0f;
  float beta = 0.5f;
};

// Returns y of the shape and dtype of `input`, [batch, rows, columns, channels] of float32 or bfloat16:
//   y[..., c] = x[..., c] / (bias + alpha * sum over d of x[..., d]^2)^beta,
// where d goes from c - depth_radius to c + depth_radius, as far as there are channels. As tf.nn.lrn. Throws
// InvalidArgumentError for another rank, and for a negative radius.
COHORT_EXPORT Output LRN(Output input, const LRNOptions& options = {}, const NodeName& name = "LRN");

}  // namespace cohort::ops
