// Launches of the kernels for BiasAdd, BiasAddGrad, L2Loss and InTopK.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/activation_functions.h"

namespace cohort::cuda {

// A tensor seen as [outer, channels, inner]; inner is 1 for NHWC.
struct ChannelView {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;
  int64_t size() const { return outer * channels * inner; }
};

// y = activation(x + bias), bias along the channels. y may be x. Requires: the view is not empty.
void LaunchBiasAdd(Driver& driver, StreamHandle stream, ElementType type, Activation activation,
                   const ChannelView& view, const void* x, const void* bias, void* y);

// Writes the sum of each channel. `scratch` has BiasAddGradBytes bytes. Requires: the view is not empty.
size_t BiasAddGradBytes(ElementType type, const ChannelView& view);
void LaunchBiasAddGrad(Driver& driver, StreamHandle stream, ElementType type, const ChannelView& view, const void* x,
                       void* sums, void* scratch);

// Writes half of the sum of the squares of n elements. `scratch` has L2LossBytes bytes. Requires: n is at least 1.
size_t L2LossBytes(ElementType type, int64_t n);
void LaunchL2Loss(Driver& driver, StreamHandle stream, ElementType type, int64_t n, const void* x, void* loss,
                  void* scratch);

// in_top[b] says whether fewer than k of the classes of row b are more probable than target[b]; false for invalid
// values. `type` is that of targets and of k: int32 or int64. Requires: rows and classes are at least 1.
void LaunchInTopK(Driver& driver, StreamHandle stream, ElementType type, int64_t rows, int64_t classes,
                  const float* predictions, const void* targets, const void* k, bool* in_top);

}  // namespace cohort::cuda
