// Writes and reads descriptions of datasets as bytes, so that a dataset can run in another process. The bytes do not
// contain tensors, but only a hash of each tensor. So a tensor is sent once to each task, as bulk.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "cohort/core/wire.h"
#include "cohort/data/dataset.h"
#include "cohort/data/stages/stage.h"

namespace cohort::data {

// Writes one description. Each stage writes its parameters with it. Not thread-safe.
class DescriptionWriter {
 public:
  // TensorReference throws InvalidArgumentError if the tensors have more than `max_tensor_bytes` together.
  explicit DescriptionWriter(int64_t max_tensor_bytes = std::numeric_limits<int64_t>::max())
      : max_tensor_bytes_(max_tensor_bytes) {}
  void Int(int64_t value);
  void String(std::string_view text) { bytes_.String(text); }
  void Spec(const ElementSpec& spec);
  // Writes the tensor's hash. Keeps a copy of `tensor`, which TakeTensors returns. The copy shares the bytes.
  void TensorReference(const Tensor& tensor);
  // Writes a stage and all its inputs, which are stages too.
  void Node(const DatasetNode& node);

  // TakeBytes returns the description. TakeTensors returns the tensors to which it refers; the key is the hash. Call
  // TakeBytes once and TakeTensors once, after everything has been written.
  std::string TakeBytes() { return bytes_.Take(); }
  std::map<uint64_t, Tensor> TakeTensors() { return std::move(tensors_); }

 private:
  void CheckBytes(int64_t bytes, const Tensor& tensor) const;

  const int64_t max_tensor_bytes_;
  int64_t tensor_bytes_ = 0;
  WireWriter bytes_;
  std::map<uint64_t, Tensor> tensors_;
};

// Reads what a DescriptionWriter has written. Each function throws DataLossError or InvalidArgumentError if the bytes
// are not a description. `lookup` gets a hash and must return the tensor with this hash. TensorReference and Node also
// throw the errors of `lookup`, and DataLossError if it returns another tensor. Requires: `bytes` outlive the reader.
// Not thread-safe.
class DescriptionReader {
 public:
  using TensorLookup = std::function<Tensor(uint64_t hash)>;
  // `check` is the FileCheck of data/serialize.h.
  using FileCheck = std::function<void(const std::string& path)>;
  DescriptionReader(std::string_view bytes, TensorLookup lookup, FileCheck check)
      : in_(bytes), lookup_(std::move(lookup)), check_(std::move(check)) {}
  int64_t Int();
  // Throws DataLossError for a number below `low` or above `high`.
  int64_t Int(int64_t low, int64_t high);
  bool Bool() { return Int(0, 1) != 0; }
  std::string String() { return in_.String(); }
  ElementSpec Spec();
  Tensor TensorReference();
  NodePtr Node();
  const FileCheck& check() const { return check_; }
  void ExpectEnd() const { in_.ExpectEnd(); }

 private:
  static constexpr int kMaxDepth = 200;
  WireReader in_;
  TensorLookup lookup_;
  FileCheck check_;
  int depth_ = 0;
};

// Returns a hash of dtype, shape and contents. It mixes words of 8 bytes as SplitMix64 does.
uint64_t HashTensor(const Tensor& tensor);

}  // namespace cohort::data
