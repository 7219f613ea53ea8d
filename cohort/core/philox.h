// Philox4x32-10: a random generator whose output is a function of a key and a counter. So a program can compute any
// part of the output without computing the parts before it. Described in: Salmon, Moraes, Dror, Shaw: "Parallel Random
// Numbers: As Easy as 1, 2, 3", SC 2011. TensorFlow's random ops give the same numbers for the same key and counter.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace cohort {

// The random generator. It is a value: a copy gives the same numbers as the original. The counter has 128 bits in four
// words, the lowest word first. Not thread-safe.
class Philox {
 public:
  static constexpr int kWords = 4;  // 32-bit words that one call returns
  using Result = std::array<uint32_t, 4>;
  using Key = std::array<uint32_t, 2>;

  Philox() = default;
  // Starts as TensorFlow's stateful random ops do: `seed` is the key, `seed2` the upper half of the counter.
  Philox(uint64_t seed, uint64_t seed2)
      : counter_{0, 0, static_cast<uint32_t>(seed2), static_cast<uint32_t>(seed2 >> 32)},
        key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}
  Philox(const Result& counter, const Key& key) : counter_(counter), key_(key) {}
  // Starts as TensorFlow's stateless random ops do: the two seeds are mixed first, so that similar seeds give unrelated
  // numbers.
  static Philox FromStatelessSeed(uint64_t seed0, uint64_t seed1) {
    const Result counter = {static_cast<uint32_t>(seed0), static_cast<uint32_t>(seed0 >> 32),
                            static_cast<uint32_t>(seed1), static_cast<uint32_t>(seed1 >> 32)};
    const Result mix = Philox(counter, Key{0x3ec8f720, 0x02461e29})();
    return Philox(Result{0, 0, mix[2], mix[3]}, Key{mix[0], mix[1]});
  }

  // Returns the next four words and advances the counter.
  Result operator()() {
    Result x = counter_;
    Key key = key_;
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53} * x[0];
      const uint64_t b = uint64_t{0xCD9E8D57} * x[2];
      x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    Skip(1);
    return x;
  }

  const Result& counter() const { return counter_; }
  const Key& key() const { return key_; }

  // Advances the counter as `count` calls of operator() do.
  void Skip(uint64_t count) {
    const uint64_t low = (uint64_t{counter_[1]} << 32 | counter_[0]) + count;
    counter_[0] = static_cast<uint32_t>(low);
    counter_[1] = static_cast<uint32_t>(low >> 32);
    if (low < count && ++counter_[2] == 0) ++counter_[3];
  }

 private:
  Result counter_{};
  Key key_{};
};

// Returns the words of a Philox one by one. Not thread-safe.
class PhiloxWords {
 public:
  explicit PhiloxWords(const Philox& philox) : philox_(philox) {}
  uint32_t operator()() {
    if (used_ == Philox::kWords) {
      words_ = philox_();
      used_ = 0;
    }
    return words_[static_cast<size_t>(used_++)];
  }

 private:
  Philox philox_;
  Philox::Result words_{};
  int used_ = Philox::kWords;
};

// Returns a uniform number in [0, 1): 23 random bits become the mantissa of a number in [1, 2), and 1 is subtracted.
inline float UniformFloat(uint32_t bits) {
  return std::bit_cast<float>(uint32_t{127} << 23 | (bits & 0x7fffffu)) - 1.0f;
}
// Returns a uniform number in [0, 1) from 52 random bits: the lower 20 of `high` and all of `low`.
inline double UniformDouble(uint32_t high, uint32_t low) {
  return std::bit_cast<double>(uint64_t{1023} << 52 | uint64_t{high & 0xfffffu} << 32 | low) - 1.0;
}

// Returns two independent standard normal numbers, made from two uniform ones (Box and Muller, 1958).
inline std::pair<float, float> NormalFloats(uint32_t bits0, uint32_t bits1) {
  constexpr float kEpsilon = 1.0e-7f;
  const float uniform = UniformFloat(bits0);
  const float radius = std::sqrt(-2.0f * std::log(uniform < kEpsilon ? kEpsilon : uniform));
  const auto angle = static_cast<float>(2.0f * 3.14159265358979323846 * UniformFloat(bits1));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}
inline std::pair<double, double> NormalDoubles(uint32_t bits0, uint32_t bits1, uint32_t bits2, uint32_t bits3) {
  constexpr double kEpsilon = 1.0e-7;
  const double uniform = UniformDouble(bits0, bits1);
  const double radius = std::sqrt(-2.0 * std::log(uniform < kEpsilon ? kEpsilon : uniform));
  const double angle = 2 * 3.14159265358979323846 * UniformDouble(bits2, bits3);
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

}  // namespace cohort
