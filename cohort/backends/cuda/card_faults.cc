#include "cohort/backends/cuda/card_faults.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr const char* kOldestDriver = "580";

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    part.erase(0, part.find_first_not_of(" \t"));
    part.erase(part.find_last_not_of(" \t") + 1);
    parts.push_back(part);
  }
  return parts;
}

const char* Advice(CardFault fault) {
  switch (fault) {
    case CardFault::kOutOfMemory:
      return "; end other programs that use the card (nvidia-smi lists them), or let this one use another card "
             "(CUDA_VISIBLE_DEVICES)";
    case CardFault::kNoCode:
      return "; this program has no code for this card: build it with -DCMAKE_CUDA_ARCHITECTURES=N, where N is the "
             "card's compute capability without the point";
    case CardFault::kNotAvailable:
      return "; another process uses the card alone, or nobody may use it (nvidia-smi -q -d COMPUTE): end that "
             "process, or let this one use another card (CUDA_VISIBLE_DEVICES)";
    case CardFault::kNotReady:
      return "; see whether nvidia-smi lists the card, and whether the services run that this machine needs (of "
             "NVIDIA's driver, of the links between cards, of MPS); then start the program again";
    case CardFault::kFaulty:
      return "; this process cannot use the card any more, and the card or a link to it may be damaged (nvidia-smi -q, "
             "and lines with Xid of the system's log): start the program again, from its last checkpoint, or let it "
             "use another card (CUDA_VISIBLE_DEVICES)";
    case CardFault::kBroken:
      return "; this process cannot use the card any more: start the program again, from its last checkpoint "
             "(with CUDA_LAUNCH_BLOCKING=1 and COHORT_RECORD_STEPS=0 in its environment, the error names the node that "
             "fails)";
    case CardFault::kOther: break;
  }
  return "";
}

Code CodeOf(CardFault fault) {
  switch (fault) {
    case CardFault::kOutOfMemory: return Code::kResourceExhausted;
    case CardFault::kNoCode:
    case CardFault::kNotAvailable:
    case CardFault::kNotReady: return Code::kFailedPrecondition;
    default: return Code::kInternal;
  }
}

// The errors of cudart that are of a kind. What driver_types.h says of the others ends with the call: an argument is
// wrong, a feature is missing, or a capture is refused.
struct NamedFault {
  std::string_view name;
  CardFault fault;
};
constexpr NamedFault kNamedFaults[] = {
    {"cudaErrorMemoryAllocation", CardFault::kOutOfMemory},
    {"cudaErrorNoKernelImageForDevice", CardFault::kNoCode},
    {"cudaErrorInvalidDeviceFunction", CardFault::kNoCode},
    {"cudaErrorInvalidPtx", CardFault::kNoCode},  // the driver cannot translate the code for this card
    {"cudaErrorUnsupportedPtxVersion", CardFault::kNoCode},
    {"cudaErrorJitCompilerNotFound", CardFault::kNoCode},
    {"cudaErrorJitCompilationDisabled", CardFault::kNoCode},
    {"cudaErrorDevicesUnavailable", CardFault::kNotAvailable},
    {"cudaErrorDeviceAlreadyInUse", CardFault::kNotAvailable},
    {"cudaErrorInitializationError", CardFault::kNotReady},
    {"cudaErrorStartupFailure", CardFault::kNotReady},
    {"cudaErrorSoftwareValidityNotEstablished", CardFault::kNotReady},
    {"cudaErrorDeviceNotLicensed", CardFault::kNotReady},
    {"cudaErrorOperatingSystem", CardFault::kNotReady},
    {"cudaErrorSystemNotReady", CardFault::kNotReady},
    {"cudaErrorSystemDriverMismatch", CardFault::kNotReady},
    {"cudaErrorCompatNotSupportedOnDevice", CardFault::kNotReady},
    {"cudaErrorMpsConnectionFailed", CardFault::kNotReady},
    {"cudaErrorMpsRpcFailure", CardFault::kNotReady},
    {"cudaErrorMpsServerNotReady", CardFault::kNotReady},
    {"cudaErrorMpsMaxClientsReached", CardFault::kNotReady},
    {"cudaErrorMpsMaxConnectionsReached", CardFault::kNotReady},
    {"cudaErrorAssert", CardFault::kBroken},
    {"cudaErrorHardwareStackError", CardFault::kBroken},
    {"cudaErrorIllegalAddress", CardFault::kBroken},
    {"cudaErrorIllegalInstruction", CardFault::kBroken},
    {"cudaErrorInvalidAddressSpace", CardFault::kBroken},
    {"cudaErrorInvalidPc", CardFault::kBroken},
    {"cudaErrorLaunchFailure", CardFault::kBroken},
    {"cudaErrorLaunchTimeout", CardFault::kBroken},
    {"cudaErrorMisalignedAddress", CardFault::kBroken},
    {"cudaErrorTensorMemoryLeak", CardFault::kBroken},
    {"cudaErrorContextIsDestroyed", CardFault::kBroken},
    {"cudaErrorMpsClientTerminated", CardFault::kBroken},
    {"cudaErrorContained", CardFault::kFaulty},
    {"cudaErrorECCUncorrectable", CardFault::kFaulty},
    {"cudaErrorExternalDevice", CardFault::kFaulty},
    {"cudaErrorNvlinkUncorrectable", CardFault::kFaulty},
};

