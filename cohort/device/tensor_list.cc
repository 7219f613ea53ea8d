#include "cohort/device/tensor_list.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

class ListBuffer final : public Buffer {
 public:
  explicit ListBuffer(TensorList list) : Buffer(nullptr, sizeof(list), MemorySpace::Host()), list_(std::move(list)) {
    data_ = &list_;
  }

 private:
  void Destroy() override { delete this; }
  TensorList list_;
};

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

Tensor MakeTensorList(TensorList list) {
  return Tensor(DType::kVariant, Shape(), BufferPtr::Adopt(new ListBuffer(std::move(list))), 0);
}

const TensorList& TensorListOf(const Tensor& value) {
  if (value.dtype() != DType::kVariant || value.raw_data() == nullptr) {
    throw InvalidArgumentError(StrCat("[tensor list] expected a list of tensors; got ", value.dtype(), value.shape()));
  }
  return *static_cast<const TensorList*>(value.raw_data());
}

}  // namespace cohort
