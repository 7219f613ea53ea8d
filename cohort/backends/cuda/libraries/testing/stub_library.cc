// A library that has only the functions that tell its version, as a library of another major version or a damaged
// installation may look. The build says which version.
#include <cstddef>

extern "C" {
[[gnu::visibility("default")]] size_t cudnnGetVersion();
[[gnu::visibility("default")]] size_t cublasLtGetVersion();
[[gnu::visibility("default")]] int nvrtcVersion(int* major, int* minor);
[[gnu::visibility("default")]] int ncclGetVersion(int* version);
size_t cudnnGetVersion() { return COHORT_STUB_VERSION; }
size_t cublasLtGetVersion() { return COHORT_STUB_VERSION; }
int nvrtcVersion(int* major, int* minor) {
  *major = COHORT_STUB_VERSION / 10000;
  *minor = COHORT_STUB_VERSION % 10000 / 100;
  return 0;
}
int ncclGetVersion(int* version) {
  *version = COHORT_STUB_VERSION;
  return 0;
}
}
