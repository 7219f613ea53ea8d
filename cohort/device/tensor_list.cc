#include "cohort/device/tensor_list.h"

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

}  // namespace cohort