std::string CudaVersion(int version) { return StrCat(version / 1000, ".", version % 1000 / 10); }

// Returns the first entry of CUDA_VISIBLE_DEVICES that is there twice, or "".
std::string EntryThatIsThereTwice(const std::string& visible) {
  std::vector<std::string> entries = Split(visible, ',');
  for (auto at = entries.begin(); at != entries.end(); ++at) {
    if (std::find(entries.begin(), at, *at) != at) return *at;
  }
  return "";
}

// The process that has used cards first, and whether this one is a child of it.
std::atomic<pid_t> first_user{0};
std::atomic<bool> is_child{false};

void AfterForkInChild() {
  if (first_user.load() != 0) is_child.store(true);
}

}  // namespace

CardFault FaultOf(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kNamedFaults), std::end(kNamedFaults),
                                         [&](const NamedFault& one) { return one.name == name; });
  return found == std::end(kNamedFaults) ? CardFault::kOther : found->fault;
}

Status CardError(CardFault fault, const std::string& call, int card, const std::string& text) {
  return Status(CodeOf(fault), StrCat("[cuda] ", call, card < 0 ? std::string() : StrCat(" on card ", card), ": ", text,
                                      Advice(fault)));
}

std::string ProblemOfDriver(const DriverFacts& facts) {
  const std::string wanted = StrCat("expected NVIDIA's driver ", kOldestDriver, " or later");
  if (!facts.exists) {
    return StrCat(wanted, "; got none: this machine has no ", facts.looked_at, "; install it if the machine has a GPU");
  }
  const std::string version = facts.version.empty() ? "of unknown version" : facts.version;
  if (facts.cuda == 0) {
    return StrCat(wanted, "; got driver ", version,
                  ", whose libcuda.so.1 cannot be opened; install the driver's library "
                  "libcuda.so.1 of the same version, or give this container access to it");
  }
  if (facts.cuda < kOldestCuda) {
    return StrCat(wanted, ", which has CUDA ", CudaVersion(kOldestCuda), "; got driver ", version, ", which has CUDA ",
                  CudaVersion(facts.cuda), "; install a newer driver");
  }
  if (facts.cards > 0) return "";
  if (HidesAllCards(facts.visible)) {
    return StrCat("CUDA_VISIBLE_DEVICES is '", *facts.visible, "', which hides all cards");
  }
  if (facts.visible) {
    const std::string twice = EntryThatIsThereTwice(*facts.visible);
    return StrCat("expected CUDA_VISIBLE_DEVICES to list numbers or UUIDs of cards, with commas between them; got '",
                  *facts.visible, "', of which the driver knows no card",
                  twice.empty() ? std::string() : StrCat(", because '", twice, "' is there twice"), " (", facts.listing,
                  "); correct the variable (nvidia-smi -L lists the cards)");
  }
  return StrCat("expected at least one card; the driver lists none (", facts.listing,
                "); see whether nvidia-smi lists them");
}

