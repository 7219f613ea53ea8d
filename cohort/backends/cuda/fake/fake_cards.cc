// Cards for a whole program: a program that links this object finds fake cards when it looks for GPUs, as it would find
// real ones. Environment variables say what the machine has:
// - COHORT_FAKE_CARDS: how many cards (2);
// - COHORT_FAKE_DRIVER: the version of the driver and that of its CUDA ("535.104.05 12020"). Without it, the driver is
//   new enough. If it is empty, the machine has no driver;
// - COHORT_FAKE_FAULT: the number of the piece of work of the first card that uses a wrong address (none).
// CUDA_VISIBLE_DEVICES hides cards, also if the program itself sets it before it looks. For tests only.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/driver_source.h"
#include "cohort/backends/cuda/fake/fake_blas.h"
#include "cohort/backends/cuda/fake/fake_dnn.h"
#include "cohort/backends/cuda/fake/fake_driver.h"
#include "cohort/backends/cuda/fake/process_nccl.h"
#include "cohort/backends/register.h"
#include "cohort/core/text/str_split.h"

namespace cohort::cuda {
namespace {

// Returns how many of the machine's cards NVIDIA's driver lists. It reads a number from the begin of each entry, stops
// at the first that is no card, and lists none if a card stands there twice. The fake cards are alike, so it does not
// matter which they are.
int CountVisible(const std::optional<std::string>& visible, int cards) {
  if (!visible) return cards;
  std::vector<int> listed;
  for (const std::string& entry : StrSplit(*visible, ',')) {
    const size_t begin = std::min(entry.find_first_not_of(' '), entry.size());
    int number = -1;
    std::from_chars(entry.data() + begin, entry.data() + entry.size(), number);
    if (std::find(listed.begin(), listed.end(), number) != listed.end()) return 0;
    if (number < 0 || number >= cards) break;
    listed.push_back(number);
  }
  return static_cast<int>(listed.size());
}

DriverSigns Look() {
  const char* driver = std::getenv("COHORT_FAKE_DRIVER");
  return driver != nullptr && *driver == '\0' ? DriverSigns::kNone : DriverSigns::kSome;
}

Driver* Make(std::string* why) {
  DriverFacts facts;
  facts.looked_at = "/proc/driver/nvidia/version";
  facts.visible = VisibleDevices();
  facts.exists = Look() == DriverSigns::kSome;
  facts.listing = "no CUDA-capable device is detected (cudaErrorNoDevice)";
  const char* driver = std::getenv("COHORT_FAKE_DRIVER");
  std::istringstream(driver == nullptr ? "580.65.06 13000" : driver) >> facts.version >> facts.cuda;
  const char* cards = std::getenv("COHORT_FAKE_CARDS");
  facts.cards = CountVisible(facts.visible, cards == nullptr ? 2 : std::atoi(cards));
  *why = ProblemOfDriver(facts);
  if (!why->empty()) return nullptr;
  FakeDriverOptions options;
  options.cards = facts.cards;
  auto* made = new FakeDriver(options);  // lives as long as the process
  if (const char* fault = std::getenv("COHORT_FAKE_FAULT")) made->control().FailWork(0, std::atoll(fault));
  InstallBlas(new FakeBlas(*made));
  InstallDnn(new FakeDnn(*made));
  InstallNccl(new ProcessNccl(*made));
  return made;
}

// Runs before the constructors of other sources, because they register the backends, which look for a driver.
__attribute__((constructor(101))) void InstallFakeCards() { InstallDriverSource({Make, Look}); }

// In a build without CUDA, RegisterBackends leaves this backend out.
const bool kRegistered = [] {
  RegisterBackends();
  if (LookForDriverOfMachine() == DriverSigns::kNotBuilt) RegisterIfThereIsADriver();
  return true;
}();

}  // namespace
}  // namespace cohort::cuda
