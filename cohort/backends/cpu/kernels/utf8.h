// Reads and writes characters in UTF-8. Internal to backends/cpu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::cpu {

inline constexpr int32_t kReplacementCharacter = 0xFFFD;

// Returns true for a byte that continues a character.
inline bool ContinuesCharacter(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// A character, or bytes that are none.
struct Utf8Piece {
  int32_t character = kReplacementCharacter;
  size_t bytes = 1;
  bool valid = false;
};
// Returns the character at the begin of `text`. If there is none, the piece is the longest begin of a character, or one
// byte. Requires: `text` is not empty.
Utf8Piece FirstCharacter(std::string_view text);

// Returns false for surrogates, and for numbers outside of [0, 0x10FFFF].
bool IsCharacter(int32_t number);

// Appends a character. Requires: IsCharacter(character).
void AppendCharacter(int32_t character, std::string* text);

}  // namespace cohort::cpu
