// Writes and reads checkpoints in TensorFlow's V2 format ("tensor bundles"). TensorFlow reads ours, and we read
// TensorFlow's. A checkpoint is named by its prefix P. Its files are P.index, a table of names, and
// P.data-SSSSS-of-NNNNN, raw bytes. A checkpoint exists if P.index exists. See docs/formats.md.
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

// Writes one checkpoint with one data file. All files have temporary names until Finish(), so a writer that fails or
// dies leaves nothing that looks like a checkpoint. The caller owns it. Not thread-safe.
// Functions that add a tensor throw InvalidArgumentError if its name is empty, begins with a zero byte or was added
// before, or if the tensor cannot be stored (undefined, a handle, or in device memory). All functions that write throw
// the errors of core/file.h, such as ResourceExhaustedError if the disk is full. If writing the bytes of a tensor has
// failed with such an error, later calls that add a tensor, and Finish, throw FailedPreconditionError.
class BundleWriter {
 public:
  // Creates the prefix's directory if it is missing.
  explicit BundleWriter(const std::string& prefix);
  ~BundleWriter();  // if Finish() was not called, removes the written files

  void Add(const std::string& name, const Tensor& tensor);
  // Adds a part of the tensor `name`, whose full shape is `full`. A part that is the whole tensor is stored as an
  // ordinary tensor. Throws InvalidArgumentError also if `slice` is not inside `full`, if `part` has another shape than
  // `slice`, or if dtype or `full` are not those of the parts that were added before.
  void AddSlice(const std::string& name, const Shape& full, const TensorSlice& slice, const Tensor& part);

  // Fills the next bytes of the tensor. It is called with at most kCheckpointChunkBytes at a time, in order, until all
  // bytes are filled.
  using Fill = std::function<void(std::span<char>)>;
  // As Add and AddSlice, for tensors that are never in memory as a whole. They call `fill` before they return. They
  // throw InvalidArgumentError also for strings, and for a shape that is not fully known. An error that `fill` throws
  // counts as an error of writing.
  void Append(const std::string& name, DType dtype, const Shape& shape, const Fill& fill);
  void AppendSlice(const std::string& name, DType dtype, const Shape& full, const TensorSlice& slice, const Fill& fill);

  // Completes the checkpoint. Syncs data and index to disk. Removes an old index of this prefix. Gives first the data
  // file and then the index its final name. Syncs the directory. Requires: it is called once, as the last call.
  void Finish();

  const std::string& prefix() const { return prefix_; }
  // Returns the present size of the data file.
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
  bool broken_ = false;      // true if a tensor is only partly written
};

// Joins the checkpoints `parts` into the checkpoint `prefix`. It is used for the parts that the tasks of a cluster have
// written to a shared disk. Renames the data files to shards of `prefix` and merges the indexes. Then removes the
// indexes of `parts`, and those of their directories that are empty now. The parts of a partitioned tensor may be in
// several of the checkpoints. Throws InvalidArgumentError if `parts` is empty, if two checkpoints contain the same
// tensor (or the same part of one), or if they differ in byte order. Throws NotFoundError if a checkpoint is missing.
void MergeBundles(const std::vector<std::string>& parts, const std::string& prefix);

// Reads a checkpoint with any number of data files. Functions that read tensors compare checksums and throw
// DataLossError if the bytes are damaged or missing. The reader opens each data file at its first use, and the
// destructor closes them. The caller owns it. Thread-safe.
class BundleReader {
 public:
  // Reads the index. Throws NotFoundError if it is missing, DataLossError if it is corrupt.
  explicit BundleReader(const std::string& prefix);
  ~BundleReader();

  const std::string& prefix() const { return prefix_; }
  int num_shards() const { return index_.num_shards; }
  // Returns the records of all tensors by name. A partitioned tensor has one record.
  const std::map<std::string, BundleEntry, std::less<>>& tensors() const { return tensors_; }
  bool Has(const std::string& name) const { return tensors_.contains(name); }
  // Throws NotFoundError "Key NAME not found in checkpoint PREFIX" if there is no such tensor.
  const BundleEntry& Find(const std::string& name) const;

  // Reads a whole tensor, and joins its parts if it is partitioned. Throws NotFoundError as Find does. Throws
  // DataLossError if the bytes are damaged or missing. Throws UnimplementedError if Cohort does not have the dtype, if
  // the tensor has handles, or if it has strings that a big-endian machine has written. Throws InvalidArgumentError if
  // the stored parts do not cover the tensor.
  Tensor Read(const std::string& name) const;
  // Reads a box of a tensor, which may be stored in one or many parts. If the box touches a stored part, the whole part
  // is read and checked. Throws the errors of Read. Throws InvalidArgumentError if the box is not inside the tensor, or
  // if the stored parts do not cover the box.
  Tensor ReadSlice(const std::string& name, const TensorSlice& slice) const;
  // Passes the bytes of a tensor to `consume`, little-endian, in pieces of at most kCheckpointChunkBytes. Throws
  // NotFoundError, DataLossError and UnimplementedError as Read does, and InvalidArgumentError if the tensor is
  // partitioned or has strings. The checksum is compared after the last piece. So if DataLossError is thrown, the
  // caller must discard the bytes that `consume` got.
  void Stream(const std::string& name, const std::function<void(std::string_view)>& consume) const;

  // Reads every byte of a tensor and compares the checksums. Throws NotFoundError and DataLossError as Read does.
  // Throws UnimplementedError for variants, whose checksum cannot be computed, and for strings that a big-endian
  // machine has written. Accepts all other dtypes, also those that Cohort does not have.
  void Verify(const std::string& name) const;
  // Checks that every data file in which a tensor lies is there, and is at least as long as the index says. Throws
  // DataLossError that names the file.
  void CheckFiles() const;

  // Returns the record of the tensor, or the records of its parts if it is partitioned. Throws NotFoundError as Find
  // does, and DataLossError if the index lacks the record of a part.
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
  BundleIndex index_;  // after the constructor it has only the records of parts
  std::map<std::string, BundleEntry, std::less<>> tensors_;
  mutable Mutex mu_;
  mutable std::map<int, std::unique_ptr<RandomAccessFile>> shards_ COHORT_GUARDED_BY(mu_);
};

// Reads and checks every tensor of a checkpoint. Throws the first error that it finds.
void VerifyCheckpoint(const std::string& prefix);

}  // namespace cohort
