// BundleReader. The constructor reads the index and separates names of tensors from keys of parts. A tensor is read in
// chunks, and its checksum is compared at the end (CheckedChunks). A slice is put together from the stored parts that
// it overlaps (CopyOverlap).
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr int32_t kVariantNumber = 21;  // TensorFlow's DT_VARIANT, whose checksum is over parts of the bytes

void SwapBytes(size_t width, std::span<char> bytes) {
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    std::reverse(bytes.data() + at, bytes.data() + at + width);
  }
}

// Any byte but 0 in a bool is undefined behaviour later.
void NormaliseBools(Tensor* tensor) {
  if (tensor->dtype() != DType::kBool) return;
  auto* bytes = static_cast<unsigned char*>(tensor->raw_data());
  for (size_t i = 0; i < tensor->bytes(); ++i) bytes[i] = bytes[i] != 0;
}

// Each pair of parts is compared. Cohort makes at most one part for each parameter server.
constexpr size_t kMaxParts = 8192;

// Boxes of one tensor must not share elements: then equal counts mean full coverage.
void CheckDisjoint(const std::string& name, const std::string& prefix, const std::vector<TensorSlice>& boxes) {
  if (boxes.size() > kMaxParts) {
    throw DataLossError(StrCat("[checkpoint] expected at most ", kMaxParts, " parts of \"", name, "\" in ", prefix,
                               "; got ", boxes.size()));
  }
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t j = i + 1; j < boxes.size(); ++j) {
      if (SliceOverlap(boxes[i], boxes[j]).size() == 0) continue;
      throw DataLossError(StrCat("[checkpoint] the parts ", boxes[i].ToString(), " and ", boxes[j].ToString(), " of \"",
                                 name, "\" in ", prefix, " overlap"));
    }
  }
}

// Returns the prefix of the checkpoint to which the file `path` belongs by its name, or "" if it belongs to none.
std::string PrefixOfFile(const std::string& path) {
  for (const std::string_view ending : {".index", ".meta"}) {
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  }
  const size_t data = path.rfind(".data-");
  return data == std::string::npos || path.find('/', data) != std::string::npos ? "" : path.substr(0, data);
}

// TensorFlow's V1 format has one file with the name of the prefix: a table, whose last bytes are a fixed number. If
// several tasks have written it, the prefix has question marks in place of a file's number:
// "model.ckpt-5-?????-of-00002".
bool IsInFormatV1(const std::string& prefix) {
  std::string first = prefix;
  if (const size_t number = prefix.rfind("-\?\?\?\?\?-of-"); number != std::string::npos) {
    first.replace(number + 1, 5, "00000");
  }
  constexpr std::string_view kEndOfTable = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  std::ifstream file(first, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::streamoff>(file.tellg());
  std::string end(kEndOfTable.size(), '\0');
  if (!file || size < static_cast<std::streamoff>(end.size())) return false;
  file.seekg(size - static_cast<std::streamoff>(end.size()));
  return file.read(end.data(), static_cast<std::streamsize>(end.size())) && end == kEndOfTable;
}

// Returns what the user may have meant by a prefix that has no index, as a part of an error, or "".
std::string OtherMeaning(const std::string& prefix) {
  const std::string real = PrefixOfFile(prefix);
  if (!real.empty() && FileExists(IndexFileName(real))) {
    return StrCat(". It is a file of the checkpoint ", real, ", whose name has no such ending");
  }
  if (!IsInFormatV1(prefix)) return "";
  return StrCat(
      ". The file ", prefix,
      " is in TensorFlow's V1 format, which is not read. Convert it in TensorFlow: restore it there, and save "
      "it with tf.compat.v1.train.Saver(write_version=tf.compat.v1.train.SaverDef.V2)");
}

}  // namespace

BundleReader::BundleReader(const std::string& prefix) : prefix_(prefix) {
  const std::string file = IndexFileName(prefix);
  if (!FileExists(file)) {
    throw NotFoundError(
        StrCat("[checkpoint] there is no checkpoint ", prefix, ": ", file, " does not exist", OtherMeaning(prefix)));
  }
  index_ = DecodeIndex(ReadFile(file), file);
  for (auto it = index_.entries.begin(); it != index_.entries.end();) {
    if (IsSliceKey(it->first)) {
      ++it;
    } else {
      tensors_.insert(index_.entries.extract(it++));
    }
  }
}

BundleReader::~BundleReader() = default;

const BundleEntry& BundleReader::Find(const std::string& name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) throw NotFoundError(StrCat("Key ", name, " not found in checkpoint ", prefix_));
  return it->second;
}

const RandomAccessFile& BundleReader::Shard(int shard) const {
  MutexLock lock(mu_);
  std::unique_ptr<RandomAccessFile>& open = shards_[shard];
  if (open == nullptr) {
    const std::string file = DataFileName(prefix_, shard, index_.num_shards);
    if (!FileExists(file)) {
      throw DataLossError(StrCat("[checkpoint] the data file ", file, " of the checkpoint is missing"));
    }
    open = std::make_unique<RandomAccessFile>(file);
  }
  return *open;
}

