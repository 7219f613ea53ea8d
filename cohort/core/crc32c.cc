#include "cohort/core/crc32c.h"

#include <array>
#include <cstring>

namespace cohort::crc32c {
namespace {

constexpr int kSlices = 8;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// tables[k][b] is the effect of byte b that is followed by k more bytes of an eight-byte word.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0x82F63B78u : 0u);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < kSlices; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t shorter = tables[k - 1][byte];
      tables[k][byte] = (shorter >> 8) ^ tables[0][shorter & 0xffu];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ExtendByInstruction(uint32_t crc, std::string_view bytes) {
  const char* data = bytes.data();
  size_t left = bytes.size();
  uint64_t state = ~crc;
  for (; left >= 8; left -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    state = __builtin_ia32_crc32di(state, word);
  }
  uint32_t tail = static_cast<uint32_t>(state);
  for (; left > 0; --left, ++data) tail = __builtin_ia32_crc32qi(tail, static_cast<unsigned char>(*data));
  return ~tail;
}
bool HasInstruction() { return __builtin_cpu_supports("sse4.2") != 0; }
#else
uint32_t ExtendByInstruction(uint32_t crc, std::string_view bytes) { return ExtendByTable(crc, bytes); }
bool HasInstruction() { return false; }
#endif

}  // namespace

uint32_t ExtendByTable(uint32_t crc, std::string_view bytes) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  uint32_t state = ~crc;
  for (; left >= 8; left -= 8, data += 8) {
    uint32_t folded = 0;
    for (size_t i = 0; i < 4; ++i) folded ^= kTables[7 - i][data[i] ^ ((state >> (8 * i)) & 0xffu)];
    for (size_t i = 4; i < 8; ++i) folded ^= kTables[7 - i][data[i]];
    state = folded;
  }
  for (; left > 0; --left, ++data) state = (state >> 8) ^ kTables[0][(state ^ *data) & 0xffu];
  return ~state;
}

uint32_t Extend(uint32_t crc, std::string_view bytes) {
  static const bool has_instruction = HasInstruction();
  return has_instruction ? ExtendByInstruction(crc, bytes) : ExtendByTable(crc, bytes);
}

}  // namespace cohort::crc32c
