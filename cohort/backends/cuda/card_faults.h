// What can be wrong with a driver, a card or a process, in words: errors and log lines that say what the user can do.
// Everything here is decided from plain facts, so it is tested on machines without a card.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/error.h"

namespace cohort::cuda {

// The kinds of errors of a card after which the user has to do something.
enum class CardFault {
  kOther,
  kOutOfMemory,   // not even a context fits into the card's memory
  kNoCode,        // the program has no code for this model
  kNotAvailable,  // another process holds the card alone, or nobody may use it
  kNotReady,      // the driver, or a service that the card needs, does not work now
  kBroken,        // a kernel or the card has failed, and all later calls of the process fail, too
  kFaulty         // the same, and the card or its links may be damaged
};

// Returns the kind of an error of cudart by its name, such as "cudaErrorMemoryAllocation" (cudaGetErrorName).
CardFault FaultOf(std::string_view name);

// Returns the error of a call: "[cuda] cudaMalloc on card 0: out of memory (cudaErrorMemoryAllocation); ...", which
// ends with what the user can do. Its code is kResourceExhausted for kOutOfMemory, kFailedPrecondition for kNoCode,
// kNotAvailable and kNotReady, and kInternal for the others. `call` may end with what it was for ("cudaLaunchKernel of
// F"); `text` is the driver's. `card` is negative if it is not known.
Status CardError(CardFault fault, const std::string& call, int card, const std::string& text);

// What is known about the driver of a machine before a card is used.
struct DriverFacts {
  bool exists = false;    // there are signs of one: files of its kernel module
  std::string looked_at;  // where the signs would be
  int cuda = 0;           // the version of CUDA that it supports, as 1000 * major + 10 * minor; 0: not known
  std::string version;    // of its kernel module ("535.104.05"); empty: not known
  int cards = 0;          // how many it lists
  std::string listing;    // the text of the driver's error if it could not list them
  std::optional<std::string> visible;  // CUDA_VISIBLE_DEVICES
};

// The oldest driver that can be used, as DriverFacts::cuda counts: driver 580.
inline constexpr int kOldestCuda = 13000;

// Returns why no card of the machine can be used, or "" if there is one.
std::string ProblemOfDriver(const DriverFacts& facts);

// Returns the value of the environment variable CUDA_VISIBLE_DEVICES, if it is set.
std::optional<std::string> VisibleDevices();
// Returns whether the value of CUDA_VISIBLE_DEVICES hides all cards because the user wants it: it is empty or begins
// with "-1".
bool HidesAllCards(const std::optional<std::string>& visible);
// Returns a warning if CUDA_VISIBLE_DEVICES lists more cards than the driver does, else "". The driver stops at the
// first entry that is no card of the machine.
std::string ProblemOfVisibleDevices(const std::optional<std::string>& visible, int cards);

// Returns whether code for `architectures`, a list as in CMAKE_CUDA_ARCHITECTURES but with commas ("80-real,90"), runs
// on a card of compute capability major.minor. A number alone stands for code for cards of this major version from this
// one on ("-real"), and for code that the driver translates for later cards ("-virtual"). An entry that is no number
// runs everywhere.
bool HasCodeFor(const std::string& architectures, int major, int minor);
// Returns why a program with code for `architectures` cannot use a card, or "" if it can.
std::string ProblemOfArchitecture(const std::string& architectures, int major, int minor);

// Says that the calling process is about to use a card. Throws FailedPreconditionError if it is the child of a process
// that had used one before it called fork: a driver of CUDA does not work there. Thread-safe.
void UseCards();
// Returns whether UseCards would throw.
bool IsForkedFromUser();

// Keeps an object until the process ends: memory to which a card still writes if it stands still now and goes on later.
// Thread-safe.
void KeepUntilProcessEnds(std::shared_ptr<const void> object);

}  // namespace cohort::cuda