const BundleEntry& BundleReader::SliceEntry(const std::string& name, const BundleEntry& full,
                                            const TensorSlice& slice) const {
  const auto it = index_.entries.find(SliceKey(name, slice));
  if (it == index_.entries.end() || it->second.dtype_number != full.dtype_number ||
      !(it->second.shape == slice.ShapeIn(full.shape))) {
    throw DataLossError(StrCat("[checkpoint] the index of ", prefix_, " has no fitting entry for the part ",
                               slice.ToString(), " of \"", name, "\""));
  }
  return it->second;
}

std::vector<const BundleEntry*> BundleReader::StoredParts(const std::string& name) const {
  const BundleEntry& entry = Find(name);
  if (entry.slices.empty()) return {&entry};
  std::vector<const BundleEntry*> parts;
  for (const TensorSlice& slice : entry.slices) parts.push_back(&SliceEntry(name, entry, slice));
  return parts;
}

std::string BundleReader::Where(const std::string& name, const BundleEntry& entry) const {
  return StrCat("[checkpoint] the tensor \"", name, "\" (", entry.dtype_name(), entry.shape, ", ", entry.size,
                " bytes at offset ", entry.offset, " of ", DataFileName(prefix_, entry.shard, index_.num_shards), ")");
}

void BundleReader::ReadChunks(const std::string& name, const BundleEntry& entry, std::span<char> buffer,
                              const std::function<void(std::string_view)>& consume) const {
  const RandomAccessFile& file = Shard(entry.shard);
  for (int64_t done = 0; done < entry.size;) {
    const auto want = static_cast<size_t>(std::min<int64_t>(entry.size - done, static_cast<int64_t>(buffer.size())));
    const size_t got = file.Read(entry.offset + done, buffer.subspan(0, want));
    if (got < want) {
      throw DataLossError(StrCat(Where(name, entry), " is cut off: the file has only ", file.Size(), " bytes"));
    }
    consume({buffer.data(), got});
    done += static_cast<int64_t>(got);
  }
}

void BundleReader::CheckedChunks(const std::string& name, const BundleEntry& entry,
                                 const std::function<void(std::string_view)>& consume) const {
  std::vector<char> buffer(static_cast<size_t>(std::min<int64_t>(entry.size, kCheckpointChunkBytes)));
  uint32_t crc = 0;
  const size_t width = index_.swap_bytes ? DTypeSize(entry.dtype()) : 1;
  ReadChunks(name, entry, buffer, [&](std::string_view bytes) {
    crc = crc32c::Extend(crc, bytes);
    if (width > 1) SwapBytes(width, {buffer.data(), bytes.size()});
    consume(bytes);
  });
  if (crc == entry.crc32c) return;
  throw DataLossError(StrCat(Where(name, entry), " is corrupt: crc32c ", entry.crc32c, " stored, ", crc, " computed"));
}

void BundleReader::CheckReadable(const std::string& name, const BundleEntry& entry) const {
  if (entry.dtype() == DType::kInvalid || IsHandle(entry.dtype())) {
    throw UnimplementedError(StrCat(Where(name, entry), " has a dtype that we lack"));
  }
  // Checks the files before memory is allocated, because a corrupt index may claim any size. Many parts may claim the
  // same bytes, so the parts in a file must not have more bytes than the file.
  std::map<int32_t, int64_t> bytes_in_shard;
  for (const BundleEntry* part : StoredParts(name)) {
    const RandomAccessFile& file = Shard(part->shard);
    if (file.Size() < part->offset + part->size) {
      throw DataLossError(StrCat(Where(name, *part), " is cut off: the file has only ", file.Size(), " bytes"));
    }
    int64_t& bytes = bytes_in_shard[part->shard];
    bytes += part->size;
    if (bytes > file.Size()) {
      throw DataLossError(StrCat(Where(name, *part), " and the parts before it have ", bytes,
                                 " bytes; expected no more than the ", file.Size(),
                                 " of the file, and no bytes twice"));
    }
  }
}

Tensor BundleReader::ReadStrings(const std::string& name, const BundleEntry& entry) const {
  if (index_.swap_bytes) throw UnimplementedError(StrCat(Where(name, entry), " holds strings of a big-endian machine"));
  std::string bytes(static_cast<size_t>(entry.size), '\0');
  ReadChunks(name, entry, bytes, [](std::string_view) {});
  Tensor out(DType::kString, entry.shape);
  DecodeStrings(bytes, entry.crc32c, Where(name, entry), &out);
  return out;
}

Tensor BundleReader::ReadEntry(const std::string& name, const BundleEntry& entry) const {
  if (entry.dtype() == DType::kString) return ReadStrings(name, entry);
  Tensor out(entry.dtype(), entry.shape);
  char* to = static_cast<char*>(out.raw_data());
  CheckedChunks(name, entry, [&](std::string_view bytes) {
    std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  });
  NormaliseBools(&out);
  return out;
}

