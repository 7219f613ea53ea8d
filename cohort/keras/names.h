// NameTable: a table of objects with Keras's names. Internal to keras/.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/nearest_names.h"

namespace cohort::keras {

// Finds objects by name. Immutable and thread-safe.
template <typename T>
class NameTable {
 public:
  // `what` is the kind of the objects ("loss"), for errors.
  NameTable(std::string what, std::vector<std::pair<std::string, T>> entries)
      : what_(std::move(what)), entries_(std::move(entries)) {}

  // Returns null if there is no such name.
  const T* TryFind(const std::string& name) const {
    for (const auto& [key, value] : entries_) {
      if (key == name) return &value;
    }
    return nullptr;
  }
  // Returns the object. If there is no such name, throws InvalidArgumentError that suggests the nearest names and lists
  // all names.
  const T& Find(const std::string& name) const {
    if (const T* found = TryFind(name)) return *found;
    Fail(name, names());
  }
  // Throws the error of Find for `name`. `known` has the names that the error lists.
  [[noreturn]] void Fail(const std::string& name, const std::vector<std::string>& known) const {
    throw InvalidArgumentError(StrCat("[keras/", what_, "] expected the name of a known ", what_, "; got '", name, "'",
                                      DidYouMean(name, known), "; known are ", StrJoin(known, ", ")));
  }
  // Returns all names, in the table's order.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [key, value] : entries_) all.push_back(key);
    return all;
  }

 private:
  const std::string what_;
  const std::vector<std::pair<std::string, T>> entries_;
};

}  // namespace cohort::keras
