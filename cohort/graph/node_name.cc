#include "cohort/graph/node_name.h"

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// The build cuts the path of Cohort's sources before this folder (cmake/CohortToolchain.cmake). A program's sources
// have the path that its own build gives to the compiler.
constexpr std::string_view kOwnFolder = "cohort/";

}  // namespace

bool CallSite::IsOfProgram() const {
  if (file == nullptr) return false;
  const std::string_view path = file;
  if (path.find("/include/c++/") != std::string_view::npos) return false;  // the standard library, as in make_unique
  if (!path.starts_with(kOwnFolder)) return true;
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
