// MemorySpace: the memory that an address belongs to. It is the host's memory or the memory of one device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort {

// A small value that is compared as one word. Two devices of one type have different spaces.
class COHORT_EXPORT MemorySpace {
 public:
  // The host's memory, which every thread of the process can read.
  constexpr MemorySpace() = default;
  static constexpr MemorySpace Host() { return {}; }
  // The memory of device number `ordinal` of a type ("GPU"). The ordinal counts memories of this process, so two
  // devices that share one memory have the same one. Thread-safe. Throws InvalidArgumentError for a negative ordinal
  // or one of 2^24 and more, ResourceExhaustedError for more than 255 types.
  static MemorySpace OfDevice(std::string_view device_type, int64_t ordinal);

  constexpr bool is_host() const { return word_ == 0; }
  // "host", or the type and the ordinal: "GPU:1".
  std::string ToString() const;

  friend constexpr bool operator==(MemorySpace a, MemorySpace b) { return a.word_ == b.word_; }
  // Any fixed order, for sets.
  friend constexpr bool operator<(MemorySpace a, MemorySpace b) { return a.word_ < b.word_; }

 private:
  constexpr explicit MemorySpace(uint32_t word) : word_(word) {}
  uint32_t word_ = 0;  // the number of the type (0: the host) in the upper 8 bits, below it the ordinal
};

}  // namespace cohort
