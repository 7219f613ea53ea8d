// A collection of stacks: each thread gets a slot of a fixed table and a signal that carries the number of the slot.
// The handler of the signal writes the addresses of the thread's frames into the slot, marks the slot as full, and
// posts a semaphore. The collecting thread waits for the semaphore, and then finds the names of the addresses. A thread
// may answer late, when its slot belongs to another collection; the number of the collection in the signal tells.
#include "cohort/core/process/stacks.h"

#include <absl/debugging/symbolize.h>
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <semaphore.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <span>
#include <string_view>

#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr int kMostFrames = 64;
constexpr int kHandlerFrames = 2;  // the handler, and the system's return from it
constexpr unsigned kSlotBits = 10;
constexpr size_t kSlots = size_t{1} << kSlotBits;
constexpr uint32_t kRounds = 1U << (31 - kSlotBits);  // the numbers of collections, which begin again at 0

enum SlotState : int { kFree, kAsked, kWriting, kFull };

struct Slot {
  std::atomic<int> state{kFree};
  int depth = 0;
  std::array<void*, kMostFrames> frames;
};

// What the handler uses.
std::array<Slot, kSlots> slots;
std::atomic<uint32_t> round_now{0};
sem_t answers;

void HandleStackSignal(int, siginfo_t* info, void*) {
  if (info->si_code != SI_QUEUE) return;  // not one of ours
  const int saved = errno;
  const auto value = static_cast<uint32_t>(info->si_value.sival_int);
  Slot& slot = slots[value % kSlots];
  int asked = kAsked;
  if (value >> kSlotBits == round_now.load() && slot.state.compare_exchange_strong(asked, kWriting)) {
    slot.depth = backtrace(slot.frames.data(), kMostFrames);
    slot.state.store(kFull);
    sem_post(&answers);
  }
  errno = saved;
}

// Returns the number of the signal, or 0 if no real-time signal is free.
int InstallHandler() {
  // The first call loads the library that unwinds stacks, which a handler must not do.
  void* frames[4];
  backtrace(frames, 4);
  sem_init(&answers, 0, 0);
  for (int number = SIGRTMIN + 3; number <= SIGRTMAX; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0 ||
        action.sa_handler != SIG_DFL) {
      continue;
    }
    action.sa_sigaction = HandleStackSignal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    if (sigaction(number, &action, nullptr) == 0) return number;
  }
  return 0;
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<int> ThreadNumbers() {
  std::vector<int> numbers;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return numbers;
  while (const dirent* entry = readdir(folder)) {
    if (const int number = std::atoi(entry->d_name); number > 0) numbers.push_back(number);
  }
  closedir(folder);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// Returns whether the thread blocks signal `number`, as /proc/self/task/T/status says.
bool Blocks(int thread, int number) {
  std::ifstream file(StrCat("/proc/self/task/", thread, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("SigBlk:")) continue;
    const uint64_t mask = std::strtoull(line.c_str() + 7, nullptr, 16);
    return (mask >> (number - 1) & 1) != 0;
  }
  return false;
}

bool Ask(int thread, int number, uint32_t round, size_t slot) {
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = static_cast<int>(round << kSlotBits | static_cast<uint32_t>(slot));
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, number, &info) == 0;
}

// Waits for `count` answers. Stops at `deadline`, a time of CLOCK_MONOTONIC.
void AwaitAnswers(size_t count, const timespec& deadline) {
  for (size_t i = 0; i < count;) {
    if (sem_clockwait(&answers, CLOCK_MONOTONIC, &deadline) == 0) {
      ++i;
    } else if (errno != EINTR) {
      return;
    }
  }
}

timespec TimeAfter(std::chrono::milliseconds limit) {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t nanos = time.tv_nsec + limit.count() % 1000 * 1'000'000;
  time.tv_sec += limit.count() / 1000 + nanos / 1'000'000'000;
  time.tv_nsec = nanos % 1'000'000'000;
  return time;
}

struct Frame {
  std::string name;
  std::string_view library;  // the file name of the library, "" if it is the program or Cohort's
};

bool IsOfSystem(std::string_view library) {
  for (const char* name : {"libc.so", "libstdc++", "libgrpc", "libgpr", "libabsl", "libgomp", "libomp", "libgcc",
                           "libpthread", "ld-linux", "libdnnl"}) {
    if (library.starts_with(name)) return true;
  }
  return false;
}

Frame Describe(void* address, bool is_return_address) {
  // A return address may be that of the next function, if the call is the last instruction of its function.
  auto* const inside = static_cast<char*>(address) - (is_return_address ? 1 : 0);
  Frame frame;
  Dl_info info{};
  if (dladdr(inside, &info) != 0 && info.dli_fname != nullptr) {
    frame.library = info.dli_fname;
    frame.library.remove_prefix(std::min(frame.library.size(), frame.library.rfind('/') + 1));
  }
  std::array<char, 512> name{};
  if (absl::Symbolize(inside, name.data(), static_cast<int>(name.size()))) {
    frame.name = name.data();
  } else {
    std::array<char, 32> hex{};
    std::snprintf(hex.data(), hex.size(), "%p", address);
    frame.name = hex.data();
    if (!frame.library.empty()) frame.name = StrCat(hex.data(), " in ", frame.library);
  }
  return frame;
}

