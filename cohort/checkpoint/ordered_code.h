// OrderedCode: byte strings that sort (memcmp) as the values do that they were made from. Parts of
// partitioned tensors are found in a checkpoint's index under keys built from these pieces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::ordered_code {

// 0x00 -> 00 ff, 0xff -> ff 00, end -> 00 01.
void AppendString(std::string_view text, std::string* out);
// One byte that counts the bytes that follow, then the value, big-endian, without leading zero bytes.
void AppendUnsigned(uint64_t value, std::string* out);
// 1 to 10 bytes; the leading bits tell how many.
void AppendSigned(int64_t value, std::string* out);

}  // namespace cohort::ordered_code
