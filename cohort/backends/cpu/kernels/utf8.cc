#include "cohort/backends/cpu/kernels/utf8.h"

namespace cohort::cpu {
namespace {

// What a first byte says: how many bytes follow, and which values the second byte may have.
struct Lead {
  size_t more = 0;
  uint8_t low = 0x80, high = 0xBF;
  bool valid = true;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {};
  if (byte < 0xC2 || byte > 0xF4) return {.valid = false};
  if (byte < 0xE0) return {.more = 1};
  if (byte == 0xE0) return {.more = 2, .low = 0xA0};
  if (byte == 0xED) return {.more = 2, .high = 0x9F};  // no surrogates
  if (byte < 0xF0) return {.more = 2};
  if (byte == 0xF0) return {.more = 3, .low = 0x90};
  if (byte == 0xF4) return {.more = 3, .high = 0x8F};
  return {.more = 3};
}

}  // namespace

Utf8Piece FirstCharacter(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const Lead lead = LeadOf(first);
  if (!lead.valid) return {};
  int32_t character = lead.more == 0 ? first : first & (0x3F >> lead.more);
  for (size_t i = 1; i <= lead.more; ++i) {
    const uint8_t low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xBF;
    const uint8_t byte = i < text.size() ? static_cast<uint8_t>(text[i]) : 0;
    if (byte < low || byte > high) return {.bytes = i};
    character = character << 6 | (byte & 0x3F);
  }
  return {character, lead.more + 1, true};
}

void AppendCharacter(int32_t character, std::string* text) {
  const auto c = static_cast<uint32_t>(character);
  const auto append = [&](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  const auto more = [&](uint32_t shift) { append(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) return append(c);
  if (c < 0x800) {
    append(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    append(0xE0 | c >> 12);
    more(6);
  } else {
    append(0xF0 | c >> 18);
    more(12);
    more(6);
  }
  more(0);
}

bool IsCharacter(int32_t number) { return number >= 0 && number <= 0x10FFFF && (number < 0xD800 || number > 0xDFFF); }

}  // namespace cohort::cpu
