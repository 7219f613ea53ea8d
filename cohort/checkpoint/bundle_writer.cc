// BundleWriter and MergeBundles. A writer appends tensors to a data file with a temporary name and collects their index
// entries. Finish publishes: it removes an old index, renames the data file, and renames the index last. MergeBundles
// joins the indexes of several checkpoints, renumbers their data files and publishes in the same order.
#include <algorithm>
#include <filesystem>
#include <set>

#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

void CheckStorable(const std::string& name, const Tensor& tensor) {
  if (tensor.defined() && !IsHandle(tensor.dtype()) && tensor.space().is_host()) return;
  throw InvalidArgumentError(StrCat("[checkpoint] only host tensors of plain elements can be stored; got ",
                                    tensor.ToString(0), " for \"", name, "\""));
}

// Publishes data and index. Removes an old index first, because it would describe data that are about to change.
void PublishIndex(AtomicFile* index, const std::string& prefix, const std::function<void()>& publish_data) {
  const std::string directory = DirectoryOf(prefix);
  if (RemoveFile(IndexFileName(prefix))) SyncDirectory(directory);
  publish_data();
  index->Publish();
  SyncDirectory(directory);
}

}  // namespace

struct BundleWriter::Sink final : ByteSink {
  explicit Sink(AtomicFile* f) : file(f) {}
  void Append(std::string_view bytes) override { file->Append(bytes); }
  AtomicFile* file;
};

BundleWriter::BundleWriter(const std::string& prefix) : prefix_(prefix) {
  CreateDirectories(DirectoryOf(prefix));
  data_ = std::make_unique<AtomicFile>(DataFileName(prefix, 0, 1));
}

BundleWriter::~BundleWriter() = default;

int64_t BundleWriter::bytes_written() const { return data_->size(); }

void BundleWriter::CheckNotBroken() const {
  if (!broken_) return;
  throw FailedPreconditionError(StrCat("[checkpoint] writing ", prefix_, " failed before; it cannot go on"));
}

BundleEntry& BundleWriter::Insert(const std::string& key, const std::string& name, DType dtype, const Shape& shape) {
  CheckNotBroken();
  if (name.empty() || IsSliceKey(name)) {
    throw InvalidArgumentError(
        StrCat("[checkpoint] a tensor's name must not be empty or begin with a zero byte; got \"", name, "\" for ",
               dtype, shape));
  }
  const auto [it, inserted] = index_.entries.try_emplace(key);
  if (!inserted) {
    throw InvalidArgumentError(
        StrCat("[checkpoint] \"", name, "\" was added twice to ", prefix_, ", now as ", dtype, shape));
  }
  BundleEntry& entry = it->second;
  entry.dtype_number = static_cast<int32_t>(dtype);
  entry.shape = shape;
  entry.offset = data_->size();
  return entry;
}

BundleEntry& BundleWriter::NewEntry(const std::string& name, DType dtype, const Shape& shape) {
  return Insert(name, name, dtype, shape);
}

BundleEntry& BundleWriter::NewSliceEntry(const std::string& name, DType dtype, const Shape& full,
                                         const TensorSlice& slice) {
  const Shape part = slice.ShapeIn(full);
  if (part == full) return NewEntry(name, dtype, full);
  auto whole = index_.entries.find(name);
  if (whole == index_.entries.end()) {
    Insert(name, name, dtype, full);
    whole = index_.entries.find(name);
  } else if (whole->second.slices.empty() || whole->second.dtype() != dtype || !(whole->second.shape == full)) {
    throw InvalidArgumentError(StrCat("[checkpoint] the parts of \"", name, "\" must agree; got ", dtype, full,
                                      " after ", whole->second.dtype_name(), whole->second.shape,
                                      whole->second.slices.empty() ? " that is not in parts" : ""));
  }
  BundleEntry& entry = Insert(SliceKey(name, slice), name, dtype, part);
  whole->second.slices.push_back(slice);
  return entry;
}

void BundleWriter::WriteTensor(const Tensor& tensor, BundleEntry* entry) {
  broken_ = true;
  if (tensor.dtype() == DType::kString) {
    Sink sink(data_.get());
    entry->crc32c = EncodeStrings(tensor, &sink);
  } else {
    std::string_view left(static_cast<const char*>(tensor.raw_data()), tensor.bytes());
    while (!left.empty()) {
      const std::string_view piece = left.substr(0, kCheckpointChunkBytes);
      entry->crc32c = crc32c::Extend(entry->crc32c, piece);
      data_->Append(piece);
      left.remove_prefix(piece.size());
    }
  }
  entry->size = data_->size() - entry->offset;
  broken_ = false;
}

void BundleWriter::WriteFilled(const Fill& fill, BundleEntry* entry) {
  broken_ = true;
  chunk_.resize(kCheckpointChunkBytes);
  size_t left = static_cast<size_t>(entry->shape.num_elements()) * DTypeSize(entry->dtype());
  while (left > 0) {
    const std::span<char> piece(chunk_.data(), std::min(left, chunk_.size()));
    fill(piece);
    const std::string_view bytes(piece.data(), piece.size());
    entry->crc32c = crc32c::Extend(entry->crc32c, bytes);
    data_->Append(bytes);
    left -= piece.size();
  }
  entry->size = data_->size() - entry->offset;
  broken_ = false;
}

