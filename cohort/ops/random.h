// Random numbers. They come from Philox4x32-10 with TensorFlow's keys, so that the same seeds give TensorFlow's
// numbers, on any device and with any number of threads.
//
// Stateful ops draw new numbers every time they run. Their two seed attributes follow from the graph's seed and `seed`
// as in TensorFlow's v1 get_seed: both 0 (unset): different in every session; only the graph's: that and the number of
// nodes so far; only `seed`: 87654321 and it; both: the two.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::ops {

// Attributes (seed, seed2) of a stateful random op that is added now.
std::pair<int64_t, int64_t> SeedPair(const Graph& graph, int64_t seed);

// shape: int32 or int64 [rank]. dtype: float32, float64 or bfloat16.
Output RandomUniform(Output shape, DType dtype = DType::kFloat32, int64_t seed = 0,
                     const NodeName& name = "RandomUniform");  // [0, 1)
Output RandomStandardNormal(Output shape, DType dtype = DType::kFloat32, int64_t seed = 0,
                            const NodeName& name = "RandomStandardNormal");
// Standard normal, but numbers beyond 2 are drawn again.
Output TruncatedNormal(Output shape, DType dtype = DType::kFloat32, int64_t seed = 0,
                       const NodeName& name = "TruncatedNormal");
// [minval, maxval), two scalars of int32 or int64; nearly uniform where their distance is no power of two.
Output RandomUniformInt(Output shape, const Operand& minval, const Operand& maxval, int64_t seed = 0,
                        const NodeName& name = "RandomUniformInt");
// The rows of `value` in random order.
Output RandomShuffle(Output value, int64_t seed = 0, const NodeName& name = "RandomShuffle");

// The same numbers for the same `seed` (int32 or int64 [2]), whenever and wherever they run.
Output StatelessRandomUniform(Output shape, Output seed, DType dtype = DType::kFloat32,
                              const NodeName& name = "StatelessRandomUniform");
Output StatelessRandomNormal(Output shape, Output seed, DType dtype = DType::kFloat32,
                             const NodeName& name = "StatelessRandomNormal");
Output StatelessTruncatedNormal(Output shape, Output seed, DType dtype = DType::kFloat32,
                                const NodeName& name = "StatelessTruncatedNormal");
Output StatelessRandomUniformInt(Output shape, Output seed, const Operand& minval, const Operand& maxval,
                                 const NodeName& name = "StatelessRandomUniformInt");
// Over all values of int32 or int64.
Output StatelessRandomUniformFullInt(Output shape, Output seed, DType dtype,
                                     const NodeName& name = "StatelessRandomUniformFullInt");

}  // namespace cohort::ops
