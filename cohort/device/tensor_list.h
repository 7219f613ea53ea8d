// TensorList: a list of tensors that never changes. A scalar tensor of dtype variant can hold it. To add or remove a
// last element, a program makes a new list, which shares all other elements with the old one.
#pragma once

#include <cstdint>
#include <memory>

#include "cohort/core/tensor.h"

namespace cohort {

// A list of tensors. A value type: cheap to copy, never changes. Thread-safe.
class TensorList {
 public:
  TensorList() = default;  // empty

  int64_t size() const { return last_ == nullptr ? 0 : last_->size; }
  const Tensor& back() const { return last_->value; }  // requires: size() > 0
  TensorList PushBack(Tensor value) const;
  TensorList PopBack() const { return TensorList(last_->before); }  // requires: size() > 0

 private:
  struct Link {
    ~Link();  // destroys a long list without recursion
    Tensor value;
    int64_t size = 0;
    std::shared_ptr<Link> before;
  };
  explicit TensorList(std::shared_ptr<Link> last) : last_(std::move(last)) {}

  std::shared_ptr<Link> last_;
};

// Returns a scalar tensor of dtype kVariant that holds the list.
Tensor MakeTensorList(TensorList list);
// Returns the list of such a tensor. Throws InvalidArgumentError if the tensor holds no list.
const TensorList& TensorListOf(const Tensor& value);

}  // namespace cohort
