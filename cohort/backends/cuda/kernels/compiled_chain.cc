#include "cohort/backends/cuda/kernels/compiled_chain.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/kernels/chain_source.h"
#include "cohort/backends/cuda/libraries/kernel_compiler.h"
#include "cohort/backends/cuda/recording/cuda_recording.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {
namespace {

// The kernels of the process, which are never freed: streams may use them until it ends. Thread-safe.
class CompiledChains {
 public:
  static CompiledChains& Get() {
    static auto* const chains = new CompiledChains;
    return *chains;
  }

  // Returns the kernel, or null if it cannot be compiled. While a step is recorded, nothing is compiled, because a card
  // loads no code then.
  const KernelCode* Find(KernelCompiler& compiler, Driver& driver, int card, ElementType type, const ChainArgs& args) {
    MutexLock lock(mu_);
    if (failed_.count(&compiler) > 0) return nullptr;
    std::tuple<KernelCompiler*, int, std::string> key(&compiler, card, KeyOf(type, args));
    if (const auto known = kernels_.find(key); known != kernels_.end()) return &known->second;
    if (CudaRecording::Current() != nullptr) return nullptr;
    try {
      const KernelCode code = compiler.Compile(driver, card, ChainSource(type, args), kChainKernel);
      return &kernels_.emplace(std::move(key), code).first->second;
    } catch (const ResourceExhaustedError& error) {
      LogWarning("cuda", "a chain of elementwise ops goes without its kernel this time, which costs speed only: ",
                 error.what());
      return nullptr;
    } catch (const Error& error) {
      LogWarning("cuda",
                 "chains of elementwise ops go without kernels of their own, which costs speed only: ", error.what());
    }
    failed_.insert(&compiler);
    return nullptr;
  }

 private:
  // What the text of a kernel depends on.
  static std::string KeyOf(ElementType type, const ChainArgs& args) {
    std::string key = {static_cast<char>(type), static_cast<char>(args.broadcasts)};
    for (int s = 0; s < args.steps; ++s) {
      key += {static_cast<char>(args.step[s].op), static_cast<char>(args.step[s].a), static_cast<char>(args.step[s].b)};
    }
    for (int o = 0; o < args.operands; ++o) key += static_cast<char>(args.single[o]);
    return key;
  }

  Mutex mu_;
  std::map<std::tuple<KernelCompiler*, int, std::string>, KernelCode> kernels_ COHORT_GUARDED_BY(mu_);
  std::set<KernelCompiler*> failed_ COHORT_GUARDED_BY(mu_);
};

// Returns how many elements a thread may compute at once: a pack, if nothing broadcasts and all values are aligned.
int64_t AtOnce(ElementType type, const ChainArgs& args) {
  const auto aligned = [](const void* data) { return reinterpret_cast<uintptr_t>(data) % kPackBytes == 0; };
  if (args.broadcasts || !aligned(args.out)) return 1;
  for (int o = 0; o < args.operands; ++o) {
    if (!args.single[o] && !aligned(args.data[o])) return 1;
  }
  return kPackBytes / (type == ElementType::kFloat64 ? 8 : type == ElementType::kFloat32 ? 4 : 2);
}

}  // namespace

bool LaunchCompiledChain(Driver& driver, int card, StreamHandle stream, ElementType type, const ChainArgs& args) {
  KernelCompiler* const compiler = FindKernelCompiler(driver);
  if (compiler == nullptr) return false;
  const KernelCode* const kernel = CompiledChains::Get().Find(*compiler, driver, card, type, args);
  if (kernel == nullptr) return false;
  ChainCall call;
  std::memcpy(call.data, args.data, sizeof(call.data));
  call.out = args.out;
  call.n = args.n;
  call.dims = args.dims;
  const int64_t at_once = AtOnce(type, args);
  if (at_once > 1) call.packs = args.n / at_once;
  driver.Launch(*kernel, SizeFor(args.n, at_once), &call, sizeof(call), stream);
  return true;
}

}  // namespace cohort::cuda
