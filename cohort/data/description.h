// Descriptions of datasets as bytes: what runs elsewhere is shipped so. Tensors stay outside, referred to by a hash of
// their contents, so that they travel once a task and by the way of bulk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "cohort/core/wire.h"
#include "cohort/data/dataset.h"
#include "cohort/data/stages/stage.h"

namespace cohort::data {

class DescriptionWriter {
 public:
  void Int(int64_t value);
  void String(std::string_view text) { bytes_.String(text); }
  void Spec(const ElementSpec& spec);
  // Refers to the tensor, of which it keeps a copy (sharing the bytes).
  void TensorReference(const Tensor& tensor);
  void Node(const DatasetNode& node);

  std::string TakeBytes() { return bytes_.Take(); }
  std::map<uint64_t, Tensor> TakeTensors() { return std::move(tensors_); }

 private:
  WireWriter bytes_;
  std::map<uint64_t, Tensor> tensors_;
};

class DescriptionReader {
 public:
  using TensorLookup = std::function<Tensor(uint64_t hash)>;
  DescriptionReader(std::string_view bytes, TensorLookup lookup) : in_(bytes), lookup_(std::move(lookup)) {}
  int64_t Int();
  // Throws DataLossError for a number outside of [low, high].
  int64_t Int(int64_t low, int64_t high);
  bool Bool() { return Int(0, 1) != 0; }
  std::string String() { return in_.String(); }
  ElementSpec Spec();
  Tensor TensorReference();
  NodePtr Node();
  void ExpectEnd() const { in_.ExpectEnd(); }

 private:
  static constexpr int kMaxDepth = 200;
  WireReader in_;
  TensorLookup lookup_;
  int depth_ = 0;
};

// Of dtype, shape and contents (SplitMix64's mixing over words of 8 bytes).
uint64_t HashTensor(const Tensor& tensor);

}  // namespace cohort::data
