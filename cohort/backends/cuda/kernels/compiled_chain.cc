#include "cohort/backends/cuda/kernels/compiled_chain.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/kernels/chain_source.h"
#include "cohort/backends/cuda/kernels/common_chains.h"
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
    std::tuple<KernelCompiler*, int, std::string> key(&compiler, card, ChainKey(type, args).bytes());
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

// Returns the argument of a kernel that was made for the chain, and the size of its launch.
std::pair<ChainCall, LaunchSize> CallOf(ElementType type, const ChainArgs& args) {
  ChainCall call;
  std::memcpy(call.data, args.data, sizeof(call.data));
  call.out = args.out;
  call.n = args.n;
  call.dims = args.dims;
  const int64_t at_once = AtOnce(type, args);
  if (at_once > 1) call.packs = args.n / at_once;
  return {call, SizeFor(args.n, at_once)};
}

}  // namespace

bool LaunchCommonChain(Driver& driver, StreamHandle stream, ElementType type, const ChainArgs& args) {
  const ChainKey key(type, args);
  const std::span<const CommonChain> chains = CommonChains();
  const auto found = std::lower_bound(chains.begin(), chains.end(), key.bytes(),
                                      [](const CommonChain& chain, std::string_view k) { return chain.key < k; });
  if (found == chains.end() || found->key != key.bytes()) return false;
  const auto [call, size] = CallOf(type, args);
  found->launch(driver, stream, size, call);
  return true;
}

bool LaunchCompiledChain(Driver& driver, int card, StreamHandle stream, ElementType type, const ChainArgs& args) {
  KernelCompiler* const compiler = FindKernelCompiler(driver);
  if (compiler == nullptr) return false;
  const KernelCode* const kernel = CompiledChains::Get().Find(*compiler, driver, card, type, args);
  if (kernel == nullptr) return false;
  const auto [call, size] = CallOf(type, args);
  driver.Launch(*kernel, size, &call, sizeof(call), stream);
  return true;
}

}  // namespace cohort::cuda
