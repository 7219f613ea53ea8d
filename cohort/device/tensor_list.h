// TensorList: a list of tensors that never changes, in a scalar tensor of dtype variant. It grows and shrinks at its
// end by making another list, which shares what the two have in common.
#pragma once

#include <cstdint>
#include <memory>

#include "cohort/core/tensor.h"

namespace cohort {

// Immutable, thread-safe, cheap to copy.
class TensorList {
 public:
  TensorList() = default;  // empty

  int64_t size() const { return last_ == nullptr ? 0 : last_->size; }
  const Tensor& back() const { return last_->value; }  // size() > 0
  TensorList PushBack(Tensor value) const;
  TensorList PopBack() const { return TensorList(last_->before); }  // size() > 0

 private:
  struct Link {
    ~Link();  // of a long list, without recursion
    Tensor value;
    int64_t size = 0;
    std::shared_ptr<Link> before;
  };
  explicit TensorList(std::shared_ptr<Link> last) : last_(std::move(last)) {}

  std::shared_ptr<Link> last_;
};

Tensor MakeTensorList(TensorList list);
// Throws InvalidArgumentError where the tensor holds none.
const TensorList& TensorListOf(const Tensor& value);

}  // namespace cohort
