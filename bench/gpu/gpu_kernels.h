// Measurements of single kernels, which go past sessions.
#pragma once

#include <cstdint>

namespace cohort::gpu_bench {

// Prints the bandwidth of a copy on the first card, and then the times of the depthwise 3x3 convolutions of guide-004's
// network (bfloat16; forward, input gradient, filter gradient), each as a part of that bandwidth: an image has to be
// read once and another one read or written once. Throws FailedPreconditionError if there is no card.
void MeasureKernels(int64_t batch);

// Returns how many bytes of the first card no process uses, or 0 if there is no card.
int64_t FreeBytesOfCard();

}  // namespace cohort::gpu_bench
