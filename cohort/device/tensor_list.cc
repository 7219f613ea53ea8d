#include "cohort/device/tensor_list.h"

#include <atomic>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/device/variant.h"

namespace cohort {
namespace {

struct ListValue final : VariantValue {
  explicit ListValue(TensorList tensors) : list(std::move(tensors)) {}
  std::string Describe() const override { return StrCat("a list of ", list.size(), " tensors"); }
  TensorList list;
};

struct IndexedValue final : VariantValue {
  explicit IndexedValue(IndexedList tensors) : list(std::move(tensors)) {}
  std::string Describe() const override { return StrCat("a list of ", list.size(), " tensors"); }
  IndexedList list;
};

IndexedList Indexed(TensorList list) {
  const Tensor last = list.size() == 0 ? Tensor() : list.back();
  IndexedList indexed(list.size(), last.dtype(), Shape::UnknownRank());
  for (; list.size() > 0; list = list.PopBack()) indexed.Set(list.size() - 1, list.back(), false);
  return indexed;
}

}  // namespace

TensorList::Link::~Link() {
  std::shared_ptr<Link> link = std::move(before);
  while (link != nullptr && link.use_count() == 1) link = std::shared_ptr<Link>(std::move(link->before));
}

TensorList TensorList::PushBack(Tensor value) const {
  auto link = std::make_shared<Link>();
  link->value = std::move(value);
  link->size = size() + 1;
  link->before = last_;
  return TensorList(std::move(link));
}

Tensor MakeTensorList(TensorList list) { return MakeVariant(ListValue(std::move(list))); }

const TensorList& TensorListOf(const Tensor& value) {
  return VariantOf<ListValue>(value, "[tensor list] expected a list of tensors").list;
}

IndexedList::IndexedList(int64_t size, DType dtype, Shape element_shape)
    : size_(size), dtype_(dtype), element_shape_(std::move(element_shape)) {
  if (size < 0) throw InvalidArgumentError(StrCat("[tensor list] expected a number of elements; got ", size));
  CheckSize(size);
}

void IndexedList::CheckSize(int64_t size) {
  if (size <= kMaxSize) return;
  throw ResourceExhaustedError(StrCat("[tensor list] expected a list of at most ", kMaxSize, " elements; got ", size));
}

Tensor IndexedList::At(int64_t i) const {
  if (i < 0 || i >= size_) {
    throw InvalidArgumentError(
        StrCat("[tensor list] expected the number of one of ", size_, " elements, from 0 on; got ", i));
  }
  const auto place = static_cast<size_t>(i);
  return values_ != nullptr && place < values_->size() ? (*values_)[place] : Tensor();
}

void IndexedList::Set(int64_t i, Tensor value, bool grow) {
  if (i >= size_ && grow) {
    CheckSize(i + 1);
    size_ = i + 1;
  }
  if (i < 0 || i >= size_) {
    throw InvalidArgumentError(
        StrCat("[tensor list] expected the number of one of ", size_, " elements, from 0 on; got ", i));
  }
  if (value.dtype() != dtype_ || !value.shape().IsCompatibleWith(element_shape_)) {
    throw InvalidArgumentError(StrCat("[tensor list] expected an element of ", dtype_, element_shape_, "; got ",
                                      value.dtype(), value.shape()));
  }
  if (values_ == nullptr) {
    values_ = std::make_shared<std::vector<Tensor>>();
  } else if (values_.use_count() > 1) {
    values_ = std::make_shared<std::vector<Tensor>>(*values_);
  } else {
    std::atomic_thread_fence(std::memory_order_acquire);  // another thread may have given up its copy
  }
  const auto place = static_cast<size_t>(i);
  if (place >= values_->size()) values_->resize(place + 1);
  (*values_)[place] = std::move(value);
}

Tensor MakeIndexedList(IndexedList list) { return MakeVariant(IndexedValue(std::move(list))); }

IndexedList IndexedListOf(Tensor value) {
  const auto* object = value.dtype() == DType::kVariant ? static_cast<const VariantValue*>(value.raw_data()) : nullptr;
  if (dynamic_cast<const ListValue*>(object) != nullptr) return Indexed(TensorListOf(value));
  const IndexedValue& held = VariantOf<IndexedValue>(value, "[tensor list] expected a list of tensors");
  if (!value.OwnsBufferAlone()) return held.list;
  return std::move(const_cast<IndexedValue&>(held).list);  // nothing else sees the list any more
}

}  // namespace cohort
