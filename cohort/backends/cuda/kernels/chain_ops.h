// The ops that a chain may have, with what is known about each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cohort/backends/cuda/kernels/chain.cu.h"

namespace cohort::cuda {

// Which operands an op has: one; two that broadcast against each other; or two of one shape.
enum class ChainOpKind : uint8_t { kUnary, kBroadcasts, kOneShape };

struct ChainOpInfo {
  std::string_view name;
  std::string_view function;  // the C++ name of its function of elements
  ChainOp op;
  ChainOpKind kind;

  constexpr int operands() const { return kind == ChainOpKind::kUnary ? 1 : 2; }
};

// In the order of ChainOp.
inline constexpr ChainOpInfo kChainOps[] = {
#define COHORT_CHAIN_OP(name, function) {#name, #function, ChainOp::k##name, ChainOpKind::kUnary},
    COHORT_UNARY_CHAIN_OPS(COHORT_CHAIN_OP)
#undef COHORT_CHAIN_OP
#define COHORT_CHAIN_OP(name, function) {#name, #function, ChainOp::k##name, ChainOpKind::kBroadcasts},
        COHORT_BINARY_CHAIN_OPS(COHORT_CHAIN_OP)
#undef COHORT_CHAIN_OP
#define COHORT_CHAIN_OP(name, function) {#name, #function, ChainOp::k##name, ChainOpKind::kOneShape},
            COHORT_GRADIENT_CHAIN_OPS(COHORT_CHAIN_OP)
#undef COHORT_CHAIN_OP
};

constexpr const ChainOpInfo& InfoOf(ChainOp op) { return kChainOps[static_cast<size_t>(op)]; }

// Returns null if a chain may not have the op.
constexpr const ChainOpInfo* FindChainOp(std::string_view name) {
  for (const ChainOpInfo& info : kChainOps) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace cohort::cuda
