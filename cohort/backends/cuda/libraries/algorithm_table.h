// AlgorithmTable: algorithms for calls of the vendor's libraries, by card, library and call, as a text. The one that
// belongs to the program is algorithms.txt. docs/formats.md describes the format.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "cohort/backends/cuda/libraries/algorithm.h"

namespace cohort::cuda {

// What an entry is for.
struct AlgorithmKey {
  std::string card;  // the model: "NVIDIA H100 80GB HBM3"
  LibraryName library;
  std::string call;  // "product float32 m=64 n=10 k=784 ..."
};

// Returns the entry as a line of a table, with its end of line.
std::string AlgorithmLine(const AlgorithmKey& key, const Algorithm& algorithm);

// A table in memory. Copies are independent. Not thread-safe.
class AlgorithmTable {
 public:
  // An entry, and its place for messages.
  struct Entry {
    Algorithm algorithm;  // without its workspace
    std::string version;  // of the library
    std::string where;    // "table.txt:12"
  };

  AlgorithmTable() = default;
  // Reads a table. `name` is the path, or another name for messages. Throws InvalidArgumentError for a line that is no
  // entry, and for a text that does not begin as a table does; the message names the line.
  AlgorithmTable(const std::string& name, std::string_view text);

  // Returns the entry for the key, or null. If there are several, it is the last one.
  const Entry* Find(const AlgorithmKey& key) const;
  // Returns the entry for the same card and call with another version of the library, or null.
  const Entry* FindOtherVersion(const AlgorithmKey& key) const;
  void Add(const AlgorithmKey& key, Entry entry);
  size_t size() const { return size_; }

 private:
  void AddLine(const std::string& where, std::string_view line);

  // By card, name of the library, and call. Then by version.
  std::map<std::tuple<std::string, std::string, std::string>, std::map<std::string, Entry>> entries_;
  size_t size_ = 0;
};

// The first line of every table.
inline constexpr std::string_view kAlgorithmTableBegin = "cohort algorithms 1";

// The text of algorithms.txt, which is compiled into the program.
extern const char kCommittedAlgorithms[];

}  // namespace cohort::cuda
