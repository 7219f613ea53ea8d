#include "cohort/checkpoint/ordered_code.h"

namespace cohort::ordered_code {
namespace {

// Bytes that `value` needs: n of them cover [-2^(7n-1), 2^(7n-1)).
int SignedLength(int64_t value) {
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  for (int n = 1; n < 10; ++n) {
    if ((magnitude >> (7 * n - 1)) == 0) return n;
  }
  return 10;
}

// The first two bytes are XORed with this, by length: n ones and a zero, cut to 16 bits.
constexpr unsigned char kSignedHeader[11][2] = {{0, 0},    {0x80, 0}, {0xc0, 0}, {0xe0, 0},    {0xf0, 0},   {0xf8, 0},
                                                {0xfc, 0}, {0xfe, 0}, {0xff, 0}, {0xff, 0x80}, {0xff, 0xc0}};

}  // namespace

void AppendString(std::string_view text, std::string* out) {
  for (const char c : text) {
    out->push_back(c);
    if (c == '\0') out->push_back('\xff');
    if (c == '\xff') out->push_back('\0');
  }
  out->push_back('\0');
  out->push_back('\x01');
}

void AppendUnsigned(uint64_t value, std::string* out) {
  int length = 0;
  while (length < 8 && (value >> (8 * length)) != 0) ++length;
  out->push_back(static_cast<char>(length));
  for (int i = length - 1; i >= 0; --i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void AppendSigned(int64_t value, std::string* out) {
  const int length = SignedLength(value);
  const size_t begin = out->size();
  for (int i = length - 1; i >= 0; --i) {
    const int64_t byte = i >= 8 ? (value < 0 ? -1 : 0) : value >> (8 * i);  // sign extension past 64 bits
    out->push_back(static_cast<char>(byte));
  }
  (*out)[begin] = static_cast<char>((*out)[begin] ^ kSignedHeader[length][0]);
  if (length > 1) (*out)[begin + 1] = static_cast<char>((*out)[begin + 1] ^ kSignedHeader[length][1]);
}

}  // namespace cohort::ordered_code
