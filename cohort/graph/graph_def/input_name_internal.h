// Parts of the texts that name an input in a GraphDef ("node", "node:1", "^node") or in a FunctionDef ("argument",
// "node:output_arg:0", "^node"). Internal.
#pragma once

#include <string>

namespace cohort {

inline bool IsControl(const std::string& input) { return input.starts_with('^'); }

// Returns the node, or the argument.
inline std::string NodeOf(const std::string& input) {
  const size_t begin = IsControl(input) ? 1 : 0;
  return input.substr(begin, input.find(':') - begin);
}

}  // namespace cohort
