#include "cohort/backends/cuda/libraries/dynamic_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
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

// Returns the parts of a text with colons between them, without empty ones.
std::vector<std::string> SplitPath(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream listed(text);
  for (std::string part; std::getline(listed, part, ':');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

// Returns the folders that may have Python's packages in lib/python3*/, each once.
std::vector<std::string> PythonRoots() {
  std::vector<std::string> roots;
  const auto add = [&](const std::string& root) {
    if (!root.empty() && std::find(roots.begin(), roots.end(), root) == roots.end()) roots.push_back(root);
  };
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) add(Environment(variable));
  for (const std::string& folder : SplitPath(Environment("PATH"))) {
    if (folder.ends_with("/bin") && Exists(folder + "/python3")) add(folder.substr(0, folder.rfind('/')));
  }
  if (const std::string home = Environment("HOME"); !home.empty()) add(home + "/.local");
  for (const char* root : {"/usr/local", "/usr"}) add(root);
  return roots;
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

void DynamicLibrary::OpenNeighbour(const std::string& file) const {
  const size_t slash = path_.rfind('/');
  if (slash != std::string::npos) dlopen(StrCat(path_.substr(0, slash + 1), file).c_str(), RTLD_NOW | RTLD_LOCAL);
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
  std::vector<std::string> folders = SplitPath(Environment("COHORT_CUDA_LIBRARY_PATH"));
  const std::string toolkit = Environment("CUDA_HOME");
  AddMatches((toolkit.empty() ? "/usr/local/cuda" : toolkit) + "/lib64", folders);
  for (const std::string& root : PythonRoots()) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      AddMatches(StrCat(root, "/lib/python3*/", packages, "/nvidia/*/lib"), folders);
    }
  }
  return folders;
}

}  // namespace cohort::cuda
