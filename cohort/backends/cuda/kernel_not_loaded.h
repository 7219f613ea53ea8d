// KernelNotLoaded: why a launch cannot be captured, and what to do about it.
#pragma once

#include <functional>

namespace cohort::cuda {

// Thrown by Driver::Launch, through kernels, if the calling thread captures and the card has not loaded the code of the
// kernel: nothing can be loaded during a capture. Nothing is recorded then, and the capture goes on.
struct KernelNotLoaded {
  // Loads the code. Call it after the end of the capture. Throws as Driver::LoadKernel does.
  std::function<void()> load;
};

}  // namespace cohort::cuda