// Returns whether the frame only waits for others. In builds that are not optimized, or that have a sanitizer, such
// functions lie in the program.
bool OnlyWaits(const Frame& frame) {
  return IsOfSystem(frame.library) || frame.name.find("CondVar::Wait") != std::string::npos ||
         frame.name.find("pthread_cond_") != std::string::npos;
}

// See ThreadStack::idle. A thread's own function may have been merged with its loop by the compiler.
bool IsIdle(const std::vector<Frame>& frames, bool has_own_name) {
  if (frames.empty() || !IsOfSystem(frames.front().library)) return false;
  for (const Frame& frame : frames) {
    if (OnlyWaits(frame)) continue;
    return frame.name.find("Loop") != std::string::npos ||
           (has_own_name && frame.name.find("::_M_run()") != std::string::npos);
  }
  return has_own_name;
}

ThreadStack Read(int thread, const Slot& slot, const std::string& program) {
  ThreadStack stack;
  stack.thread = thread;
  stack.name = FirstLine(StrCat("/proc/self/task/", thread, "/comm"));
  std::vector<Frame> frames;
  for (int i = kHandlerFrames; i < slot.depth; ++i) {
    frames.push_back(Describe(slot.frames[static_cast<size_t>(i)], i > kHandlerFrames));
  }
  stack.idle = IsIdle(frames, stack.name != program);
  for (Frame& frame : frames) stack.frames.push_back(std::move(frame.name));
  return stack;
}

class Collector {
 public:
  static Collector& Get() {
    static auto* const collector = new Collector();
    return *collector;
  }

  std::vector<ThreadStack> Collect(std::chrono::milliseconds limit) COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    std::vector<ThreadStack> stacks;
    const std::vector<int> threads = ThreadNumbers();
    const timespec deadline = TimeAfter(limit);
    for (size_t begin = 0; begin < threads.size(); begin += kSlots) {
      CollectSome({threads.data() + begin, std::min(kSlots, threads.size() - begin)}, deadline, &stacks);
    }
    return stacks;
  }

 private:
  void CollectSome(std::span<const int> threads, const timespec& deadline, std::vector<ThreadStack>* stacks)
      COHORT_REQUIRES(mu_) {
    const uint32_t round = (round_now.load() + 1) % kRounds;
    while (sem_trywait(&answers) == 0) {  // answers that came after their deadline
    }
    round_now.store(round);
    std::vector<bool> asked(threads.size(), false);
    for (size_t i = 0; i < threads.size(); ++i) {
      if (signal_ == 0 || slots[i].state.load() == kWriting) continue;  // a late answer is being written
      slots[i].state.store(kAsked);
      asked[i] = Ask(threads[i], signal_, round, i);
    }
    AwaitAnswers(static_cast<size_t>(std::count(asked.begin(), asked.end(), true)), deadline);
    const std::string program = FirstLine(StrCat("/proc/self/task/", getpid(), "/comm"));
    for (size_t i = 0; i < threads.size(); ++i) {
      int state = kAsked;
      if (slots[i].state.compare_exchange_strong(state, kFree) || state != kFull || !asked[i]) {
        stacks->push_back(NoAnswer(threads[i]));
        continue;
      }
      stacks->push_back(Read(threads[i], slots[i], program));
      slots[i].state.store(kFree);
    }
  }

  ThreadStack NoAnswer(int thread) const COHORT_REQUIRES(mu_) {
    ThreadStack stack;
    stack.thread = thread;
    stack.name = FirstLine(StrCat("/proc/self/task/", thread, "/comm"));
    stack.why_not = stack.name.empty()        ? "it has ended"
                    : signal_ == 0            ? "this process has no free real-time signal"
                    : Blocks(thread, signal_) ? "it blocks signals"
                                              : "it did not answer in time";
    return stack;
  }

  Mutex mu_;
  const int signal_ = InstallHandler();
};

}  // namespace

std::vector<ThreadStack> ThreadStacks(std::chrono::milliseconds limit) { return Collector::Get().Collect(limit); }

std::string DescribeStacks(const std::vector<ThreadStack>& stacks) {
  std::vector<std::pair<std::string, std::string>> entries;  // the text of the stack, and the threads that have it
  for (const ThreadStack& stack : stacks) {
    if (stack.why_not == "it has ended") continue;
    std::string text;
    for (size_t i = 0; i < stack.frames.size(); ++i) text += StrCat("    #", i, " ", stack.frames[i], "\n");
    if (!stack.why_not.empty()) text = StrCat("    no stack: ", stack.why_not, "\n");
    const std::string thread = StrCat(stack.thread, " '", stack.name, "'");
    const auto same = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == text; });
    if (same == entries.end()) {
      entries.emplace_back(std::move(text), thread);
    } else {
      same->second += StrCat(", ", thread);
    }
  }
  std::string all;
  for (const auto& [text, threads] : entries) all += StrCat("  thread ", threads, "\n", text);
  return all;
}

}  // namespace cohort
