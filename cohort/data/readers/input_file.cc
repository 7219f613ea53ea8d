#include "cohort/data/readers/input_file.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::data {
namespace {

constexpr size_t kInputBytes = 256 << 10;
constexpr int64_t kMaxRatio = 1032;            // of the deflate format
constexpr int64_t kMaxGrowth = 64;             // of one value; real data hardly grow by more
constexpr int64_t kAlwaysAllowed = 256 << 20;  // for one value of a small compressed file
constexpr int kZlibWindow = 15;                // largest window, zlib header
constexpr int kGzipWindow = kZlibWindow + 16;  // gzip header

}  // namespace

struct InputFile::Inflater {
  explicit Inflater(Compression compression)
      : format(compression == Compression::kZlib ? "zlib" : "gzip"), input(kInputBytes) {
    const int window = compression == Compression::kZlib ? kZlibWindow : kGzipWindow;
    if (inflateInit2(&stream, window) != Z_OK) {
      throw ResourceExhaustedError(StrCat("[data] expected memory to unpack ", format, "; there is none"));
    }
  }
  ~Inflater() { inflateEnd(&stream); }

  const char* const format;
  z_stream stream{};
  std::vector<char> input;
  bool in_member = true;  // false between gzip members and after the last
};

InputFile::InputFile(const std::string& path) : file_(path) {
  char magic[2];
  if (file_.Read(0, magic) == 2 && magic[0] == '\x1f' && magic[1] == '\x8b') {
    inflater_ = std::make_unique<Inflater>(Compression::kGzip);
  }
}

InputFile::InputFile(const std::string& path, Compression compression) : file_(path) {
  if (compression != Compression::kNone) inflater_ = std::make_unique<Inflater>(compression);
}

InputFile::~InputFile() = default;

int64_t InputFile::MaxSize() const {
  const int64_t size = file_.Size();
  if (!compressed()) return size;
  return size > std::numeric_limits<int64_t>::max() / kMaxRatio ? std::numeric_limits<int64_t>::max()
                                                                : size * kMaxRatio;
}

int64_t InputFile::MaxValueBytes() const {
  const int64_t size = file_.Size();
  if (!compressed()) return size;
  return std::max(kAlwaysAllowed, std::min(size, std::numeric_limits<int64_t>::max() / kMaxGrowth) * kMaxGrowth);
}

size_t InputFile::Read(std::span<char> out) {
  if (compressed()) return ReadInflated(out);
  const size_t count = file_.Read(offset_, out);
  offset_ += static_cast<int64_t>(count);
  return count;
}

size_t InputFile::ReadInflated(std::span<char> out) {
  z_stream& stream = inflater_->stream;
  size_t done = 0;
  while (done < out.size()) {
    if (stream.avail_in == 0) {
      const size_t count = file_.Read(offset_, inflater_->input);
      offset_ += static_cast<int64_t>(count);
      stream.next_in = reinterpret_cast<Bytef*>(inflater_->input.data());
      stream.avail_in = static_cast<uInt>(count);
      if (count == 0 && !inflater_->in_member) break;
      if (count == 0) {
        throw DataLossError(StrCat("[data] the ", inflater_->format, " file ", path(),
                                   " is cut off: it ends at offset ", offset_, " in the middle of its data (",
                                   stream.total_out, " bytes came out)"));
      }
    }
    if (!inflater_->in_member) {  // files may be gzip members one after another
      inflateReset(&stream);
      inflater_->in_member = true;
    }
    const auto room = static_cast<uInt>(std::min<size_t>(out.size() - done, std::numeric_limits<uInt>::max()));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = room;
    const int result = inflate(&stream, Z_NO_FLUSH);
    done += room - stream.avail_out;
    if (result == Z_STREAM_END) {
      inflater_->in_member = false;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw DataLossError(StrCat("[data] the ", inflater_->format, " file ", path(), " is corrupt before offset ",
                                 offset_ - static_cast<int64_t>(stream.avail_in), ": ",
                                 stream.msg != nullptr ? stream.msg : "it is of another format"));
    }
  }
  return done;
}

}  // namespace cohort::data
