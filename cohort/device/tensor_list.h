// Lists of tensors. A scalar tensor of dtype variant can hold one. TensorList is a list that never changes: to add or
// remove a last element, a program makes a new list, which shares all other elements with the old one. IndexedList is a
// list whose elements are set by number, as TensorFlow's TensorArrays do it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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

// A list of `size` tensors of one dtype. An element that was never set is an undefined tensor. A value type:
// cheap to copy. Each thread may use a copy of its own.
class IndexedList {
 public:
  // More elements than this would take memory without end, even if each of them has no bytes.
  static constexpr int64_t kMaxSize = int64_t{1} << 22;

  // `element_shape` is what is known of the shapes of all elements. Throws InvalidArgumentError if `size` is negative,
  // and ResourceExhaustedError if it is larger than kMaxSize.
  IndexedList(int64_t size, DType dtype, Shape element_shape);

  int64_t size() const { return size_; }
  DType dtype() const { return dtype_; }
  const Shape& element_shape() const { return element_shape_; }
  // Returns element `i`. Throws InvalidArgumentError if `i` is not in [0, size()).
  Tensor At(int64_t i) const;
  // Sets element `i`. If `grow` is true and `i` is size() or more, the list gets more elements. Throws
  // InvalidArgumentError if `i` is out of range, or if dtype or shape of `value` do not fit, and ResourceExhaustedError
  // if the list would get more than kMaxSize elements.
  void Set(int64_t i, Tensor value, bool grow);

 private:
  static void CheckSize(int64_t size);

  int64_t size_;
  DType dtype_;
  Shape element_shape_;
  // At most size_ elements; those behind them were never set. Copies share them until one is changed.
  std::shared_ptr<std::vector<Tensor>> values_;
};

// Returns a scalar tensor of dtype kVariant that holds the list.
Tensor MakeIndexedList(IndexedList list);
// Returns the list of such a tensor, or the elements of a TensorList in the order in which they were pushed. Takes the
// list out of `value` if nothing else holds it. Throws InvalidArgumentError if the tensor holds no list.
IndexedList IndexedListOf(Tensor value);

}  // namespace cohort