void BundleWriter::Add(const std::string& name, const Tensor& tensor) {
  CheckStorable(name, tensor);
  WriteTensor(tensor, &NewEntry(name, tensor.dtype(), tensor.shape()));
}

void BundleWriter::AddSlice(const std::string& name, const Shape& full, const TensorSlice& slice, const Tensor& part) {
  CheckStorable(name, part);
  if (!(slice.ShapeIn(full) == part.shape())) {
    throw InvalidArgumentError(StrCat("[checkpoint] the part ", slice.ToString(), " of \"", name, "\" of shape ", full,
                                      " has shape ", slice.ShapeIn(full), "; got ", part.shape()));
  }
  WriteTensor(part, &NewSliceEntry(name, part.dtype(), full, slice));
}

void BundleWriter::Append(const std::string& name, DType dtype, const Shape& shape, const Fill& fill) {
  AppendSlice(name, dtype, shape, TensorSlice::Whole(shape.rank()), fill);
}

void BundleWriter::AppendSlice(const std::string& name, DType dtype, const Shape& full, const TensorSlice& slice,
                               const Fill& fill) {
  if (DTypeSize(dtype) == 0 || !full.IsFullyDefined()) {
    throw InvalidArgumentError(
        StrCat("[checkpoint] only tensors of a known shape and fixed-size elements can be "
               "streamed; got ",
               dtype, full, " for \"", name, "\""));
  }
  WriteFilled(fill, &NewSliceEntry(name, dtype, full, slice));
}

void BundleWriter::Finish() {
  CheckNotBroken();
  AtomicFile index(IndexFileName(prefix_));
  data_->Finish();
  index.Append(EncodeIndex(index_));
  index.Finish();
  PublishIndex(&index, prefix_, [this] { data_->Publish(); });
}

namespace {

struct Part {
  std::string prefix;
  BundleIndex index;
  int first_shard;  // in the merged checkpoint
};

// Moves the entries of `part` to `merged`. Throws InvalidArgumentError for an entry that `merged` already has.
void MergeEntries(Part* part, BundleIndex* merged) {
  for (auto& [key, entry] : part->index.entries) {
    if (entry.slices.empty()) entry.shard += part->first_shard;
    const auto [it, inserted] = merged->entries.try_emplace(key, entry);
    if (inserted) continue;
    BundleEntry& present = it->second;
    if (entry.slices.empty() || present.slices.empty() || present.dtype_number != entry.dtype_number ||
        !(present.shape == entry.shape)) {
      throw InvalidArgumentError(StrCat("[checkpoint] two checkpoints that are merged hold \"", PrintableKey(key),
                                        "\": ", entry.dtype_name(), entry.shape, " in ", part->prefix, " and ",
                                        present.dtype_name(), present.shape, " in one before it"));
    }
    present.slices.insert(present.slices.end(), entry.slices.begin(), entry.slices.end());
  }
}

void RemoveParts(const std::vector<Part>& parts) {
  std::set<std::string> directories;
  for (const Part& part : parts) {
    RemoveFile(IndexFileName(part.prefix));
    directories.insert(DirectoryOf(part.prefix));
  }
  std::error_code ignored;  // not empty: other files live there
  for (const std::string& directory : directories) std::filesystem::remove(directory, ignored);
}

}  // namespace

void MergeBundles(const std::vector<std::string>& parts, const std::string& prefix) {
  if (parts.empty()) throw InvalidArgumentError(StrCat("[checkpoint] nothing to merge into ", prefix));
  std::vector<Part> sources;
  BundleIndex merged;
  merged.num_shards = 0;
  for (const std::string& part : parts) {
    const std::string file = IndexFileName(part);
    sources.push_back({part, DecodeIndex(ReadFile(file), file), merged.num_shards});
    merged.num_shards += sources.back().index.num_shards;
    if (sources.back().index.swap_bytes != sources.front().index.swap_bytes) {
      throw InvalidArgumentError(StrCat("[checkpoint] ", part, " and ", parts.front(), " differ in their byte order"));
    }
    MergeEntries(&sources.back(), &merged);
  }
  merged.swap_bytes = sources.front().index.swap_bytes;

  CreateDirectories(DirectoryOf(prefix));
  AtomicFile index(IndexFileName(prefix));
  index.Append(EncodeIndex(merged));
  index.Finish();
  PublishIndex(&index, prefix, [&] {
    for (const Part& part : sources) {
      for (int shard = 0; shard < part.index.num_shards; ++shard) {
        const std::string from = DataFileName(part.prefix, shard, part.index.num_shards);
        // A task without variables may have written no data file.
        if (!FileExists(from) && part.index.entries.empty()) continue;
        RenameFile(from, DataFileName(prefix, part.first_shard + shard, merged.num_shards));
      }
    }
  });
  RemoveParts(sources);
}

}  // namespace cohort
