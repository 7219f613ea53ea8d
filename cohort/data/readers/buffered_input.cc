#include "cohort/data/readers/buffered_input.h"

#include <algorithm>
#include <cstring>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::data {
namespace {

constexpr size_t kBufferBytes = 256 << 10;  // TensorFlow's

}  // namespace

BufferedInput::BufferedInput(const std::string& path, Compression compression)
    : file_(path, compression), max_value_bytes_(file_.MaxValueBytes()), buffer_(kBufferBytes) {}

bool BufferedInput::Fill() {
  buffer_offset_ += static_cast<int64_t>(filled_);
  next_ = filled_ = 0;
  filled_ = file_.Read(buffer_);
  return filled_ > 0;
}

void BufferedInput::SkipTo(int64_t offset) {
  if (!file_.compressed() && offset > buffer_offset_ + static_cast<int64_t>(filled_)) {
    file_.Seek(offset);
    buffer_offset_ = offset;
    next_ = filled_ = 0;
    return;
  }
  while (this->offset() < offset) {
    if (next_ == filled_ && !Fill()) {
      throw DataLossError(
          StrCat("[data] expected ", path(), " to go on to offset ", offset, "; it ends at ", this->offset()));
    }
    next_ += std::min(filled_ - next_, static_cast<size_t>(offset - this->offset()));
  }
}

size_t BufferedInput::Read(std::span<char> out) {
  size_t done = 0;
  while (done < out.size() && (next_ < filled_ || Fill())) {
    const size_t count = std::min(out.size() - done, filled_ - next_);
    std::memcpy(out.data() + done, buffer_.data() + next_, count);
    next_ += count;
    done += count;
  }
  return done;
}

bool BufferedInput::ReadLine(std::string* line) {
  line->clear();
  const int64_t start = offset();
  bool any = false;
  while (next_ < filled_ || Fill()) {
    any = true;
    const char* begin = buffer_.data() + next_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', filled_ - next_));
    const size_t count = end == nullptr ? filled_ - next_ : static_cast<size_t>(end - begin);
    line->append(begin, count);
    CheckValueBytes(line->size(), "a line", start);
    next_ += count + (end == nullptr ? 0 : 1);
    if (end != nullptr) break;
  }
  return any;
}

void BufferedInput::SkipLine() {
  while (next_ < filled_ || Fill()) {
    const char* begin = buffer_.data() + next_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', filled_ - next_));
    next_ = end == nullptr ? filled_ : next_ + static_cast<size_t>(end - begin) + 1;
    if (end != nullptr) return;
  }
}

void BufferedInput::CheckValueBytes(uint64_t bytes, const char* what, int64_t start) const {
  // A file that is not compressed may have grown since it was opened.
  if (!file_.compressed() || bytes <= static_cast<uint64_t>(max_value_bytes_)) return;
  throw DataLossError(StrCat("[data] expected ", what, " of at most ", max_value_bytes_, " bytes at offset ", start,
                             " of the unpacked file ", path(), "; got ", bytes, " or more"));
}

}  // namespace cohort::data
