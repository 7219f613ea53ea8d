// Ops that draw random numbers. The numbers come from Philox4x32-10 with TensorFlow's keys. So with equal seeds the ops
// return TensorFlow's numbers, on any device and with any number of threads.
//
// Stateful ops draw new numbers every time they run. Their two seed attributes are computed from the graph's seed and
// `seed`, as in TensorFlow's v1 get_seed:
// - If neither is set (both are 0), the numbers differ in every session.
// - If only the graph's seed is set, the attributes are that seed and the number of nodes that the graph has by then.
// - If only `seed` is set, the attributes are 87654321 and `seed`.
// - If both are set, the attributes are both seeds.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Returns the attributes (seed, seed2) of a stateful random op that is added now.
COHORT_EXPORT std::pair<int64_t, int64_t> SeedPair(const Graph& graph, int64_t seed);

// While it lives, SeedPair counts, for ops of this thread without a seed of their own: the attributes of the n-th such
// op (n = 0, 1...) are the graph's seed and first + n. If the graph has no seed, they are `otherwise` and first + n. So
// copies of a part of a graph get equal seeds. The scopes of a thread end in reverse order.
class COHORT_EXPORT SeedScope {
 public:
  SeedScope(int64_t otherwise, int64_t first);
  ~SeedScope();
  SeedScope(const SeedScope&) = delete;
  SeedScope& operator=(const SeedScope&) = delete;

 private:
  friend std::pair<int64_t, int64_t> SeedPair(const Graph& graph, int64_t seed);
  const int64_t otherwise_;
  int64_t next_;
  SeedScope* const outer_;
};

// The next three functions return a tensor of `shape` (int32 or int64 [rank]) and `dtype` (float32, float64 or
// bfloat16).
COHORT_EXPORT Output RandomUniform(Output shape, DType dtype = DType::kFloat32, int64_t seed = 0,
                                   const NodeName& name = "RandomUniform");  // in [0, 1)
COHORT_EXPORT Output RandomStandardNormal(Output shape, DType dtype = DType::kFloat32, int64_t seed = 0,
                                          const NodeName& name = "RandomStandardNormal");
// Returns standard normal numbers. Numbers below -2 and above 2 are drawn again.
COHORT_EXPORT Output TruncatedNormal(Output shape, DType dtype = DType::kFloat32, int64_t seed = 0,
                                     const NodeName& name = "TruncatedNormal");
// Returns integers in [minval, maxval). The bounds are two scalars of int32 or int64. If maxval - minval is not a power
// of two, the distribution is only nearly uniform.
COHORT_EXPORT Output RandomUniformInt(Output shape, const Operand& minval, const Operand& maxval, int64_t seed = 0,
                                      const NodeName& name = "RandomUniformInt");
// Draws `num_samples` (int32 []) classes for each row of `logits` ([batch, classes] of float32, float64, bfloat16,
// int32 or int64), with the probabilities of the row's softmax. Returns [batch, num_samples] of `output_dtype`, int32
// or int64. A class whose logit is not finite is never drawn; if a row has no other class, its numbers are `classes`,
// which is none. As tf.random.categorical and tf.multinomial; the numbers are TensorFlow's if that uses one thread.
COHORT_EXPORT Output Multinomial(Output logits, const Operand& num_samples, int64_t seed = 0,
                                 DType output_dtype = DType::kInt64, const NodeName& name = "Multinomial");
// Returns the rows of `value` in random order. `value` has any dtype.
COHORT_EXPORT Output RandomShuffle(Output value, int64_t seed = 0, const NodeName& name = "RandomShuffle");

// The stateless ops return the same numbers for the same `seed` (int32 or int64 [2]) each time, on every device. The
// allowed shapes, dtypes and bounds are those of the stateful ops above.
COHORT_EXPORT Output StatelessRandomUniform(Output shape, Output seed, DType dtype = DType::kFloat32,
                                            const NodeName& name = "StatelessRandomUniform");
COHORT_EXPORT Output StatelessRandomNormal(Output shape, Output seed, DType dtype = DType::kFloat32,
                                           const NodeName& name = "StatelessRandomNormal");
COHORT_EXPORT Output StatelessTruncatedNormal(Output shape, Output seed, DType dtype = DType::kFloat32,
                                              const NodeName& name = "StatelessTruncatedNormal");
COHORT_EXPORT Output StatelessRandomUniformInt(Output shape, Output seed, const Operand& minval, const Operand& maxval,
                                               const NodeName& name = "StatelessRandomUniformInt");
// Returns integers that are drawn from all values of `dtype`. `dtype` is int32 or int64.
COHORT_EXPORT Output StatelessRandomUniformFullInt(Output shape, Output seed, DType dtype,
                                                   const NodeName& name = "StatelessRandomUniformFullInt");

}  // namespace cohort::ops
