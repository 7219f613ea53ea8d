// ChainSource: the text of a kernel for one chain of elementwise ops, for a compiler that runs inside of the program,
// and ChainBody: the part of it that make_common_chains.cc writes for chains whose kernels are compiled with the
// program.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/kernels/chain.cu.h"

namespace cohort::cuda {

// The kernel of the text. Its argument is a ChainCall.
inline constexpr char kChainKernel[] = "cohort_chain";
// In place of the kernel, if a C++ compiler for the host compiles the text: a function `void(const void* call, const
// void* size)` with C linkage, which runs a whole launch. `size` is a LaunchSize in one dimension.
inline constexpr char kChainOnHost[] = "cohort_chain_on_host";

// What the text depends on: the type, the steps, and which operands are single elements or broadcast. It depends on no
// size and on no address. Two chains have the same bytes if and only if they have the same text.
class ChainKey {
 public:
  ChainKey(ElementType type, const ChainArgs& args);
  std::string_view bytes() const { return {bytes_, size_}; }

 private:
  static constexpr size_t kMostBytes = 2 + kMostChainOperands + 3 * kMostChainSteps;
  char bytes_[kMostBytes];
  size_t size_ = 0;
};

// Returns definitions for a namespace inside of cohort::cuda. They need the dialect and the headers of kChainHeaders.
// They have the function `void Run(const ChainCall& call, int64_t first, int64_t step)` of a thread, whose first pack
// or element is number `first`, and which goes on by `step`.
std::string ChainBody(ElementType type, const ChainArgs& args);

// Returns the text. It includes nothing. It has the functions of the headers of this folder (unary_functions.h, ...),
// and takes the steps one after the other, without a branch. It gives the bits of LaunchChain if the compiler does
// not round a product of one step and a sum of the next together (--fmad=false).
std::string ChainSource(ElementType type, const ChainArgs& args);

// The text of the headers, without the lines that include files. embed_headers.cmake makes it.
extern const char kChainHeaders[];

}  // namespace cohort::cuda
