#include "cohort/cluster/host_identity.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace cohort {

std::string HostIdentity(const std::string& proc) {
  std::string boot_id;
  std::ifstream file(proc + "/sys/kernel/random/boot_id");
  std::getline(file, boot_id);
  std::error_code failed;
  const std::string network = std::filesystem::read_symlink(proc + "/self/ns/net", failed).string();
  if (boot_id.empty() || failed || network.empty()) return "";
  return boot_id + "/" + network;
}

std::vector<int> NumberHosts(const std::vector<std::string>& identities) {
  std::vector<int> numbers;
  int hosts = 0;
  for (auto it = identities.begin(); it != identities.end(); ++it) {
    const auto known = it->empty() ? it : std::find(identities.begin(), it, *it);
    numbers.push_back(known == it ? hosts++ : numbers[static_cast<size_t>(known - identities.begin())]);
  }
  return numbers;
}

}  // namespace cohort