Tensor BundleReader::Read(const std::string& name) const {
  const BundleEntry& entry = Find(name);
  CheckReadable(name, entry);
  if (entry.slices.empty()) return ReadEntry(name, entry);
  return ReadSlice(name, TensorSlice::Whole(entry.shape.rank()));
}

// The chunks of one stored box come in the order of its elements, and so do the runs of wanted elements.
void BundleReader::CopyOverlap(const std::string& name, const BundleEntry& entry, const TensorSlice& stored,
                               const TensorSlice& wanted, Tensor* out) const {
  SliceOverlap overlap(stored, wanted);
  SliceOverlap::Run run;
  if (out->dtype() == DType::kString) {
    const Tensor strings = ReadStrings(name, entry);
    while (overlap.Next(&run)) {
      std::copy_n(strings.data<std::string>() + run.from, run.length, out->data<std::string>() + run.to);
    }
    return;
  }
  const auto width = static_cast<int64_t>(DTypeSize(out->dtype()));
  char* to = static_cast<char*>(out->raw_data());
  int64_t position = 0;  // of the chunk, in bytes of the stored box
  bool more = overlap.Next(&run);
  CheckedChunks(name, entry, [&](std::string_view bytes) {
    const int64_t end = position + static_cast<int64_t>(bytes.size());
    while (more && run.from * width < end) {
      const int64_t begin = std::max(run.from * width, position);
      const int64_t stop = std::min((run.from + run.length) * width, end);
      std::memcpy(to + run.to * width + (begin - run.from * width), bytes.data() + (begin - position),
                  static_cast<size_t>(stop - begin));
      if (stop < (run.from + run.length) * width) break;  // goes on in the next chunk
      more = overlap.Next(&run);
    }
    position = end;
  });
}

Tensor BundleReader::ReadSlice(const std::string& name, const TensorSlice& slice) const {
  const BundleEntry& entry = Find(name);
  const TensorSlice wanted = slice.ResolvedIn(entry.shape);
  CheckReadable(name, entry);
  std::vector<TensorSlice> boxes;
  for (const TensorSlice& stored : entry.slices) boxes.push_back(stored.ResolvedIn(entry.shape));
  CheckDisjoint(name, prefix_, boxes);
  if (boxes.empty()) boxes.push_back(TensorSlice::Whole(entry.shape.rank()).ResolvedIn(entry.shape));

  int64_t covered = 0;
  for (const TensorSlice& box : boxes) covered += SliceOverlap(box, wanted).size();
  const Shape shape = wanted.ShapeIn(entry.shape);
  if (covered != shape.num_elements()) {
    throw InvalidArgumentError(StrCat("[checkpoint] the parts of \"", name, "\" stored in ", prefix_, " cover only ",
                                      covered, " of the ", shape.num_elements(), " elements of ", wanted.ToString()));
  }
  Tensor out(entry.dtype(), shape);
  const std::vector<const BundleEntry*> parts = StoredParts(name);
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (SliceOverlap(boxes[i], wanted).size() > 0) CopyOverlap(name, *parts[i], boxes[i], wanted, &out);
  }
  NormaliseBools(&out);
  return out;
}

void BundleReader::Stream(const std::string& name, const std::function<void(std::string_view)>& consume) const {
  const BundleEntry& entry = Find(name);
  CheckReadable(name, entry);
  if (!entry.slices.empty() || entry.dtype() == DType::kString) {
    throw InvalidArgumentError(StrCat(Where(name, entry), " is partitioned or holds strings and cannot be streamed"));
  }
  CheckedChunks(name, entry, consume);
}

void BundleReader::Verify(const std::string& name) const {
  for (const BundleEntry* part : StoredParts(name)) {
    if (part->dtype_number == kVariantNumber) {
      throw UnimplementedError(StrCat(Where(name, *part), " is a variant, whose checksum we cannot compute"));
    }
    if (part->dtype() == DType::kString) {
      CheckReadable(name, *part);
      ReadStrings(name, *part);
    } else {
      CheckedChunks(name, *part, [](std::string_view) {});
    }
  }
}

void BundleReader::CheckFiles() const {
  std::map<int, int64_t> ends;  // of the shards in which something lies
  for (const auto& [name, entry] : tensors_) {
    for (const BundleEntry* part : StoredParts(name)) {
      int64_t& end = ends[part->shard];
      end = std::max(end, part->offset + part->size);
    }
  }
  for (const auto& [shard, end] : ends) {
    const RandomAccessFile& file = Shard(shard);
    if (file.Size() >= end) continue;
    throw DataLossError(StrCat("[checkpoint] the data file ", file.path(), " should have at least ", end,
                               " bytes; it has ", file.Size()));
  }
}

void VerifyCheckpoint(const std::string& prefix) {
  const BundleReader reader(prefix);
  reader.CheckFiles();
  for (const auto& [name, entry] : reader.tensors()) reader.Verify(name);
}

}  // namespace cohort
