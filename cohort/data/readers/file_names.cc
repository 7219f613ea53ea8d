// Datasets of names of files.
#include <glob.h>

#include <algorithm>
#include <cerrno>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/readers/readers.h"

namespace cohort::data {
namespace {

// Appends the paths that match. Returns whether there is one.
bool AddMatches(const std::string& pattern, std::vector<std::string>* paths) {
  struct Matches {
    glob_t found{};
    ~Matches() { globfree(&found); }
  } matches;
  const int status = glob(pattern.c_str(), GLOB_NOSORT | GLOB_PERIOD, nullptr, &matches.found);
  if (status == GLOB_NOSPACE) ThrowErrno(ENOMEM, StrCat("[data] cannot list the files that match '", pattern, "'"));
  if (status != 0) return false;
  const size_t before = paths->size();
  for (size_t i = 0; i < matches.found.gl_pathc; ++i) {
    const std::string_view path = matches.found.gl_pathv[i];
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (name != "." && name != "..") paths->emplace_back(path);
  }
  return paths->size() > before;
}

}  // namespace

Dataset FileNames(const std::vector<std::string>& paths) { return Dataset::FromTensorSlices({Tensor::Vector(paths)}); }

std::vector<std::string> MatchingFiles(const std::vector<std::string>& patterns) {
  if (patterns.empty()) throw InvalidArgumentError("[data] expected one pattern of files at least; got none");
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    if (!AddMatches(pattern, &paths)) {
      throw NotFoundError(StrCat("[data] expected files that match '", pattern, "'; there are none"));
    }
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

Dataset ListFiles(const std::vector<std::string>& patterns, const ListFilesOptions& options) {
  const std::vector<std::string> paths = MatchingFiles(patterns);
  const Dataset names = FileNames(paths);
  return options.shuffle ? names.Shuffle(static_cast<int64_t>(paths.size()), options.seed) : names;
}

}  // namespace cohort::data
