// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), as TFRecord files and checkpoints carry it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cohort::crc32c {

// The crc of the bytes that gave `crc`, followed by `bytes`. Uses the SSE4.2 instruction where the machine
// has it.
uint32_t Extend(uint32_t crc, std::string_view bytes);
inline uint32_t Value(std::string_view bytes) { return Extend(0, bytes); }

// The stored form: a crc over bytes that hold crcs themselves would be weak, so it is rotated and shifted.
inline uint32_t Mask(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
inline uint32_t Unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// The same function from tables alone, for machines without the instruction and for the tests that compare
// the two.
uint32_t ExtendByTable(uint32_t crc, std::string_view bytes);

}  // namespace cohort::crc32c
