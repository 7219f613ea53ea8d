// OrderedCode: encodes values as byte strings that sort (by memcmp) in the same order as the values. The keys of the
// parts of partitioned tensors in a checkpoint's index are made of such strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::ordered_code {

// Appends `text` with 0x00 as 00 ff and 0xff as ff 00, then the end mark 00 01.
void AppendString(std::string_view text, std::string* out);
// Appends the number of bytes that follow as one byte, then the value big-endian without leading zero bytes.
void AppendUnsigned(uint64_t value, std::string* out);
// Appends 1 to 10 bytes. The leading bits of the first bytes give their number.
void AppendSigned(int64_t value, std::string* out);

}  // namespace cohort::ordered_code
