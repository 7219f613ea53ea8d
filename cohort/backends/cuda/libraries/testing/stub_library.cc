// A library that has only the functions that tell its version, as a library of another major version or a damaged
// installation may look. The build says which version.
#include <cstddef>

extern "C" {
[[gnu::visibility("default")]] size_t cudnnGetVersion();
[[gnu::visibility("default")]] size_t cublasLtGetVersion();
size_t cudnnGetVersion() { return COHORT_STUB_VERSION; }
size_t cublasLtGetVersion() { return COHORT_STUB_VERSION; }
}
