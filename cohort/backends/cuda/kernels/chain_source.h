// ChainSource: the text of a kernel for one chain of elementwise ops, for a compiler that runs inside of the program.
#pragma once

#include <string>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/kernels/chain.cu.h"

namespace cohort::cuda {

// The kernel of the text. Its argument is a ChainCall.
inline constexpr char kChainKernel[] = "cohort_chain";
// In place of the kernel, if a C++ compiler for the host compiles the text: a function `void(const void* call, const
// void* size)` with C linkage, which runs a whole launch. `size` is a LaunchSize in one dimension.
inline constexpr char kChainOnHost[] = "cohort_chain_on_host";

// Returns the text. It includes nothing. It has the functions of the headers of this folder (unary_functions.h, ...),
// and takes the steps one after the other, without a branch. It gives the bits of LaunchChain: a product of one step
// and a sum of the next are never rounded together. The text depends on the type, on the steps, on which operands are
// single elements, and on whether operands broadcast, but on no size.
std::string ChainSource(ElementType type, const ChainArgs& args);

// The text of the headers, without the lines that include files. embed_headers.cmake makes it.
extern const char kChainHeaders[];

}  // namespace cohort::cuda
