// Which files of NVIDIA's libraries can be used: their names, and how their versions are checked.
#pragma once

#include <cstddef>
#include <string>

#include "cohort/backends/cuda/libraries/dynamic_library.h"

namespace cohort::cuda {

// Return what DynamicLibrary::Open needs to find the library of this major version. Another major version is refused,
// because its functions may have other arguments; the error then names the version.
LibraryRequest CublasLtRequest(int major);
LibraryRequest CudnnRequest(int major);
LibraryRequest NvrtcRequest(int major);

// Returns the text of a version number as the functions of these libraries give it: "9.2.0" for 90200.
std::string VersionText(size_t version);
// Returns why a version of NCCL cannot be used, or "" if it can.
std::string WhyNcclIsUnusable(int version);
// The same for NCCL.
LibraryRequest NcclRequest();

}  // namespace cohort::cuda
