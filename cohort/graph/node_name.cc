#include "cohort/graph/node_name.h"

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// Returns the path of the folder cohort/ as the compiler was given it, "" if this file's path is not as expected.
constexpr std::string_view OwnFolder() {
  constexpr std::string_view kOwnName = "graph/node_name.cc";
  constexpr std::string_view path = __FILE__;
  return path.ends_with(kOwnName) ? path.substr(0, path.size() - kOwnName.size()) : "";
}

}  // namespace

bool CallSite::IsOfProgram() const {
  constexpr std::string_view kFolder = OwnFolder();
  if (file == nullptr) return false;
  const std::string_view path = file;
  if (kFolder.empty() || !path.starts_with(kFolder)) return true;
  return path.ends_with("_test.cc") || path.find("/testing/") != std::string_view::npos;
}

std::string CallSite::ToString() const {
  if (file == nullptr) return "";
  std::string_view path = file;
  const size_t last = path.rfind('/');
  const size_t before = last == std::string_view::npos || last == 0 ? last : path.rfind('/', last - 1);
  if (before != std::string_view::npos) path.remove_prefix(before + 1);
  return StrCat(path, ":", line);
}

}  // namespace cohort
