// Updates of rows: a thread changes one column of a row, by all positions that have this row, in their order.
#include "cohort/backends/cuda/dialect/wrapping.h"
#include "cohort/backends/cuda/kernels/moves.h"
#include "cohort/backends/cuda/kernels/rule_kernels.h"
#include "cohort/backends/cuda/kernels/training.cu.h"

namespace cohort::cuda {
namespace {

// Calls change(position) for all positions of the row that begins at `place` of the order.
template <typename Change>
COHORT_KERNEL void ForPositions(const RowOrder& order, int64_t place, int64_t n, const Change& change) {
  const uint64_t row = order.keys[place] >> order.bits;
  const uint64_t mask = (uint64_t{1} << order.bits) - 1;
  for (; place < n; ++place) {
    const uint64_t key = order.keys[place];
    if (key == RowOrder::kNoRow || key >> order.bits != row) return;
    change(static_cast<int64_t>(key & mask));
  }
}

// Returns the row that begins at `place`, or -1 if it began before, or if the position does not count.
COHORT_KERNEL int64_t RowBeginningAt(const RowOrder& order, int64_t place) {
  const uint64_t key = order.keys[place];
  if (key == RowOrder::kNoRow) return -1;
  const uint64_t row = key >> order.bits;
  return place > 0 && order.keys[place - 1] >> order.bits == row ? -1 : static_cast<int64_t>(row);
}

template <template <typename> class Rule, typename T>
struct UpdateRowsByRule {
  using W = Wide<T>;
  RuleArgs shared;
  SparseUpdate update;
  Divider columns;

  COHORT_KERNEL void operator()(const Thread& t) const {
    constexpr int kVariables = Rule<W>::kVariables;
    if (shared.error != nullptr && *shared.error != 0) return;
    const Rule<W> rule = MakeRule<Rule, T>(shared);
    for (int64_t i = t.first(); i < update.n * update.columns; i += t.step()) {
      int64_t place;
      const int64_t column = columns.Split(i, &place);
      const int64_t row = RowBeginningAt(update.order, place);
      if (row < 0) continue;
      const int64_t at = row * update.columns + column;
      T kept[kVariables];
      for (int k = 0; k < kVariables; ++k) kept[k] = static_cast<const T*>(update.variables[k])[at];
      ForPositions(update.order, place, update.n, [&](int64_t position) {
        W v[kVariables];
        for (int k = 0; k < kVariables; ++k) v[k] = static_cast<W>(kept[k]);
        rule(static_cast<W>(static_cast<const T*>(update.grad)[position * update.columns + column]), v);
        for (int k = 0; k < kVariables; ++k) kept[k] = static_cast<T>(v[k]);
      });
      for (int k = 0; k < kVariables; ++k) static_cast<T*>(update.variables[k])[at] = kept[k];
    }
  }
};

template <ScatterOp kOp, typename T>
COHORT_KERNEL T Scattered(T old, T value) {
  using W = Wide<T>;
  if constexpr (kOp == ScatterOp::kAdd) return static_cast<T>(AddOf(static_cast<W>(old), static_cast<W>(value)));
  if constexpr (kOp == ScatterOp::kSub) return static_cast<T>(SubOf(static_cast<W>(old), static_cast<W>(value)));
  return value;
}

template <ScatterOp kOp, typename T>
struct ScatterRows {
  ScatterArgs args;
  Divider columns;

  COHORT_KERNEL void operator()(const Thread& t) const {
    if (args.error != nullptr && *args.error != 0) return;
    const auto* updates = static_cast<const T*>(args.updates);
    auto* variable = static_cast<T*>(args.variable);
    for (int64_t i = t.first(); i < args.n * args.columns; i += t.step()) {
      int64_t place;
      const int64_t column = columns.Split(i, &place);
      const int64_t row = RowBeginningAt(args.order, place);
      if (row < 0) continue;
      const int64_t at = row * args.columns + column;
      T kept = variable[at];
      ForPositions(args.order, place, args.n, [&](int64_t position) {
        kept = Scattered<kOp>(kept, updates[args.single ? 0 : position * args.columns + column]);
      });
      variable[at] = kept;
    }
  }
};

template <ScatterOp kOp>
void LaunchScatterOf(Driver& driver, StreamHandle stream, ElementType type, const ScatterArgs& args) {
  ForNumbers(type, "a scatter", [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(args.n * args.columns), ScatterRows<kOp, T>{args, Divider(args.columns)});
  });
}

}  // namespace

void LaunchSparseUpdate(Driver& driver, StreamHandle stream, OptimizerRule rule, ElementType type,
                        const RuleArgs& shared, const SparseUpdate& update) {
  ForRules(rule, [&]<template <typename> class Rule>(RuleTag<Rule>) {
    ForFloating(type, "an update of rows", [&]<typename T>(T) {
      Launch(driver, stream, SizeFor(update.n * update.columns),
             UpdateRowsByRule<Rule, T>{shared, update, Divider(update.columns)});
    });
  });
}

void LaunchScatter(Driver& driver, StreamHandle stream, ScatterOp op, ElementType type, const ScatterArgs& args) {
  switch (op) {
    case ScatterOp::kAdd: return LaunchScatterOf<ScatterOp::kAdd>(driver, stream, type, args);
    case ScatterOp::kSub: return LaunchScatterOf<ScatterOp::kSub>(driver, stream, type, args);
    case ScatterOp::kPut: return LaunchScatterOf<ScatterOp::kPut>(driver, stream, type, args);
  }
}

}  // namespace cohort::cuda
