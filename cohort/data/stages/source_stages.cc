// Stages without input: slices of tensors, whole tensors, ranges of numbers.
#include <algorithm>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {
namespace {

void CheckTensors(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) throw InvalidArgumentError("[data] expected one tensor at least; got none");
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined())
      throw InvalidArgumentError(StrCat("[data] expected tensors; number ", i, " is undefined"));
  }
}

class TensorsNode : public DatasetNode {
 public:
  TensorsNode(std::vector<Tensor> tensors, ElementSpec spec)
      : DatasetNode({}, std::move(spec)), tensors_(std::move(tensors)) {}
  std::string Parameters() const override {
    const std::string spec = data::ToString(SpecOf(tensors_));
    return spec.substr(1, spec.size() - 2);
  }
  int64_t Cardinality() const override { return RandomAccessSize(); }
  void Write(DescriptionWriter* out) const override {
    out->Int(static_cast<int64_t>(tensors_.size()));
    for (const Tensor& tensor : tensors_) out->TensorReference(tensor);
  }
  NodePtr WithInputs(std::vector<NodePtr>) const override { return shared_from_this(); }

 protected:
  const std::vector<Tensor> tensors_;
};

class WholeNode : public TensorsNode {
 public:
  explicit WholeNode(std::vector<Tensor> tensors) : TensorsNode(tensors, SpecOf(tensors)) {}
  std::string kind() const override { return "FromTensors"; }
  int64_t RandomAccessSize() const override { return 1; }
  void Get(int64_t, Element* out) const override { *out = tensors_; }
};

class SlicesNode : public TensorsNode {
 public:
  explicit SlicesNode(std::vector<Tensor> tensors) : TensorsNode(tensors, SpecOfSlices(tensors)) {}
  std::string kind() const override { return "FromTensorSlices"; }
  int64_t RandomAccessSize() const override { return tensors_.front().shape().dim(0); }
  void Get(int64_t index, Element* out) const override {
    out->resize(tensors_.size());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      (*out)[i] = tensors_[i].Slice(index, index + 1).Reshaped(spec()[i].shape);
    }
  }

 private:
  static ElementSpec SpecOfSlices(const std::vector<Tensor>& tensors) {
    ElementSpec spec;
    for (const Tensor& tensor : tensors) {
      spec.push_back({tensor.dtype(), tensor.shape().Sub(1, tensor.shape().rank())});
    }
    return spec;
  }
};

class RangeNode : public DatasetNode {
 public:
  RangeNode(int64_t start, int64_t stop, int64_t step, int64_t size)
      : DatasetNode({}, {{DType::kInt64, Shape()}}), start_(start), stop_(stop), step_(step), size_(size) {}
  std::string kind() const override { return "Range"; }
  std::string Parameters() const override { return StrCat(start_, ", ", stop_, ", ", step_); }
  int64_t Cardinality() const override { return size_; }
  int64_t RandomAccessSize() const override { return size_; }
  void Get(int64_t index, Element* out) const override { out->assign(1, Tensor::Scalar(start_ + index * step_)); }
  void Write(DescriptionWriter* out) const override {
    for (const int64_t value : {start_, stop_, step_}) out->Int(value);
  }
  NodePtr WithInputs(std::vector<NodePtr>) const override { return shared_from_this(); }

 private:
  const int64_t start_, stop_, step_, size_;
};

}  // namespace

NodePtr MakeTensors(std::vector<Tensor> tensors) {
  CheckTensors(tensors);
  return std::make_shared<WholeNode>(std::move(tensors));
}

NodePtr MakeSlices(std::vector<Tensor> tensors) {
  CheckTensors(tensors);
  for (const Tensor& tensor : tensors) {
    if (tensor.shape().rank() >= 1 && tensor.shape().dim(0) == tensors.front().shape().dim(0)) continue;
    throw InvalidArgumentError(StrCat(
        "[data] expected tensors with the same first dimension for FromTensorSlices; got ", ToString(SpecOf(tensors))));
  }
  return std::make_shared<SlicesNode>(std::move(tensors));
}

NodePtr MakeRange(int64_t start, int64_t stop, int64_t step) {
  CheckParameter(step != 0, "a step of a Range that is not 0", step);
  int64_t span, size = 0;
  // Divided by a step of -1, the smallest number is none that 64 bits have.
  if (__builtin_sub_overflow(stop, start, &span) || span == std::numeric_limits<int64_t>::min()) {
    throw InvalidArgumentError(StrCat("[data] expected a Range within 63 bits; got ", start, " to ", stop));
  }
  if ((span > 0) == (step > 0) && span != 0) size = span / step + (span % step != 0 ? 1 : 0);
  return std::make_shared<RangeNode>(start, stop, step, size);
}

}  // namespace cohort::data
