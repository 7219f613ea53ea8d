// Dense updates: a block of threads changes kOfBlock elements of one variable and its slots. A launch may update many
// variables; a table says at which block each begins.
#include "cohort/backends/cuda/kernels/rule_kernels.h"
#include "cohort/backends/cuda/kernels/training.cu.h"

namespace cohort::cuda {
namespace {

constexpr int64_t kOfBlock = 1024;
// The table of a launch is as long as kMostUpdates updates, or as this many if there are no more.
constexpr int kFewUpdates = 40;

template <template <typename> class Rule, typename T, int kMost>
struct DenseUpdates {
  using W = Wide<T>;
  RuleArgs shared;
  int count;
  int64_t first_blocks[kMost + 1];  // of each update; at the end the number of blocks
  DenseUpdate updates[kMost];

  COHORT_KERNEL void operator()(const Thread& t) const {
    constexpr int kVariables = Rule<W>::kVariables;
    const Rule<W> rule = MakeRule<Rule, T>(shared);
    const bool failed = shared.error != nullptr && *shared.error != 0;
    for (int64_t block = t.block(); block < first_blocks[count]; block += t.blocks()) {
      int which = 0;
      for (int high = count - 1; which < high;) {
        const int middle = (which + high + 1) / 2;
        if (first_blocks[middle] <= block) {
          which = middle;
        } else {
          high = middle - 1;
        }
      }
      const DenseUpdate& update = updates[which];
      const int64_t begin = (block - first_blocks[which]) * kOfBlock;
      const int64_t end = begin + kOfBlock < update.n ? begin + kOfBlock : update.n;
      for (int64_t i = begin + t.thread(); i < end; i += t.threads()) {
        W v[kVariables];
        for (int k = 0; k < kVariables; ++k) v[k] = static_cast<W>(static_cast<const T*>(update.olds[k])[i]);
        if (!failed) rule(update.grad == nullptr ? W(0) : static_cast<W>(static_cast<const T*>(update.grad)[i]), v);
        for (int k = 0; k < kVariables; ++k) static_cast<T*>(update.outs[k])[i] = static_cast<T>(v[k]);
      }
    }
  }
};

template <template <typename> class Rule, typename T, int kMost>
void LaunchSome(Driver& driver, StreamHandle stream, const RuleArgs& shared, const DenseUpdate* updates, int count) {
  DenseUpdates<Rule, T, kMost> kernel{};
  kernel.shared = shared;
  for (int i = 0; i < count; ++i) {
    if (updates[i].n == 0) continue;
    const int at = kernel.count++;
    kernel.updates[at] = updates[i];
    kernel.first_blocks[at + 1] = kernel.first_blocks[at] + (updates[i].n + kOfBlock - 1) / kOfBlock;
  }
  if (kernel.count == 0) return;
  constexpr int64_t kMostBlocks = 65535;
  const int64_t blocks = kernel.first_blocks[kernel.count];
  LaunchSize size;
  size.threads[0] = 256;
  size.blocks[0] = static_cast<uint32_t>(blocks < kMostBlocks ? blocks : kMostBlocks);
  Launch(driver, stream, size, kernel);
}

}  // namespace

void LaunchDenseUpdates(Driver& driver, StreamHandle stream, OptimizerRule rule, ElementType type,
                        const RuleArgs& shared, const DenseUpdate* updates, int count) {
  ForRules(rule, [&]<template <typename> class Rule>(RuleTag<Rule>) {
    ForFloating(type, "an update", [&]<typename T>(T) {
      if (count == 1) return LaunchSome<Rule, T, 1>(driver, stream, shared, updates, 1);
      for (int first = 0; first < count; first += kMostUpdates) {
        const int some = count - first < kMostUpdates ? count - first : kMostUpdates;
        const auto launch = some <= kFewUpdates ? LaunchSome<Rule, T, kFewUpdates> : LaunchSome<Rule, T, kMostUpdates>;
        launch(driver, stream, shared, updates + first, some);
      }
    });
  });
}

}  // namespace cohort::cuda
