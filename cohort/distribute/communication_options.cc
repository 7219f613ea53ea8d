#include "cohort/distribute/communication_options.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

#include "cohort/collective/group.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::distribute {
namespace {

struct Implementation {
  CommunicationImplementation value;
  const char* name;
  const char* hint;  // of collectives
};
constexpr Implementation kImplementations[] = {
    {CommunicationImplementation::kAuto, "AUTO", "auto"},
    {CommunicationImplementation::kRing, "RING", "ring"},
    {CommunicationImplementation::kGloo, "GLOO", "gloo"},
    {CommunicationImplementation::kNccl, "NCCL", "nccl"},
};

std::string Names(bool built_alone) {
  std::string names;
  for (const Implementation& one : kImplementations) {
    if (built_alone && !IsBuilt(one.value)) continue;
    names += StrCat(names.empty() ? "" : ", ", one.name);
  }
  return names;
}

}  // namespace

std::string ImplementationText(CommunicationImplementation implementation) {
  const auto* const found = std::find_if(std::begin(kImplementations), std::end(kImplementations),
                                         [&](const Implementation& one) { return one.value == implementation; });
  return StrCat("CommunicationImplementation.", found->name);
}

CommunicationImplementation ImplementationByName(const std::string& name) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto* const found =
      std::find_if(std::begin(kImplementations), std::end(kImplementations),
                   [&](const Implementation& one) { return one.name == std::string_view(upper); });
  if (found != std::end(kImplementations)) return found->value;
  throw InvalidArgumentError(
      StrCat("[distribute] expected a communication implementation of ", Names(false), "; got '", name, "'"));
}

bool IsBuilt(CommunicationImplementation implementation) {
  if (implementation == CommunicationImplementation::kGloo) return collective::IsBuilt(collective::Algorithm::kGloo);
  if (implementation == CommunicationImplementation::kNccl) return collective::IsBuilt(collective::Algorithm::kNccl);
  return true;
}

void CheckCommunication(const CommunicationOptions& options) {
  for (const Implementation& one : kImplementations) {
    if (one.value != options.implementation || IsBuilt(one.value)) continue;
    const bool nccl = one.value == CommunicationImplementation::kNccl;
    throw InvalidArgumentError(StrCat("[distribute] expected a communication implementation that is built here (",
                                      Names(true), "); got ", one.name,
                                      nccl ? ", which needs devices of NVIDIA; AUTO chooses for you" : ""));
  }
  if (options.bytes_per_pack < 0) {
    throw InvalidArgumentError(
        StrCat("[distribute] expected bytes_per_pack of at least 0; got ", options.bytes_per_pack));
  }
  if (options.timeout.count() < 0) {
    throw InvalidArgumentError(
        StrCat("[distribute] expected timeout of at least 0; got ", options.timeout.count(), " ms"));
  }
  if (options.progress_limit && options.progress_limit->count() < 0) {
    throw InvalidArgumentError(
        StrCat("[distribute] expected progress_limit of at least 0; got ", options.progress_limit->count(), " ms"));
  }
}

std::string CommunicationHint(const CommunicationOptions& options) {
  const auto* const found =
      std::find_if(std::begin(kImplementations), std::end(kImplementations),
                   [&](const Implementation& one) { return one.value == options.implementation; });
  return found->hint;
}

}  // namespace cohort::distribute
