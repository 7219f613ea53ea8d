// CallSite: a line of a program. NodeName: the name that a function gives to the node it adds, with the line that
// called the function.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cohort/core/export.h"

namespace cohort {

// A place in a source file. The text `file` must live as long as the program.
struct COHORT_EXPORT CallSite {
  const char* file = nullptr;  // null: not known
  int line = 0;

  // The place of the call. If the call stands in a default argument, it is the place of the function call that lacks
  // the argument.
  static constexpr CallSite Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  // Returns whether the line is known and belongs to a program that uses Cohort. A line of Cohort's own sources does
  // not, but a line of their tests does.
  bool IsOfProgram() const;
  // Returns "src/train.cc:57", with the last two parts of the path; "" if the place is not known.
  std::string ToString() const;
};

// The last parameter of the functions that add a node: `const NodeName& name = ""`. Every type that converts to
// std::string_view also converts to NodeName, implicitly. "" stands for the op's name. The graph makes the name unique.
// A value type.
class COHORT_EXPORT NodeName {
 public:
  template <typename T>
  requires std::is_convertible_v<const T&, std::string_view> NodeName(const T& name, CallSite site = CallSite::Here())
      : text_(std::string_view(name)), site_(site) {}

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  // The line of the program on which the name stands. If the program has left the name out, the line that called the
  // function.
  const CallSite& site() const { return site_; }
  friend std::ostream& operator<<(std::ostream& out, const NodeName& name) { return out << name.text_; }
  operator const std::string&() const { return text_; }  // NOLINT(google-explicit-constructor)

 private:
  std::string text_;
  CallSite site_;
};

}  // namespace cohort
