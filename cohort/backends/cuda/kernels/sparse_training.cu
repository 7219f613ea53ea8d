// Updates of rows: a thread changes one column of a row, by all positions that have this row, in their order. A launch
// may update rows of many variables.
#include "cohort/backends/cuda/dialect/wrapping.h"
#include "cohort/backends/cuda/kernels/moves.h"
#include "cohort/backends/cuda/kernels/rule_kernels.h"
#include "cohort/backends/cuda/kernels/training.cu.h"
#include "cohort/backends/cuda/kernels/update_table.h"

namespace cohort::cuda {
namespace {

// Rows lie far from each other, so that a thread has only one element to wait for.
constexpr int64_t kOfBlock = 256;

// An update with what the kernels need to find the row and the column of an element.
template <typename Update>
struct RowsOf {
  Update update;
  Divider columns;
};
template <typename Update>
using RowTable = UpdateTable<RowsOf<Update>, kMostRowUpdates, kOfBlock>;

// Returns the row that begins at `place`, or -1 if it began before, or if the position does not count.
COHORT_KERNEL int64_t RowBeginningAt(const ChangedRows& rows, int64_t place) {
  const RowOrder& order = rows.order;
  if (order.keys == nullptr) {
    const int64_t row =
        rows.wide ? static_cast<const int64_t*>(rows.indices)[place] : static_cast<const int32_t*>(rows.indices)[place];
    return row < rows.rows ? row : -1;
  }
  const uint64_t key = order.keys[place];
  if (key == RowOrder::kNoRow) return -1;
  const uint64_t row = key >> order.bits;
  return place > 0 && order.keys[place - 1] >> order.bits == row ? -1 : static_cast<int64_t>(row);
}

// Calls change(position) for all positions of the row that begins at `place`.
template <typename Change>
COHORT_KERNEL void ForPositions(const ChangedRows& rows, int64_t place, const Change& change) {
  const RowOrder& order = rows.order;
  if (order.keys == nullptr) return change(place);
  const uint64_t row = order.keys[place] >> order.bits;
  const uint64_t mask = (uint64_t{1} << order.bits) - 1;
  for (; place < rows.n; ++place) {
    const uint64_t key = order.keys[place];
    if (key == RowOrder::kNoRow || key >> order.bits != row) return;
    change(static_cast<int64_t>(key & mask));
  }
}

template <template <typename> class Rule, typename T>
struct UpdateRowsByRule {
  using W = Wide<T>;
  RuleArgs shared;
  RowTable<SparseUpdate> table;

  COHORT_KERNEL void operator()(const Thread& t) const {
    constexpr int kVariables = Rule<W>::kVariables;
    if (shared.error != nullptr && *shared.error != 0) return;
    const Rule<W> rule = MakeRule<Rule, T>(shared);
    table.ForElements(t, [&](const RowsOf<SparseUpdate>& of, int64_t i) {
      const SparseUpdate& update = of.update;
      int64_t place;
      const int64_t column = of.columns.Split(i, &place);
      const int64_t row = RowBeginningAt(update.rows, place);
      if (row < 0) return;
      const int64_t at = row * update.rows.columns + column;
      T kept[kVariables];
      for (int k = 0; k < kVariables; ++k) kept[k] = static_cast<const T*>(update.variables[k])[at];
      ForPositions(update.rows, place, [&](int64_t position) {
        W v[kVariables];
        for (int k = 0; k < kVariables; ++k) v[k] = static_cast<W>(kept[k]);
        rule(static_cast<W>(static_cast<const T*>(update.grad)[position * update.rows.columns + column]), v);
        for (int k = 0; k < kVariables; ++k) kept[k] = static_cast<T>(v[k]);
      });
      for (int k = 0; k < kVariables; ++k) static_cast<T*>(update.variables[k])[at] = kept[k];
    });
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
  const uint64_t* error;
  RowTable<ScatterUpdate> table;

  COHORT_KERNEL void operator()(const Thread& t) const {
    if (error != nullptr && *error != 0) return;
    table.ForElements(t, [&](const RowsOf<ScatterUpdate>& of, int64_t i) {
      const ScatterUpdate& update = of.update;
      int64_t place;
      const int64_t column = of.columns.Split(i, &place);
      const int64_t row = RowBeginningAt(update.rows, place);
      if (row < 0) return;
      const auto* updates = static_cast<const T*>(update.updates);
      T& value = static_cast<T*>(update.variable)[row * update.rows.columns + column];
      T kept = value;
      ForPositions(update.rows, place, [&](int64_t position) {
        kept = Scattered<kOp>(kept, updates[update.single ? 0 : position * update.rows.columns + column]);
      });
      value = kept;
    });
  }
};

// Launches `kernel`, whose table is empty, for all updates.
template <typename Kernel, typename Update>
void LaunchTables(Driver& driver, StreamHandle stream, Kernel& kernel, const Update* updates, int count) {
  for (int i = 0; i < count;) {
    kernel.table = {};
    for (int in_table = 0; in_table < kMostRowUpdates && i < count; ++in_table, ++i) {
      const ChangedRows& rows = updates[i].rows;
      if (rows.columns == 0) continue;
      kernel.table.Add({updates[i], Divider(rows.columns)}, rows.n * rows.columns);
    }
    if (kernel.table.count > 0) Launch(driver, stream, kernel.table.Size(), kernel);
  }
}

template <ScatterOp kOp>
void LaunchScattersOf(Driver& driver, StreamHandle stream, ElementType type, const uint64_t* error,
                      const ScatterUpdate* updates, int count) {
  ForNumbers(type, "a scatter", [&]<typename T>(T) {
    ScatterRows<kOp, T> kernel{};
    kernel.error = error;
    LaunchTables(driver, stream, kernel, updates, count);
  });
}

}  // namespace

void LaunchSparseUpdates(Driver& driver, StreamHandle stream, OptimizerRule rule, ElementType type,
                         const RuleArgs& shared, const SparseUpdate* updates, int count) {
  ForRulesOfRows(rule, [&]<template <typename> class Rule>(RuleTag<Rule>) {
    ForFloating(type, "an update of rows", [&]<typename T>(T) {
      UpdateRowsByRule<Rule, T> kernel{};
      kernel.shared = shared;
      LaunchTables(driver, stream, kernel, updates, count);
    });
  });
}

void LaunchScatters(Driver& driver, StreamHandle stream, ScatterOp op, ElementType type, const uint64_t* error,
                    const ScatterUpdate* updates, int count) {
  const auto launch = op == ScatterOp::kAdd   ? LaunchScattersOf<ScatterOp::kAdd>
                      : op == ScatterOp::kSub ? LaunchScattersOf<ScatterOp::kSub>
                                              : LaunchScattersOf<ScatterOp::kPut>;
  launch(driver, stream, type, error, updates, count);
}

}  // namespace cohort::cuda
