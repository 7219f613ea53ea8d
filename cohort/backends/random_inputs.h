// What the random ops of all backends share: the generator of a stateful op, and how the shape and the seed of an op
// are read. Internal to backends.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/philox.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"

namespace cohort {

// A generator that advances from step to step. In a step of a closure it begins anew, at a place that follows from the
// closure's number, so that a further attempt of the closure draws the same numbers. The kernel owns it. Thread-safe.
class GuardedPhilox {
 public:
  explicit GuardedPhilox(const KernelConstruction& c)
      : seed_(static_cast<uint64_t>(c.attr<int64_t>("seed"))), seed2_(static_cast<uint64_t>(c.attr<int64_t>("seed2"))) {
    if (seed_ == 0 && seed2_ == 0) {
      std::random_device random;
      seed_ = uint64_t{random()} << 32 | random();
      seed2_ = uint64_t{random()} << 32 | random();
    }
    MutexLock lock(mu_);
    philox_ = Philox(seed_, seed2_);
  }
  // Returns the generator for the step. The next call gets it `calls` further on.
  Philox Reserve(const KernelContext& ctx, int64_t calls) {
    const StepInfo& step = ctx.step();
    if (!step.closure.valid()) return Reserve(calls);
    MutexLock lock(mu_);
    const Philox first = Philox::FromStatelessSeed(seed_ ^ seed2_ << 32, static_cast<uint64_t>(step.closure.number));
    if (of_steps_.size() > kSteps) of_steps_.erase(of_steps_.begin());
    return Advance(of_steps_.try_emplace(step.step_id, first).first->second, calls);
  }
  // As above, for a step that is of no closure.
  Philox Reserve(int64_t calls) {
    MutexLock lock(mu_);
    return Advance(philox_, calls);
  }
  // Reserve 256 calls for each number, as TensorFlow does.
  Philox ReserveFor(const KernelContext& ctx, int64_t numbers) { return Reserve(ctx, numbers * 256); }
  Philox ReserveFor(int64_t numbers) { return Reserve(numbers * 256); }
  // Return the numbers from 0 to n - 1 in a random order (Fisher and Yates). The second form is for a step that is of
  // no closure.
  std::vector<int64_t> RandomOrder(const KernelContext& ctx, int64_t n) { return Order(Reserve(ctx, CallsFor(n)), n); }
  std::vector<int64_t> RandomOrder(int64_t n) { return Order(Reserve(CallsFor(n)), n); }

 private:
  static int64_t CallsFor(int64_t words) { return (words + Philox::kWords - 1) / Philox::kWords; }
  static Philox Advance(Philox& philox, int64_t calls) {
    const Philox now = philox;
    philox.Skip(static_cast<uint64_t>(calls));
    return now;
  }
  static std::vector<int64_t> Order(const Philox& philox, int64_t n) {
    PhiloxWords words(philox);
    std::vector<int64_t> order(static_cast<size_t>(n));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      std::swap(order[i], order[i + words() % static_cast<uint32_t>(order.size() - i)]);
    }
    return order;
  }

  // The most steps of closures that are remembered; a worker runs far fewer at the same time.
  static constexpr size_t kSteps = 1024;

  uint64_t seed_;
  uint64_t seed2_;
  Mutex mu_;
  Philox philox_ COHORT_GUARDED_BY(mu_);
  std::map<int64_t, Philox> of_steps_ COHORT_GUARDED_BY(mu_);  // of closures; by number of the step
};

// Returns element i of an int32 or int64 tensor in host memory.
inline int64_t IntegerAt(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == DType::kInt64 ? tensor.data<int64_t>()[i] : tensor.data<int32_t>()[i];
}

// Returns the shape whose dimensions are the elements of `dims`. Throws InvalidArgumentError if it is not a vector or
// has a negative element.
inline Shape ShapeOfDims(const Tensor& dims) {
  if (dims.shape().rank() != 1) {
    throw InvalidArgumentError(StrCat("[kernels/random] expected a shape vector [rank]; got ", dims.shape()));
  }
  Shape shape;
  for (int64_t i = 0; i < dims.num_elements(); ++i) {
    if (IntegerAt(dims, i) < 0) {
      throw InvalidArgumentError(StrCat("[kernels/random] expected dimensions >= 0; got ", dims.ToString()));
    }
    shape.AddDim(IntegerAt(dims, i));
  }
  return shape;
}

// Throws InvalidArgumentError if the seed of a stateless op does not have two elements.
inline void CheckSeed(const Tensor& seed) {
  if (seed.num_elements() == 2) return;
  throw InvalidArgumentError(StrCat("[kernels/random] expected a seed of shape [2]; got ", seed.shape()));
}

// Returns the generator of a stateless op. Throws as CheckSeed does.
inline Philox PhiloxOfSeedInput(const Tensor& seed) {
  CheckSeed(seed);
  return Philox::FromStatelessSeed(static_cast<uint64_t>(IntegerAt(seed, 0)),
                                   static_cast<uint64_t>(IntegerAt(seed, 1)));
}

}  // namespace cohort
