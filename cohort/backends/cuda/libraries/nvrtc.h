// NVRTC: NVIDIA's compiler of CUDA sources as a library. It is opened when it is first needed.
#pragma once

#include <memory>
#include <string>

#include "cohort/backends/cuda/libraries/kernel_compiler.h"

namespace cohort::cuda {

// Opens the library, if it is there. cuDNN opens it by its bare name, so it has to be open before cuDNN wants it: in
// the folders of Python's packages the system's loader does not look.
void OpenNvrtcIfItIsThere();

// Compiles the text, which includes nothing, for cards of the compute capability major.minor. Returns the code as
// Driver::LoadKernel takes it. `name` is for the compiler's messages. Throws as KernelCompiler::Compile does.
// Thread-safe.
std::string CompileWithNvrtc(const std::string& source, const std::string& name, int major, int minor);

// Returns the compiler that calls it and loads the code into the driver.
std::unique_ptr<KernelCompiler> MakeNvrtcCompiler();

}  // namespace cohort::cuda
