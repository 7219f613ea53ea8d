#include "cohort/data/readers/record_writer.h"

#include <zlib.h>

#include <optional>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/record_io.h"
#include "cohort/core/str_cat.h"

namespace cohort::data {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr int kZlibWindow = 15;                // largest window, zlib header
constexpr int kGzipWindow = kZlibWindow + 16;  // gzip header
constexpr int kMemoryLevel = 8;                // zlib's default

// Packs bytes.
class Deflater {
 public:
  explicit Deflater(const TFRecordOptions& options) : packed_(kBufferBytes) {
    const int window = options.compression == Compression::kZlib ? kZlibWindow : kGzipWindow;
    if (deflateInit2(&stream_, options.compression_level, Z_DEFLATED, window, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
      throw ResourceExhaustedError("[data] expected memory to pack records; there is none");
    }
  }
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;

  // Packs `bytes`, and appends what is complete to the file. `flush` is Z_NO_FLUSH, Z_SYNC_FLUSH or Z_FINISH.
  void Append(std::string_view bytes, int flush, WritableFile& file) {
    constexpr size_t kMostAtOnce = size_t{1} << 30;  // zlib counts in 32 bits
    for (; bytes.size() > kMostAtOnce; bytes.remove_prefix(kMostAtOnce)) {
      Append(bytes.substr(0, kMostAtOnce), Z_NO_FLUSH, file);
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(packed_.data());
      stream_.avail_out = static_cast<uInt>(packed_.size());
      if (deflate(&stream_, flush) == Z_STREAM_ERROR) throw InternalError("[data] zlib cannot pack a record");
      file.Append({packed_.data(), packed_.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
  }

 private:
  z_stream stream_{};
  std::vector<char> packed_;
};

const TFRecordOptions& Checked(const TFRecordOptions& options) {
  const int level = options.compression_level;
  const bool packed = options.compression != Compression::kNone;
  if (level == -1 || (packed && level >= 0 && level <= 9)) return options;
  throw InvalidArgumentError(StrCat("[data] expected a compression_level from -1 to 9", packed ? "" : " of -1",
                                    packed ? "" : ", as there is no compression", "; got ", level));
}

}  // namespace

class TFRecordWriter::Output {
 public:
  Output(const std::string& path, const TFRecordOptions& options) : file_(path) {
    if (options.compression != Compression::kNone) deflater_.emplace(options);
  }
  void Append(const std::string& bytes, int flush) {
    if (deflater_) {
      deflater_->Append(bytes, flush, file_);
    } else if (!bytes.empty()) {
      file_.Append(bytes);
    }
  }
  void Close() { file_.Close(); }

 private:
  WritableFile file_;
  std::optional<Deflater> deflater_;
};

TFRecordWriter::TFRecordWriter(const std::string& path, const TFRecordOptions& options)
    : output_(std::make_unique<Output>(path, Checked(options))), path_(path) {}

TFRecordWriter::~TFRecordWriter() {
  try {
    Close();
  } catch (const Error&) {  // a destructor cannot report it
  }
}

void TFRecordWriter::Write(std::string_view record) {
  if (output_ == nullptr) {
    throw FailedPreconditionError(StrCat("[data] expected an open file for a record; ", path_, " was closed"));
  }
  EncodeRecord(record, &buffer_);
  if (buffer_.size() < kBufferBytes) return;
  const std::string bytes = std::move(buffer_);
  buffer_.clear();
  output_->Append(bytes, Z_NO_FLUSH);
}

void TFRecordWriter::Flush() {
  if (output_ == nullptr) return;
  const std::string bytes = std::move(buffer_);
  buffer_.clear();
  output_->Append(bytes, Z_SYNC_FLUSH);
}

void TFRecordWriter::Close() {
  if (output_ == nullptr) return;
  const std::unique_ptr<Output> output = std::move(output_);
  const std::string bytes = std::move(buffer_);
  buffer_.clear();
  output->Append(bytes, Z_FINISH);
  output->Close();
}

}  // namespace cohort::data
