// Launches of the kernels that choose elements of two operands, and of ClipByValue.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/broadcast_dims.h"

namespace cohort::cuda {

// out = condition ? t : e. `out` may be the memory of an operand whose elements lie where those of the result lie.
struct SelectArgs {
  const bool* condition;
  const void* t;
  const void* e;
  void* out;
  int64_t n;                 // elements of the result; at least 1
  int steps[3] = {1, 1, 1};  // of condition, t and e; 0: the operand is a single element
  bool broadcasts = false;   // if true, `dims` says where the operands' elements are, and the steps do not count
  BroadcastDims<3> dims = {};
};
// `element_bytes` is the size of an element of t, e and out: 1, 2, 4 or 8.
void LaunchSelect(Driver& driver, StreamHandle stream, size_t element_bytes, const SelectArgs& args);

struct ClipArgs {
  const void* x;
  const void* low;
  const void* high;
  void* out;     // may be x
  int64_t n;     // at least 1
  int low_step;  // 0: the bound is a single element
  int high_step;
};
void LaunchClip(Driver& driver, StreamHandle stream, ElementType type, const ClipArgs& args);

}  // namespace cohort::cuda
