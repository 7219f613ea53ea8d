// MemorySpace says to which memory an address belongs: to the host's memory or to the memory of one device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort {

// A small value that is cheap to copy and to compare. Two devices of one type have different spaces.
class COHORT_EXPORT MemorySpace {
 public:
  // The host's memory, which every thread of the process can read.
  constexpr MemorySpace() = default;
  static constexpr MemorySpace Host() { return {}; }
  // Returns the memory space of device number `ordinal` of a type such as "GPU". The ordinal counts memories of this
  // process: two logical devices that share one memory have the same ordinal. Thread-safe. Throws InvalidArgumentError
  // if the ordinal is negative or at least 2^24. Throws ResourceExhaustedError if this is the 256th device type.
  static MemorySpace OfDevice(std::string_view device_type, int64_t ordinal);

  constexpr bool is_host() const { return word_ == 0; }
  // Returns "host", or the type and the ordinal: "GPU:1".
  std::string ToString() const;

  friend constexpr bool operator==(MemorySpace a, MemorySpace b) { return a.word_ == b.word_; }
  // The order has no meaning. It lets spaces be keys of a std::set.
  friend constexpr bool operator<(MemorySpace a, MemorySpace b) { return a.word_ < b.word_; }

 private:
  constexpr explicit MemorySpace(uint32_t word) : word_(word) {}
  uint32_t word_ = 0;  // upper 8 bits: number of the device type (0: the host); lower 24 bits: the ordinal
};

}  // namespace cohort
