// CRC-32C checksums (Castagnoli; reflected polynomial 0x82F63B78), which TFRecord files and checkpoints contain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cohort::crc32c {

// Returns the checksum of a text whose first part has the checksum `crc` and whose rest is `bytes`. Uses the SSE4.2
// instruction if the processor has it.
uint32_t Extend(uint32_t crc, std::string_view bytes);
inline uint32_t Value(std::string_view bytes) { return Extend(0, bytes); }

// Mask returns the form of a checksum that is stored in files; Unmask reverses it. Files mask checksums because a
// checksum over bytes that contain checksums is weak.
inline uint32_t Mask(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
inline uint32_t Unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// Returns the same as Extend, but computes it from tables. Processors without the instruction use it, and tests compare
// the two.
uint32_t ExtendByTable(uint32_t crc, std::string_view bytes);

}  // namespace cohort::crc32c
