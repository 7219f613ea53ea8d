#include "cohort/collective/nccl/choice.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

// The first character says what follows: the reason, or the length of the device's name, the name and the identifier.
constexpr char kMissing = 'n';
constexpr char kUsable = 'y';
constexpr char kEnd = '\n';

}  // namespace

std::string EncodeEndpoint(const NcclEndpoint& endpoint) {
  if (!endpoint.missing.empty()) return StrCat(std::string(1, kMissing), endpoint.missing);
  return StrCat(std::string(1, kUsable), endpoint.device, std::string(1, kEnd), endpoint.id);
}

NcclEndpoint DecodeEndpoint(const std::string& text) {
  const size_t end = text.find(kEnd);
  if (text.size() > 1 && text[0] == kMissing) return {text.substr(1), "", ""};
  if (text.empty() || text[0] != kUsable || end == std::string::npos) {
    throw DataLossError(StrCat("[collective] expected what a member of NCCL tells; got ", text.size(), " bytes"));
  }
  return {"", text.substr(1, end - 1), text.substr(end + 1)};
}

NcclChoice Choose(const std::vector<NcclEndpoint>& members, const std::vector<Location>& locations) {
  NcclChoice choice;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (!members[rank].missing.empty()) {
      choice.missing_at = static_cast<int>(rank);
      return choice;
    }
    for (size_t other = 0; other < rank; ++other) {
      if (members[other].device != members[rank].device || locations[other].host != locations[rank].host) continue;
      choice.rank = static_cast<int>(rank);
      choice.same_as = static_cast<int>(other);
      return choice;
    }
  }
  choice.uses_library = true;
  choice.id = members.empty() ? "" : members[0].id;
  return choice;
}

}  // namespace cohort::collective
