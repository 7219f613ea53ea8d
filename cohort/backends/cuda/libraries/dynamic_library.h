// DynamicLibrary: a library of a vendor that is opened when it is first needed. So one program runs on machines with
// and without the library.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace cohort::cuda {

class DynamicLibrary;

// Which library to open.
struct LibraryRequest {
  std::string what;  // for errors: "cuDNN 9"
  // Names of the file: the wanted one first, then names under which other versions may lie, so that the error can name
  // them ("libcudnn.so.9", "libcudnn.so.8").
  std::vector<std::string> files;
  // Returns why the opened library cannot be used ("its version is 8.9.7"), or "" if it can. May be empty.
  std::function<std::string(const DynamicLibrary&)> check;
};

// A library that is open. It stays open until the process ends, because libraries of CUDA do not bear to be closed.
// Copies stand for the same library. Thread-safe.
class DynamicLibrary {
 public:
  // Opens the first usable file. For each name in `files`, it looks in `folders`, in order, and then where the system's
  // loader looks. Throws FailedPreconditionError, which names all paths that were tried and what was wrong with each.
  static DynamicLibrary Open(const LibraryRequest& request, const std::vector<std::string>& folders);

  // Returns the function `name` of the library. F is its type: Get<decltype(cudnnGetVersion)>("cudnnGetVersion").
  // Throws FailedPreconditionError if the library has no such function.
  template <typename F>
  F* Get(const char* name) const {
    return reinterpret_cast<F*>(Address(name));
  }
  // Returns the same, or null if the library has no such function.
  template <typename F>
  F* Find(const char* name) const {
    return reinterpret_cast<F*>(FindAddress(name));
  }
  // Opens another file of the library's folder, if it is there. A library that wants this file by its bare name then
  // gets it, although the system's loader does not look into the folder. Does nothing if the system's loader has found
  // the library.
  void OpenNeighbour(const std::string& file) const;
  // Returns the path of the file, or its name if the system's loader has found it.
  const std::string& path() const { return path_; }

 private:
  DynamicLibrary(std::string what, std::string path, void* handle);
  void* Address(const char* name) const;
  void* FindAddress(const char* name) const;

  std::string what_;
  std::string path_;
  void* handle_;
};

// Returns the folders in which libraries of CUDA may lie, apart from those of the system's loader, in this order:
// - those that the environment variable COHORT_CUDA_LIBRARY_PATH lists, with colons between them;
// - lib64 of the toolkit in CUDA_HOME, or else in /usr/local/cuda;
// - nvidia/*/lib of Python's packages: of the active environment (VIRTUAL_ENV, CONDA_PREFIX), of each environment
//   whose python3 stands in a folder of PATH, of the user (HOME/.local), and of the system.
// Only folders that exist are returned, except those of COHORT_CUDA_LIBRARY_PATH.
std::vector<std::string> CudaLibraryFolders();

}  // namespace cohort::cuda
