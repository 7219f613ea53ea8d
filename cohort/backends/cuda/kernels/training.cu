// Dense updates, of whole variables and their slots. A launch may update many variables.
#include "cohort/backends/cuda/kernels/rule_kernels.h"
#include "cohort/backends/cuda/kernels/training.cu.h"
#include "cohort/backends/cuda/kernels/update_table.h"

namespace cohort::cuda {
namespace {

constexpr int64_t kOfBlock = 1024;
// The table of a launch is as long as kMostUpdates updates, or as this many if there are no more.
constexpr int kFewUpdates = 40;

template <template <typename> class Rule, typename T, int kMost>
struct DenseUpdates {
  using W = Wide<T>;
  RuleArgs shared;
  UpdateTable<DenseUpdate, kMost, kOfBlock> table;

  COHORT_KERNEL void operator()(const Thread& t) const {
    constexpr int kVariables = Rule<W>::kVariables;
    const Rule<W> rule = MakeRule<Rule, T>(shared);
    const bool failed = shared.error != nullptr && *shared.error != 0;
    table.ForElements(t, [&](const DenseUpdate& update, int64_t i) {
      W v[kVariables];
      for (int k = 0; k < kVariables; ++k) v[k] = static_cast<W>(static_cast<const T*>(update.olds[k])[i]);
      if (!failed) rule(update.grad == nullptr ? W(0) : static_cast<W>(static_cast<const T*>(update.grad)[i]), v);
      for (int k = 0; k < kVariables; ++k) static_cast<T*>(update.outs[k])[i] = static_cast<T>(v[k]);
    });
  }
};

template <template <typename> class Rule, typename T, int kMost>
void LaunchSome(Driver& driver, StreamHandle stream, const RuleArgs& shared, const DenseUpdate* updates, int count) {
  DenseUpdates<Rule, T, kMost> kernel{};
  kernel.shared = shared;
  for (int i = 0; i < count; ++i) kernel.table.Add(updates[i], updates[i].n);
  if (kernel.table.count > 0) Launch(driver, stream, kernel.table.Size(), kernel);
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
