// Launches of the kernels that update variables by the rule of an optimizer.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/row_order.cu.h"

namespace cohort::cuda {

enum class OptimizerRule : uint8_t {
  kGradientDescent,
  kWeightDecay,
  kMomentum,
  kKerasMomentum,
  kAdagrad,
  kAdagradV2,
  kKerasAdagrad,
  kAdam,
  kAmsgrad,
  kRMSProp,
  kCenteredRMSProp,
  kFtrl,
  kFtrlV2
};

inline constexpr int kMostRuleVariables = 4;
inline constexpr int kMostRuleScalars = 6;
// How many variables, each with its slots, one launch updates.
inline constexpr int kMostUpdates = 256;

// What all updates of a launch share. `scalars` are single elements in device memory, of the type of the variables.
// `error` is the error word of the step, or null: if it is not 0, the variables keep their values.
struct RuleArgs {
  const void* scalars[kMostRuleScalars] = {};
  const uint64_t* error = nullptr;
  bool flag = false;  // of the rule (update_rules.h)
};

// A variable and its slots, in the order of the rule. Old and new values may be the same memory.
struct DenseUpdate {
  const void* olds[kMostRuleVariables] = {};
  void* outs[kMostRuleVariables] = {};
  const void* grad = nullptr;  // null for a rule without gradients
  int64_t n = 0;               // elements
};

// Enqueues all updates, in one launch for each kMostUpdates of them.
void LaunchDenseUpdates(Driver& driver, StreamHandle stream, OptimizerRule rule, ElementType type,
                        const RuleArgs& shared, const DenseUpdate* updates, int count);

// Which rows of a variable an update changes. Row indices[p] is changed by row p of the update, for the positions p
// from 0 to n - 1, in their order.
struct ChangedRows {
  RowOrder order;                 // of the positions. Without keys, no row is there twice, and bad indices do not count
  const void* indices = nullptr;  // int32 or int64
  bool wide = false;              // `indices` are int64
  int64_t n = 0;                  // at least 1
  int64_t rows = 0;               // of the variable; only needed without keys
  int64_t columns = 0;            // elements of a row
};

// An update of rows of a variable and its slots, in the order of the rule, in place.
struct SparseUpdate {
  void* variables[kMostRuleVariables] = {};
  const void* grad = nullptr;
  ChangedRows rows;
};

// How many variables, each with its slots, one launch of row updates changes. With so many, the arguments of a launch
// have about 4 KB, so that there is no smaller version for few of them.
inline constexpr int kMostRowUpdates = 32;

// Enqueues all updates, in one launch for each kMostRowUpdates of them. If the word `shared.error` is not 0, nothing
// changes.
void LaunchSparseUpdates(Driver& driver, StreamHandle stream, OptimizerRule rule, ElementType type,
                         const RuleArgs& shared, const SparseUpdate* updates, int count);

enum class ScatterOp : uint8_t { kAdd, kSub, kPut };

// row = row + update, row - update or update, in place.
struct ScatterUpdate {
  void* variable = nullptr;
  const void* updates = nullptr;
  bool single = false;  // `updates` is one element
  ChangedRows rows;
};
// Enqueues all updates, in one launch for each kMostRowUpdates of them. If the word `error` is not null and not 0,
// nothing changes.
void LaunchScatters(Driver& driver, StreamHandle stream, ScatterOp op, ElementType type, const uint64_t* error,
                    const ScatterUpdate* updates, int count);

}  // namespace cohort::cuda
