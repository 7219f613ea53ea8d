// Launches of the kernels of Softmax, LogSoftmax and the cross-entropies with logits.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// A matrix of logits; both sizes are at least 1.
struct LogitsArgs {
  const void* logits;
  int64_t rows;
  int64_t classes;
};

// `out` may be the logits.
void LaunchSoftmax(Driver& driver, StreamHandle stream, ElementType type, bool log, const LogitsArgs& args, void* out);

// Write the loss of each row, and its gradient with respect to the logits. `gradient` may be the logits.
struct LossArgs {
  LogitsArgs input;
  const void* labels;  // dense: a matrix of probabilities; sparse: one class for each row
  void* loss;
  void* gradient;
};
void LaunchDenseLoss(Driver& driver, StreamHandle stream, ElementType type, const LossArgs& args);
// The labels are int32, or int64 if `wide_labels`. A label that is no class is reported under the number `check`
// (error_words.h) with the row as position; the loss of its row is NaN.
void LaunchSparseLoss(Driver& driver, StreamHandle stream, ElementType type, bool wide_labels, const LossArgs& args,
                      uint64_t* word, uint32_t check);

}  // namespace cohort::cuda
