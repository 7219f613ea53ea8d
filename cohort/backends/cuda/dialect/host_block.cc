// RunHostBlocks. A block of a kernel that waits has a fiber for each thread of the block. HostFibers is their
// scheduler: it gives the processor to one fiber after the other, round after round, and each fiber gives it back when
// it waits or has ended. A fiber that waits at a barrier may go on when the barrier's generation is no longer the one
// that the fiber saw. Fibers are kept for the next block and the next launch: each runs an endless loop, whose body is
// one thread of a block.
#include "cohort/backends/cuda/dialect/host_block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>

#include "cohort/backends/cuda/dialect/fiber_context.h"
#include "cohort/backends/cuda/dialect/fiber_sanitizers.h"

namespace cohort::cuda {
namespace {

constexpr uint32_t kLanes = 32;  // threads of a warp
#if defined(COHORT_FIBERS_ASAN) || defined(COHORT_FIBERS_TSAN)
constexpr size_t kStackBytes = 256 * 1024;
#else
constexpr size_t kStackBytes = 64 * 1024;
#endif

std::atomic<uint64_t> next_seed{1};

// Returns a random number for each value of `x` (SplitMix64, by Steele, Lea and Flood, 2014).
uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t Product(const uint32_t (&sizes)[3]) { return uint64_t{sizes[0]} * sizes[1] * sizes[2]; }

void Split(uint64_t linear, const uint32_t (&sizes)[3], uint32_t (&out)[3]) {
  out[0] = static_cast<uint32_t>(linear % sizes[0]);
  out[1] = static_cast<uint32_t>(linear / sizes[0] % sizes[1]);
  out[2] = static_cast<uint32_t>(linear / sizes[0] / sizes[1]);
}

// A random order of the numbers from 0 to n - 1: At(i) is (a * i + b) mod n, and a and n have no common divisor.
class RandomOrder {
 public:
  RandomOrder(uint64_t n, uint64_t seed) : n_(n), step_(1 + Mixed(seed) % n), start_(Mixed(seed + 1) % n) {
    while (std::gcd(step_, n_) != 1) ++step_;
  }
  uint64_t At(uint64_t i) const { return (step_ % n_ * i + start_) % n_; }  // a launch has fewer than 2^32 blocks

 private:
  const uint64_t n_;
  uint64_t step_;
  const uint64_t start_;
};

[[noreturn]] void Die(const char* expected, uint64_t ended, uint64_t at_sync, uint64_t at_exchange) {
  std::fprintf(
      stderr,
      "[cuda/dialect] expected %s; got %llu threads that have ended, %llu that wait at Sync, and %llu that wait in "
      "an exchange; let each thread of the block come to the same waits\n",
      expected, static_cast<unsigned long long>(ended), static_cast<unsigned long long>(at_sync),
      static_cast<unsigned long long>(at_exchange));
  std::abort();
}

}  // namespace

// The fibers of one thread of the process. Only that thread uses it.
class HostFibers {
 public:
  HostFibers() = default;
  HostFibers(const HostFibers&) = delete;
  HostFibers& operator=(const HostFibers&) = delete;

  // Runs all threads of the block that `block` has begun.
  void RunBlock(HostBlock& block, uint32_t threads, const std::function<void(HostBlock&)>& body, uint64_t seed);
  void Sync() { WaitAt(sync_, State::kAtSync, count_); }
  void Exchange(const void* mine, void* other, size_t bytes, int mask);

 private:
  enum class State { kReady, kAtSync, kInExchange, kEnded };
  struct Barrier {
    uint32_t arrived = 0;
    uint64_t generation = 0;
  };
  // The values of a warp's threads. Two exchanges follow each other in different halves, so a thread that is late still
  // finds the values of the former exchange.
  struct Warp {
    Barrier barrier;
    std::array<std::array<std::array<unsigned char, 8>, kLanes>, 2> values;
  };
  struct Fiber {
    Fiber(HostFibers& owner, uint32_t number);
    ~Fiber();
    HostFibers& owner;
    const uint32_t number;
    void* stack;
    FiberContext context;
    FiberSanitizer sanitizer;
    State state = State::kReady;
    const Barrier* waits_at = nullptr;
    uint64_t generation = 0;  // of the barrier, when the fiber came
  };

