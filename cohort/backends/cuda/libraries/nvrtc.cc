// NVRTC's functions are declared here and not by its header, so that every build has this source, and tests compile
// kernels wherever the library is installed.
#include "cohort/backends/cuda/libraries/nvrtc.h"

#include <array>
#include <cstddef>

#include "cohort/backends/cuda/libraries/dynamic_library.h"
#include "cohort/backends/cuda/libraries/library_requests.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr int kMajor = 13;

using Program = void*;
using Result = int;  // 0: success

// The functions of the library that we call.
struct Functions {
  explicit Functions(const DynamicLibrary& library)
      : create(library.Get<Result(Program*, const char*, const char*, int, const char* const*, const char* const*)>(
            "nvrtcCreateProgram")),
        destroy(library.Get<Result(Program*)>("nvrtcDestroyProgram")),
        compile(library.Get<Result(Program, int, const char* const*)>("nvrtcCompileProgram")),
        log_size(library.Get<Result(Program, size_t*)>("nvrtcGetProgramLogSize")),
        log(library.Get<Result(Program, char*)>("nvrtcGetProgramLog")),
        code_size(library.Get<Result(Program, size_t*)>("nvrtcGetCUBINSize")),
        code(library.Get<Result(Program, char*)>("nvrtcGetCUBIN")),
        error(library.Get<const char*(Result)>("nvrtcGetErrorString")) {}

  Result (*const create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  Result (*const destroy)(Program*);
  Result (*const compile)(Program, int, const char* const*);
  Result (*const log_size)(Program, size_t*);
  Result (*const log)(Program, char*);
  Result (*const code_size)(Program, size_t*);
  Result (*const code)(Program, char*);
  const char* (*const error)(Result);
};

DynamicLibrary OpenLibrary() {
  DynamicLibrary library = DynamicLibrary::Open(NvrtcRequest(kMajor), CudaLibraryFolders());
  int major = 0, minor = 0;
  library.Get<Result(int*, int*)>("nvrtcVersion")(&major, &minor);
  // NVRTC opens this file by its bare name when it first compiles.
  library.OpenNeighbour(StrCat("libnvrtc-builtins.so.", major, ".", minor));
  return library;
}

const Functions& Library() {
  static const Functions functions(OpenLibrary());
  return functions;
}

// Returns the text that a pair of functions gives: its size, with a zero at the end, and its bytes.
std::string TextOf(Program program, Result (*size)(Program, size_t*), Result (*bytes)(Program, char*)) {
  size_t length = 0;
  if (size(program, &length) != 0 || length == 0) return "";
  std::string text(length, '\0');
  return bytes(program, text.data()) == 0 ? text : "";
}

class NvrtcCompiler final : public KernelCompiler {
 public:
  KernelCode Compile(Driver& driver, int card, const std::string& source, const char* name) override {
    const CardInfo info = driver.Card(card);
    return {name, driver.LoadKernel(card, CompileWithNvrtc(source, name, info.major, info.minor), name), nullptr};
  }
};

}  // namespace

void OpenNvrtcIfItIsThere() {
  try {
    Library();
  } catch (const FailedPreconditionError&) {
    // What needs it says so.
  }
}

std::string CompileWithNvrtc(const std::string& source, const std::string& name, int major, int minor) {
  const Functions& library = Library();
  const std::string architecture = StrCat("--gpu-architecture=sm_", major, minor);
  const auto fail = [&](const char* call, Result result, const std::string& log) {
    throw InternalError(StrCat("[cuda/libraries] expected NVRTC to compile ", name, " with ", architecture, "; got ",
                               library.error(result), " from ", call, log.empty() ? "" : ":\n", log));
  };
  Program program = nullptr;
  Result result = library.create(&program, source.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr);
  if (result != 0) fail("nvrtcCreateProgram", result, "");
  // A product and a sum are rounded one after the other, as in the kernels that single nodes have (CMakeLists.txt). The
  // last option: functions that do not say so are for the card.
  const std::array<const char*, 4> options = {architecture.c_str(), "--std=c++20", "--fmad=false",
                                              "--device-as-default-execution-space"};
  result = library.compile(program, static_cast<int>(options.size()), options.data());
  const std::string log = result != 0 ? TextOf(program, library.log_size, library.log) : "";
  std::string code = result == 0 ? TextOf(program, library.code_size, library.code) : "";
  library.destroy(&program);
  if (result != 0) fail("nvrtcCompileProgram", result, log);
  if (code.empty()) fail("nvrtcGetCUBIN", result, "");
  return code;
}

std::unique_ptr<KernelCompiler> MakeNvrtcCompiler() { return std::make_unique<NvrtcCompiler>(); }

}  // namespace cohort::cuda
