// CallSite: a line of a program. NodeName: the name that a function gives to the node it adds, with the line that
// called the function.
#pragma once

#include <concepts>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cohort/core/export.h"

namespace cohort {

// A place in a source file. `file` lives as long as the program.
struct COHORT_EXPORT CallSite {
  const char* file = nullptr;  // null: not known
  int line = 0;

  // The place of the call. If the call stands in a default argument, it is the place of the function call that lacks
  // the argument.
  static constexpr CallSite Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  // Returns whether it is a line of a program that uses Cohort, and not of Cohort's own sources (their tests are such
  // programs).
  bool IsOfProgram() const;
  // Returns "src/train.cc:57", with the last two parts of the path; "" if the place is not known.
  std::string ToString() const;
};

// The last parameter of the functions that add a node: `const NodeName& name = ""`. Made implicitly of anything that is
// a text. "" stands for the op's name. The graph makes the name unique.
class COHORT_EXPORT NodeName {
 public:
  template <typename T>
  requires std::is_convertible_v<T&&, std::string_view> NodeName(T&& name, CallSite site = CallSite::Here())
      : text_(std::forward<T>(name)), site_(site) {}

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  // The line of the program that wrote the name or, if it has left the name out, that called the function.
  const CallSite& site() const { return site_; }
  friend std::ostream& operator<<(std::ostream& out, const NodeName& name) { return out << name.text_; }
  operator const std::string&() const { return text_; }  // NOLINT(google-explicit-constructor)

 private:
  std::string text_;
  CallSite site_;
};

}  // namespace cohort
