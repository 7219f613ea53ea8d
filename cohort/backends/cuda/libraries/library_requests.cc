#include "cohort/backends/cuda/libraries/library_requests.h"

#include <cstddef>

#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

// Version numbers are 10000 * major + 100 * minor + patch. Those below 10000 are 1000 * major + 100 * minor + patch, as
// cuDNN had them before version 9.
size_t UnitOf(size_t version) { return version < 10000 ? 1000 : 10000; }

// Returns a request for a library whose function `function` returns its version number.
LibraryRequest RequestOf(const std::string& what, const std::string& file, int major, const char* function) {
  return {StrCat(what, " ", major),
          {StrCat(file, ".", major), file, StrCat(file, ".", major + 1), StrCat(file, ".", major - 1)},
          [major, function](const DynamicLibrary& library) -> std::string {
            const auto get_version = library.Find<size_t()>(function);
            if (get_version == nullptr) return StrCat("it has no function ", function);
            const size_t version = get_version();
            if (version / UnitOf(version) == static_cast<size_t>(major)) return "";
            return StrCat("its version is ", VersionText(version));
          }};
}

std::string VersionOfNccl(int version) { return StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100); }

}  // namespace

std::string VersionText(size_t version) {
  const size_t unit = UnitOf(version);
  return StrCat(version / unit, ".", version % unit / 100, ".", version % 100);
}

LibraryRequest CublasLtRequest(int major) {
  return RequestOf("cuBLASLt", "libcublasLt.so", major, "cublasLtGetVersion");
}

LibraryRequest CudnnRequest(int major) { return RequestOf("cuDNN", "libcudnn.so", major, "cudnnGetVersion"); }

LibraryRequest NvrtcRequest(int major) {
  return {StrCat("NVRTC ", major),
          {StrCat("libnvrtc.so.", major), "libnvrtc.so", StrCat("libnvrtc.so.", major - 1)},
          [major](const DynamicLibrary& library) -> std::string {
            const auto get_version = library.Find<int(int*, int*)>("nvrtcVersion");
            if (get_version == nullptr) return "it has no function nvrtcVersion";
            int found_major = 0, found_minor = 0;
            get_version(&found_major, &found_minor);
            return found_major == major ? "" : StrCat("its version is ", found_major, ".", found_minor);
          }};
}

std::string WhyNcclIsUnusable(int version) {
  constexpr int kOldest = 21801;  // the first in which a non-blocking communicator can be aborted at any time
  constexpr int kNextMajor = 30000;
  if (version >= kOldest && version < kNextMajor) return "";
  return StrCat("its version is ", VersionOfNccl(version), "; ", VersionOfNccl(kOldest),
                " or a later NCCL 2 is needed");
}

LibraryRequest NcclRequest() {
  return {"NCCL 2", {"libnccl.so.2", "libnccl.so"}, [](const DynamicLibrary& library) -> std::string {
            const auto get_version = library.Find<int(int*)>("ncclGetVersion");
            int version = 0;
            if (get_version == nullptr || get_version(&version) != 0) return "it tells no version";
            return WhyNcclIsUnusable(version);
          }};
}

}  // namespace cohort::cuda