std::optional<std::string> VisibleDevices() {
  const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bool HidesAllCards(const std::optional<std::string>& visible) {
  if (!visible) return false;
  const std::vector<std::string> entries = Split(*visible, ',');
  return entries.empty() || entries[0].empty() || entries[0] == "-1";
}

std::string ProblemOfVisibleDevices(const std::optional<std::string>& visible, int cards) {
  if (!visible) return "";
  std::vector<std::string> entries = Split(*visible, ',');
  entries.erase(std::find(entries.begin(), entries.end(), "-1"), entries.end());  // hides what stands behind it
  const auto listed = static_cast<int>(entries.size());
  if (cards >= listed) return "";
  // Of several parts of cards (MIG), the driver lists only the first.
  if (entries[static_cast<size_t>(cards)].starts_with("MIG-")) return "";
  return StrCat("expected CUDA_VISIBLE_DEVICES to list numbers or UUIDs of cards of this machine; got '", *visible,
                "', of whose ", listed, " entries the driver takes the first ", cards, ", because it knows no card '",
                entries[static_cast<size_t>(cards)], "'; correct the variable (nvidia-smi -L lists the cards)");
}

bool HasCodeFor(const std::string& architectures, int major, int minor) {
  const int card = 10 * major + minor;
  for (const std::string& entry : Split(architectures, ',')) {
    int number = 0;
    const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
    if (error != std::errc()) return true;  // "native", "all"
    const std::string kind(end, static_cast<size_t>(entry.data() + entry.size() - end));
    if (kind.starts_with('a')) {  // for one model only
      if (number == card) return true;
      continue;
    }
    if (kind.starts_with('f')) {  // for models of one major version
      if (number / 10 == major && number <= card) return true;
      continue;
    }
    const bool real = kind != "-virtual" && number / 10 == major && number <= card;
    const bool translated = kind != "-real" && number <= card;
    if (real || translated) return true;
  }
  return false;
}

std::string ProblemOfArchitecture(const std::string& architectures, int major, int minor) {
  if (HasCodeFor(architectures, major, minor)) return "";
  return StrCat("expected a card for which this program has code (CMAKE_CUDA_ARCHITECTURES is ", architectures,
                "); got compute capability ", major, ".", minor,
                "; build the program with -DCMAKE_CUDA_ARCHITECTURES=", major, minor);
}

void UseCards() {
  if (is_child.load(std::memory_order_relaxed)) [[unlikely]] {
    throw FailedPreconditionError(
        StrCat("[cuda] expected a process that was not forked after the first use of a GPU; got process ", getpid(),
               ", a child of process ", first_user.load(),
               ", which had used one; CUDA does not work there: fork before devices are used, or start a program in "
               "the child (exec)"));
  }
  if (first_user.load(std::memory_order_relaxed) != 0) [[likely]]
    return;
  static const bool registered = pthread_atfork(nullptr, nullptr, &AfterForkInChild) == 0;
  (void)registered;
  first_user.store(getpid());
}

void KeepUntilProcessEnds(std::shared_ptr<const void> object) {
  static Mutex mu;
  static auto* const kept = new std::vector<std::shared_ptr<const void>>;  // is never destroyed
  MutexLock lock(mu);
  kept->push_back(std::move(object));
}

bool IsForkedFromUser() { return is_child.load(std::memory_order_relaxed); }

}  // namespace cohort::cuda
