#include "cohort/core/wire.h"

#include "cohort/core/str_cat.h"

namespace cohort {

void WireReader::Fail(const char* what) const {
  throw DataLossError(StrCat("[wire] ", what, " at byte ", at_, " of ", bytes_.size(), " bytes"));
}

uint64_t WireReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    if (at_ == bytes_.size()) Fail("a varint is cut off");
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    // The tenth byte has the highest bit of the number. A writer never sets another bit of it.
    if (shift == 63 && byte > 1) Fail("a varint is greater than 64 bits");
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

uint64_t WireReader::Varint(uint64_t limit) {
  const uint64_t value = Varint();
  if (value > limit) Fail("a number is too large");
  return value;
}

uint64_t WireReader::Fixed64() {
  if (bytes_.size() - at_ < 8) Fail("a fixed number is cut off");
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes_[at_++])) << (8 * i);
  return value;
}

std::string_view WireReader::View() {
  const uint64_t size = Varint();
  if (size > bytes_.size() - at_) Fail("a string is cut off");
  const std::string_view text = bytes_.substr(at_, size);
  at_ += size;
  return text;
}

void WireReader::ExpectEnd() const {
  if (!AtEnd()) Fail("unexpected bytes");
}

void PutStatus(WireWriter& out, const Status& status) {
  out.Varint(static_cast<uint64_t>(status.code()));
  out.String(status.message());
}

Status GetStatus(WireReader& in) {
  const auto code = static_cast<Code>(in.Varint(static_cast<uint64_t>(Code::kUnauthenticated)));
  return Status(code, in.String());
}

}  // namespace cohort
