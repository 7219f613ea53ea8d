// V2 checkpoints ("tensor bundles"), readable by TensorFlow and the reverse. A checkpoint is named by its
// prefix P: P.index (a table of names) and P.data-SSSSS-of-NNNNN (raw bytes). It exists when P.index does.
// See docs/formats.md.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/checkpoint/bundle_format.h"
#include "cohort/checkpoint/tensor_slice.h"
#include "cohort/core/file.h"
#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"

namespace cohort {

// Writes one checkpoint of one shard. Everything stands under temporary names until Finish(), so that a
// writer that dies or fails leaves nothing that looks like a checkpoint. Not thread-safe.
//
// Adding throws InvalidArgumentError for a name that is empty, begins with a zero byte or was added before,
// and for a tensor that cannot be stored (no tensor, resource, device memory); ResourceExhaustedError when
// the disk is full.
class BundleWriter {
 public:
  // Creates the prefix's directory where it is missing.
  explicit BundleWriter(const std::string& prefix);
  ~BundleWriter();  // without Finish(): removes what was written

  void Add(const std::string& name, const Tensor& tensor);
  // A part of the tensor `name` of shape `full`. All parts agree in dtype and `full`; a part that is the
  // whole is stored as an ordinary tensor.
  void AddSlice(const std::string& name, const Shape& full, const TensorSlice& slice, const Tensor& part);

  // Fills the next bytes of the tensor, in order; called until all are filled, with at most
  // kCheckpointChunkBytes.
  using Fill = std::function<void(std::span<char>)>;
  // For tensors that are never in memory as a whole. Not for strings. Where `fill` (or the disk) throws, the
  // writer can only be destroyed; its other calls throw FailedPreconditionError.
  void Append(const std::string& name, DType dtype, const Shape& shape, const Fill& fill);
  void AppendSlice(const std::string& name, DType dtype, const Shape& full, const TensorSlice& slice, const Fill& fill);

  // Data and index are synced, then renamed (an index of this prefix that was there goes first, the new one
  // comes last), then the directory is synced.
  void Finish();

  const std::string& prefix() const { return prefix_; }
  int64_t bytes_written() const;

 private:
  struct Sink;
  BundleEntry& NewEntry(const std::string& name, DType dtype, const Shape& shape);
  BundleEntry& NewSliceEntry(const std::string& name, DType dtype, const Shape& full, const TensorSlice& slice);
  BundleEntry& Insert(const std::string& key, const std::string& name, DType dtype, const Shape& shape);
  void CheckNotBroken() const;
  void WriteTensor(const Tensor& tensor, BundleEntry* entry);
  void WriteFilled(const Fill& fill, BundleEntry* entry);

  const std::string prefix_;
  std::unique_ptr<AtomicFile> data_;
  BundleIndex index_;
  std::vector<char> chunk_;  // for WriteFilled
  bool broken_ = false;      // a tensor was written in part
};

// Makes one checkpoint of several, as the tasks of a cluster wrote them on a shared disk: data files are
// renamed to shards of `prefix`, the indexes merged, the parts removed (and their directory where it is empty
// then). Parts of one partitioned tensor may stand in several. Throws InvalidArgumentError for a tensor that
// two of them hold, NotFoundError for a missing one.
void MergeBundles(const std::vector<std::string>& parts, const std::string& prefix);

// Reads a checkpoint of any number of shards. Thread-safe. Everything that is read is checked: DataLossError
// names file, tensor and offset.
class BundleReader {
 public:
  // Reads the index. Throws NotFoundError where there is none, DataLossError for a corrupt one.
  explicit BundleReader(const std::string& prefix);
  ~BundleReader();

  const std::string& prefix() const { return prefix_; }
  int num_shards() const { return index_.num_shards; }
  // Every tensor by name, partitioned ones once.
  const std::map<std::string, BundleEntry, std::less<>>& tensors() const { return tensors_; }
  bool Has(const std::string& name) const { return tensors_.contains(name); }
  // Throws NotFoundError "Key NAME not found in checkpoint PREFIX".
  const BundleEntry& Find(const std::string& name) const;

  // The whole tensor, put together where it is partitioned. Throws NotFoundError, DataLossError,
  // UnimplementedError for a dtype that we lack, InvalidArgumentError where stored parts do not cover it.
  Tensor Read(const std::string& name) const;
  // A box of it, whichever way it is stored; reads and checks the whole of every stored part that it touches.
  Tensor ReadSlice(const std::string& name, const TensorSlice& slice) const;
  // The stored bytes of a tensor that is neither partitioned nor a string, little-endian, in pieces of at
  // most kCheckpointChunkBytes. The checksum is known only after the last piece: a DataLossError then takes
  // all back.
  void Stream(const std::string& name, const std::function<void(std::string_view)>& consume) const;

  // Reads every byte of a tensor and throws what Read would, except for its dtype.
  void Verify(const std::string& name) const;
  // Whether every data file is there and as long as the index says; throws DataLossError that names the file.
  void CheckFiles() const;

  // A tensor's own entry, or those of its parts.
  std::vector<const BundleEntry*> StoredParts(const std::string& name) const;

 private:
  const RandomAccessFile& Shard(int shard) const COHORT_EXCLUDES(mu_);
  const BundleEntry& SliceEntry(const std::string& name, const BundleEntry& full, const TensorSlice& slice) const;
  std::string Where(const std::string& name, const BundleEntry& entry) const;
  void ReadChunks(const std::string& name, const BundleEntry& entry, std::span<char> buffer,
                  const std::function<void(std::string_view)>& consume) const;
  void CheckedChunks(const std::string& name, const BundleEntry& entry,
                     const std::function<void(std::string_view)>& consume) const;
  Tensor ReadStrings(const std::string& name, const BundleEntry& entry) const;
  Tensor ReadEntry(const std::string& name, const BundleEntry& entry) const;
  void CopyOverlap(const std::string& name, const BundleEntry& entry, const TensorSlice& stored,
                   const TensorSlice& wanted, Tensor* out) const;
  void CheckReadable(const std::string& name, const BundleEntry& entry) const;

  const std::string prefix_;
  BundleIndex index_;  // parts of partitioned tensors only, once the constructor is done
  std::map<std::string, BundleEntry, std::less<>> tensors_;
  mutable Mutex mu_;
  mutable std::map<int, std::unique_ptr<RandomAccessFile>> shards_ COHORT_GUARDED_BY(mu_);
};

// Reads every tensor of a checkpoint; throws the first DataLossError.
void VerifyCheckpoint(const std::string& prefix);

}  // namespace cohort
