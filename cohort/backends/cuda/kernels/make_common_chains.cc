// Writes the C++ source with the kernels of common_chains.txt and their table (common_chains.h), while Cohort is built:
//   make_common_chains common_chains.txt common_chains.cu
// Each chain has a namespace of its own with the body that a compiler would get while the program runs
// (chain_source.h). If the text has a bad line, the program names it, writes nothing, and exits with 1.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

#include "cohort/backends/cuda/kernels/chain_source.h"
#include "cohort/backends/cuda/kernels/chain_text.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr char kTop[] = R"cohort(// Made by make_common_chains.cc of common_chains.txt.
#include "cohort/backends/cuda/kernels/common_chains.h"

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/kernels/activation_functions.h"
#include "cohort/backends/cuda/kernels/activation_gradients.h"
#include "cohort/backends/cuda/kernels/binary_functions.h"
#include "cohort/backends/cuda/kernels/unary_functions.h"

namespace cohort::cuda {
namespace {

template <typename K>
void LaunchKernel(Driver& driver, StreamHandle stream, const LaunchSize& size, const ChainCall& call) {
  Launch(driver, stream, size, K{call});
}
)cohort";

// Inside of the namespace of a chain, behind its body.
constexpr char kKernel[] = R"cohort(
struct Kernel {
  ChainCall call;
  COHORT_KERNEL void operator()(const Thread& t) const { Run(call, t.first(), t.step()); }
};
)cohort";

// A line of the text that has a chain.
struct Line {
  int number = 0;
  ChainOfText chain;
};

// Returns the lines by the keys of their chains. Throws InvalidArgumentError with the number of a line that is wrong.
std::map<std::string, Line> ReadLines(const std::string& path) {
  std::ifstream file(path);
  std::map<std::string, Line> lines;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    if (text.empty() || text.front() == '#') continue;
    try {
      const ChainOfText chain = ParseChain(text);
      const std::string key(ChainKey(chain.type, chain.args).bytes());
      const auto [other, is_new] = lines.emplace(key, Line{number, chain});
      if (!is_new) {
        throw InvalidArgumentError(StrCat("[cuda/kernels] expected each chain once; got '", text, "', which line ",
                                          other->second.number, " has, too"));
      }
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(StrCat(path, ":", number, ": ", error.what(), ": mend or remove the line"));
    }
  }
  // The end of the file is no failure of the last call; a folder, or a file that cannot be opened, is one.
  if (!file.eof()) throw InvalidArgumentError(StrCat(path, ": expected a file to read; got ", std::strerror(errno)));
  return lines;
}

std::string NamespaceOf(const Line& line) { return StrCat("chain_of_line_", line.number); }

// Returns the bytes as a literal of C++, which has an end that no digit behind it can change.
std::string Literal(const std::string& bytes) {
  std::string text = "\"";
  for (const char byte : bytes) {
    char octal[5];
    std::snprintf(octal, sizeof(octal), "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    text += octal;
  }
  return text + "\"";
}

std::string SourceOf(const std::map<std::string, Line>& lines) {
  std::string text = kTop;
  for (const auto& [key, line] : lines) {
    text += StrCat("\nnamespace ", NamespaceOf(line), " {\n", ChainBody(line.chain.type, line.chain.args), kKernel,
                   "}  // namespace ", NamespaceOf(line), "\n");
  }
  text += StrCat("\nconstexpr size_t kCount = ", lines.size(), ";\nconst CommonChain kChains[kCount + 1] = {\n");
  for (const auto& [key, line] : lines) {
    text += StrCat("    {{", Literal(key), ", ", key.size(), "}, \"", ChainText(line.chain.type, line.chain.args),
                   "\", &LaunchKernel<", NamespaceOf(line), "::Kernel>},\n");
  }
  return text +
         "    {},\n};\n\n}  // namespace\n\nstd::span<const CommonChain> CommonChains() { return {kChains, kCount}; "
         "}\n\n"
         "}  // namespace cohort::cuda\n";
}

}  // namespace
}  // namespace cohort::cuda

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: make_common_chains TEXT SOURCE\n";
    return 2;
  }
  try {
    const std::string source = cohort::cuda::SourceOf(cohort::cuda::ReadLines(argv[1]));
    std::ofstream file(argv[2]);
    file << source;
    file.close();
    if (file) return 0;
    std::cerr << argv[2] << ": expected a file to write; got " << std::strerror(errno) << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
  }
  return 1;
}
