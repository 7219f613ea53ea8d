#include "cohort/backends/cuda/fake/host_compiler.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

namespace fs = std::filesystem;

// Runs a command. Returns its exit status, and appends what it writes.
int RunCommand(const std::string& command, std::string* output) {
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return -1;
  char text[4096];
  for (size_t n; (n = fread(text, 1, sizeof(text), pipe)) > 0;) output->append(text, n);
  return pclose(pipe);
}

// A new folder, which is removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "cohort_kernel_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw InternalError("[host compiler] cannot make a folder");
    path_ = pattern;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string File(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

}  // namespace

bool HostCompiler::IsThere() { return access(COHORT_HOST_COMPILER, X_OK) == 0; }

// Products and sums keep two roundings, as in the kernels of the build.
KernelCode HostCompiler::Compile(Driver& driver, int card, const std::string& source, const char* name) {
  const Folder folder;
  const std::string text = folder.File("kernel.cc"), library = folder.File("kernel.so");
  std::ofstream(text) << source;
  std::string output;
  const int status = RunCommand(
      StrCat(COHORT_HOST_COMPILER, " -std=c++20 -O1 -ffp-contract=off -fPIC -shared -o '", library, "' '", text, "'"),
      &output);
  if (status != 0) {
    throw InternalError(StrCat("[host compiler] expected a text that compiles; got status ", status, ":\n", output));
  }
  const void* const function = driver.LoadKernel(card, library, StrCat(name, "_on_host").c_str());
  ++compiled_;
  return {name, nullptr, reinterpret_cast<void (*)(const void*, const LaunchSize&)>(const_cast<void*>(function))};
}

}  // namespace cohort::cuda