  static void Main(void* fiber);
  bool MayRun(const Fiber& fiber) const {
    return fiber.state == State::kReady ||
           (fiber.state != State::kEnded && fiber.waits_at->generation != fiber.generation);
  }
  // Lets the fiber run until it waits or has ended.
  void Resume(Fiber& fiber);
  // Called by the running fiber. Lets the scheduler go on.
  void Leave();
  void WaitAt(Barrier& barrier, State state, uint32_t all);
  [[noreturn]] void FailStuck() const;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Warp> warps_;
  Barrier sync_;
  HostBlock* block_ = nullptr;
  const std::function<void(HostBlock&)>* body_ = nullptr;
  uint32_t count_ = 0;  // threads of the block
  uint32_t ended_ = 0;
  uint32_t running_ = 0;  // the number of the fiber that runs
  FiberContext scheduler_;
  FiberSanitizer scheduler_sanitizer_ = FiberSanitizer::OfThread();
};

HostFibers::Fiber::Fiber(HostFibers& owner, uint32_t number)
    : owner(owner),
      number(number),
      stack(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
  if (stack == MAP_FAILED) throw std::bad_alloc();
  // The lowest page stays unmapped, so that a stack that is too small faults.
  (void)mprotect(stack, static_cast<size_t>(sysconf(_SC_PAGESIZE)), PROT_NONE);
  sanitizer = FiberSanitizer::OfFiber(stack, kStackBytes);
  context.Begin(stack, kStackBytes, &Main, this);
}

HostFibers::Fiber::~Fiber() {
  sanitizer.Destroy();
  (void)munmap(stack, kStackBytes);
}

void HostFibers::Main(void* fiber) {
  auto& self = *static_cast<Fiber*>(fiber);
  HostFibers& fibers = self.owner;
  self.sanitizer.Arrive();
  for (;;) {
    (*fibers.body_)(*fibers.block_);
    self.state = State::kEnded;
    ++fibers.ended_;
    fibers.Leave();
  }
}

void HostFibers::Resume(Fiber& fiber) {
  running_ = fiber.number;
  block_->SetThread(fiber.number);
  fiber.state = State::kReady;
  scheduler_sanitizer_.LeaveFor(fiber.sanitizer);
  scheduler_.LeaveFor(fiber.context);
  scheduler_sanitizer_.Arrive();
}

void HostFibers::Leave() {
  Fiber& fiber = *fibers_[running_];
  fiber.sanitizer.LeaveFor(scheduler_sanitizer_);
  fiber.context.LeaveFor(scheduler_);
  fiber.sanitizer.Arrive();
}

void HostFibers::WaitAt(Barrier& barrier, State state, uint32_t all) {
  if (++barrier.arrived == all) {
    barrier.arrived = 0;
    ++barrier.generation;
    return;
  }
  Fiber& fiber = *fibers_[running_];
  fiber.state = state;
  fiber.waits_at = &barrier;
  fiber.generation = barrier.generation;
  Leave();
}

void HostFibers::Exchange(const void* mine, void* other, size_t bytes, int mask) {
  const uint32_t number = running_;
  Warp& warp = warps_[number / kLanes];
  const uint32_t lanes = std::min(kLanes, count_ - number / kLanes * kLanes);
  const uint32_t lane = number % kLanes;
  const uint32_t partner = lane ^ static_cast<uint32_t>(mask);
  if (partner >= lanes || bytes > 8) {
    std::fprintf(
        stderr,
        "[cuda/dialect] expected an exchange of at most 8 bytes with a lane from 0 to %u; got %zu bytes and lane %u; "
        "launch blocks of whole warps\n",
        lanes - 1, bytes, partner);
    std::abort();
  }
  auto& values = warp.values[warp.barrier.generation % 2];
  std::memcpy(values[lane].data(), mine, bytes);
  WaitAt(warp.barrier, State::kInExchange, lanes);
  std::memcpy(other, values[partner].data(), bytes);
}

void HostFibers::RunBlock(HostBlock& block, uint32_t threads, const std::function<void(HostBlock&)>& body,
                          uint64_t seed) {
  block_ = &block;
  body_ = &body;
  count_ = threads;
  ended_ = 0;
  while (fibers_.size() < threads) {
    fibers_.push_back(std::make_unique<Fiber>(*this, static_cast<uint32_t>(fibers_.size())));
  }
  if (warps_.size() < (threads + kLanes - 1) / kLanes) warps_.resize((threads + kLanes - 1) / kLanes);
  for (uint32_t i = 0; i < threads; ++i) fibers_[i]->state = State::kReady;
  for (uint64_t round = 0; ended_ < threads; ++round) {
    const uint64_t random = Mixed(seed + round);
    const auto start = static_cast<uint32_t>((random >> 1) % threads);
    bool progress = false;
    for (uint32_t i = 0; i < threads; ++i) {
      const uint32_t step = (start + i) % threads;
      Fiber& fiber = *fibers_[(random & 1) != 0 ? step : threads - 1 - step];
      if (!MayRun(fiber)) continue;
      Resume(fiber);
      progress = true;
    }
    if (!progress) FailStuck();
  }
}

void HostFibers::FailStuck() const {
  uint64_t at_sync = 0, in_exchange = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    at_sync += fibers_[i]->state == State::kAtSync ? 1 : 0;
    in_exchange += fibers_[i]->state == State::kInExchange ? 1 : 0;
  }
  Die("all threads of a block to wait together", ended_, at_sync, in_exchange);
}

