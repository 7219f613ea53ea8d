// Why a build without CUDA has no GPUs.
#pragma once

namespace cohort::cuda {

inline constexpr char kNotBuilt[] =
    "this build has no CUDA: it was configured without the CUDA toolkit 13 or with -DCOHORT_WITH_CUDA=OFF";

}  // namespace cohort::cuda
