#include "cohort/backends/cuda/libraries/dynamic_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <sys/stat.h>

#include <cstdlib>
#include <sstream>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool Exists(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0;
}

// Adds what matches the pattern, in the order of the names.
void AddMatches(const std::string& pattern, std::vector<std::string>& paths) {
  glob_t found = {};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  }
  globfree(&found);
}

// The text of the last error of the loader.
std::string LoaderError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

}  // namespace

DynamicLibrary::DynamicLibrary(std::string what, std::string path, void* handle)
    : what_(std::move(what)), path_(std::move(path)), handle_(handle) {}

DynamicLibrary DynamicLibrary::Open(const LibraryRequest& request, const std::vector<std::string>& folders) {
  std::vector<std::string> tried;
  for (const std::string& file : request.files) {
    std::vector<std::string> paths;
    paths.reserve(folders.size() + 1);
    for (const std::string& folder : folders) paths.push_back(StrCat(folder, "/", file));
    paths.push_back(file);  // where the loader looks
    for (const std::string& path : paths) {
      const bool by_loader = path == file;
      if (!by_loader && !Exists(path)) {
        tried.push_back(StrCat(path, " (no such file)"));
        continue;
      }
      void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle == nullptr) {
        tried.push_back(StrCat(path, by_loader ? " by the system's loader (" : " (", LoaderError(), ")"));
        continue;
      }
      DynamicLibrary library(request.what, path, handle);
      const std::string wrong = request.check ? request.check(library) : "";
      if (wrong.empty()) return library;
      tried.push_back(StrCat(path, " (", wrong, ")"));
    }
  }
  throw FailedPreconditionError(StrCat("[cuda/libraries] expected ", request.what,
                                       "; got no usable file: ", StrJoin(tried, "; "),
                                       "; install it, or set COHORT_CUDA_LIBRARY_PATH to its "
                                       "folder"));
}

void* DynamicLibrary::FindAddress(const char* name) const {
  dlerror();
  return dlsym(handle_, name);
}

void* DynamicLibrary::Address(const char* name) const {
  void* address = FindAddress(name);
  if (address != nullptr) return address;
  throw FailedPreconditionError(StrCat(
      "[cuda/libraries] expected the function ", name, " in ", what_, "; got none in ", path_, ": ", LoaderError(),
      "; install another release of the library, or set COHORT_CUDA_LIBRARY_PATH to the "
      "folder of one"));
}

std::vector<std::string> CudaLibraryFolders() {
  std::vector<std::string> folders;
  std::istringstream listed(Environment("COHORT_CUDA_LIBRARY_PATH"));
  for (std::string folder; std::getline(listed, folder, ':');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  const std::string toolkit = Environment("CUDA_HOME");
  AddMatches((toolkit.empty() ? "/usr/local/cuda" : toolkit) + "/lib64", folders);
  std::vector<std::string> roots;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string root = Environment(variable); !root.empty()) roots.push_back(root);
  }
  if (const std::string home = Environment("HOME"); !home.empty()) roots.push_back(home + "/.local");
  roots.insert(roots.end(), {"/usr/local", "/usr"});
  for (const std::string& root : roots) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      AddMatches(StrCat(root, "/lib/python3*/", packages, "/nvidia/*/lib"), folders);
    }
  }
  return folders;
}

}  // namespace cohort::cuda