void HostBlock::Sync() {
  if (fibers_ == nullptr) Die("a kernel that waits to declare kWaits", 0, 1, 0);
  fibers_->Sync();
}

void HostBlock::Exchange(const void* mine, void* other, size_t bytes, int mask) {
  if (fibers_ == nullptr) Die("a kernel that exchanges values to declare kWaits", 0, 0, 1);
  fibers_->Exchange(mine, other, bytes, mask);
}

void* HostBlock::Shared(const void* key, size_t bytes) {
  std::vector<unsigned char>& memory = shared_[key];
  if (memory.size() < bytes) memory.assign(bytes, kPoison);
  return memory.data();
}

void* HostBlock::DynamicShared() { return dynamic_.data(); }

void HostBlock::Begin(uint64_t linear) {
  Split(linear, size_.blocks, block_);
  for (auto& [key, memory] : shared_) std::fill(memory.begin(), memory.end(), kPoison);
  dynamic_.assign(size_.shared_bytes, kPoison);
}

void HostBlock::SetThread(uint32_t linear) {
  if (linear < size_.threads[0]) {  // without divisions, because most blocks have one dimension
    thread_[0] = linear;
    thread_[1] = thread_[2] = 0;
  } else {
    Split(linear, size_.threads, thread_);
  }
}

void RunHostBlocks(const LaunchSize& size, bool waits, const std::function<void(HostBlock&)>& body) {
  const uint64_t blocks = Product(size.blocks), threads = Product(size.threads);
  const uint64_t seed = Mixed(next_seed.fetch_add(1, std::memory_order_relaxed));
  HostBlock block(size);
  thread_local HostFibers fibers;
  if (waits) block.fibers_ = &fibers;
  const RandomOrder order(blocks, seed);
  for (uint64_t i = 0; i < blocks; ++i) {
    block.Begin(order.At(i));
    if (waits) {
      fibers.RunBlock(block, static_cast<uint32_t>(threads), body, seed + i * 7919);
      continue;
    }
    const bool backwards = (Mixed(seed + i) & 1) != 0;
    for (uint64_t t = 0; t < threads; ++t) {
      block.SetThread(static_cast<uint32_t>(backwards ? threads - 1 - t : t));
      body(block);
    }
  }
}

void SeedHostBlocks(uint64_t seed) { next_seed.store(seed, std::memory_order_relaxed); }

}  // namespace cohort::cuda
