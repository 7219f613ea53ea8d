#include <zlib.h>

#include <array>

#include "cohort/core/str_cat.h"
#include "cohort/keras/files/weights_chunks_internal.h"

namespace cohort::keras {
namespace {

constexpr uint64_t kChecksumBytes = 4;  // of fletcher32
constexpr size_t kNone = ~size_t{0};

// The places of the filters in the pipeline, in the order in which they are applied when a chunk is written.
struct Pipeline {
  size_t shuffle = kNone, deflate = kNone, checksum = kNone;

  // Returns "" if the pipeline is one that CheckChunks can follow.
  std::string Read(hid_t properties) {
    const int count = H5Pget_nfilters(properties);
    for (int i = 0; i < count; ++i) {
      unsigned flags = 0, config = 0;
      size_t values = 0;
      const H5Z_filter_t filter =
          H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &config);
      size_t* const place = filter == H5Z_FILTER_DEFLATE      ? &deflate
                            : filter == H5Z_FILTER_SHUFFLE    ? &shuffle
                            : filter == H5Z_FILTER_FLETCHER32 ? &checksum
                                                              : nullptr;
      if (place == nullptr) return StrCat("needs filter ", filter, "; only gzip, shuffle and fletcher32 are read");
      if (*place != kNone) return StrCat("uses filter ", filter, " twice");
      *place = static_cast<size_t>(i);
    }
    if (shuffle != kNone && deflate != kNone && shuffle > deflate) return "is shuffled after it was packed";
    return "";
  }
  // Whether a filter was applied to a chunk. A bit of `mask` says that the filter at its place was not.
  static bool Applies(size_t place, uint32_t mask) { return place != kNone && (mask >> place & 1) == 0; }
};

// Returns how many bytes `packed` unpacks to, or `most` + 1 if these are more than `most`, or nothing good: 0.
uint64_t UnpackedSize(const std::vector<uint8_t>& packed, uint64_t most) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return 0;
  std::array<uint8_t, 16 << 10> piece;
  stream.next_in = const_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  int result = Z_OK;
  uint64_t size = 0;
  while (result == Z_OK && size <= most) {
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    result = inflate(&stream, Z_NO_FLUSH);
    size += piece.size() - stream.avail_out;
  }
  inflateEnd(&stream);
  if (size > most) return most + 1;
  return result == Z_STREAM_END ? size : 0;
}

// Looks at one chunk after another.
class Checker {
 public:
  Checker(hid_t dataset, const Pipeline& pipeline, size_t file_bytes, uint64_t chunk_bytes)
      : dataset_(dataset), pipeline_(pipeline), file_bytes_(file_bytes), chunk_bytes_(chunk_bytes) {}

  std::string Check(const hsize_t* offset) {
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t size = 0;
    if (H5Dget_chunk_info_by_coord(dataset_, offset, &mask, &address, &size) < 0) return "has a damaged list of chunks";
    if (address == HADDR_UNDEF) return "";  // it is not stored; its elements have the fill value
    if (size > file_bytes_) return StrCat("has a chunk of ", size, " bytes in a file of ", file_bytes_);
    const bool has_checksum = Pipeline::Applies(pipeline_.checksum, mask);
    if (!Pipeline::Applies(pipeline_.deflate, mask)) {
      const uint64_t expected = chunk_bytes_ + (has_checksum ? kChecksumBytes : 0);
      return size == expected ? "" : StrCat("has a chunk of ", size, " bytes; expected ", expected);
    }
    packed_.resize(size);
    uint32_t read_mask = 0;
    if (H5Dread_chunk(dataset_, H5P_DEFAULT, offset, &read_mask, packed_.data()) < 0) return "has an unreadable chunk";
    const bool packs_checksum = has_checksum && pipeline_.checksum < pipeline_.deflate;
    const uint64_t expected = chunk_bytes_ + (packs_checksum ? kChecksumBytes : 0);
    const uint64_t unpacked = UnpackedSize(packed_, expected);
    if (unpacked == expected) return "";
    return StrCat("has a chunk that unpacks to ", unpacked > expected ? "more than " : "fewer than ", expected,
                  " bytes");
  }

 private:
  const hid_t dataset_;
  const Pipeline& pipeline_;
  const size_t file_bytes_;
  const uint64_t chunk_bytes_;
  std::vector<uint8_t> packed_;
};

}  // namespace

std::string CheckChunks(hid_t dataset, hid_t properties, const std::vector<hsize_t>& sizes, size_t element_bytes,
                        ChunkBudget& budget) {
  Pipeline pipeline;
  const std::string problem = pipeline.Read(properties);
  if (!problem.empty()) return problem;
  std::vector<hsize_t> chunk(sizes.size());
  if (sizes.empty() ||
      H5Pget_chunk(properties, static_cast<int>(chunk.size()), chunk.data()) != static_cast<int>(chunk.size())) {
    return "has no shape of its chunks";
  }
  uint64_t chunk_bytes = element_bytes, chunks = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (chunk[i] == 0 || __builtin_mul_overflow(chunk_bytes, chunk[i], &chunk_bytes) ||
        chunk_bytes > budget.most_bytes) {
      return StrCat("has chunks of more than ", budget.most_bytes, " bytes");
    }
    const uint64_t along = sizes[i] / chunk[i] + (sizes[i] % chunk[i] != 0 ? 1 : 0);
    if (__builtin_mul_overflow(chunks, along, &chunks)) return "has too many chunks";
  }
  if (chunks > budget.chunks) return StrCat("has ", chunks, " chunks; all datasets together may have ", budget.chunks);
  budget.chunks -= chunks;

  Checker checker(dataset, pipeline, budget.file_bytes, chunk_bytes);
  std::vector<hsize_t> offset(sizes.size(), 0);
  for (uint64_t i = 0; i < chunks; ++i) {
    const std::string wrong = checker.Check(offset.data());
    if (!wrong.empty()) return wrong;
    for (size_t axis = sizes.size(); axis-- > 0;) {  // goes on to the next chunk, the last axis first
      offset[axis] += chunk[axis];
      if (offset[axis] < sizes[axis]) break;
      offset[axis] = 0;
    }
  }
  return "";
}

}  // namespace cohort::keras
