// Kernels of tensor lists. A list holds its tensors in whichever memory they were pushed from.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/tensor_list.h"
#include "cohort/graph/constant_value.h"
#include "cohort/runtime/kernels/runtime_kernels.h"
#include "cohort/runtime/placement/memory_placement.h"

namespace cohort {
namespace {

void Empty(KernelContext& ctx) { ctx.SetOutput(0, MakeTensorList(TensorList())); }

void PushBack(KernelContext& ctx) {
  ctx.SetOutput(0, MakeTensorList(TensorListOf(ctx.input(0)).PushBack(ctx.input(1))));
}

void PopBack(KernelContext& ctx) {
  const TensorList& list = TensorListOf(ctx.input(0));
  if (list.size() == 0) throw InvalidArgumentError("[tensor list] expected a tensor to take; the list is empty");
  if (list.back().dtype() != ctx.node().output_dtype(1)) {
    throw InvalidArgumentError(StrCat("[tensor list] expected a tensor of ", ctx.node().output_dtype(1),
                                      " at the end of the list; got ", list.back().dtype(), list.back().shape()));
  }
  ctx.SetOutput(1, PlacedAs(ctx, 1, list.back()));
  ctx.SetOutput(0, MakeTensorList(list.PopBack()));
}

DType ElementDType(const KernelContext& ctx) { return ctx.node().attr<DType>("element_dtype"); }

// The shape that input `i` describes. A scalar says nothing.
Shape ShapeOfElements(const KernelContext& ctx, int i) {
  const Tensor& value = ctx.input(i);
  return value.shape().rank() == 1 ? TensorAsShape(value) : Shape::UnknownRank();
}

int64_t Number(const KernelContext& ctx, int i) { return ctx.input(i).scalar<int32_t>(); }

void Reserve(KernelContext& ctx) {
  ctx.SetOutput(0, MakeIndexedList(IndexedList(Number(ctx, 1), ElementDType(ctx), ShapeOfElements(ctx, 0))));
}

void FromTensor(KernelContext& ctx) {
  const Tensor& rows = ctx.input(0);
  if (rows.shape().rank() == 0) throw InvalidArgumentError("[tensor list] expected a tensor with rows; got a scalar");
  const Shape row = rows.shape().Sub(1, rows.shape().rank());
  IndexedList list(rows.shape().dim(0), rows.dtype(), ShapeOfElements(ctx, 1));
  for (int64_t i = 0; i < list.size(); ++i) list.Set(i, rows.Slice(i, i + 1).Reshaped(row), false);
  ctx.SetOutput(0, MakeIndexedList(std::move(list)));
}

// The shape of elements that were never set: what the list, the node and the elements that are there know of it.
Shape KnownShape(const KernelContext& ctx, const IndexedList& list, int shape_input) {
  Shape known = list.element_shape().MergedWith(ShapeOfElements(ctx, shape_input));
  for (int64_t i = 0; i < list.size() && !known.IsFullyDefined(); ++i) {
    if (const Tensor element = list.At(i); element.defined()) known = known.MergedWith(element.shape());
  }
  if (known.IsFullyDefined()) return known;
  throw InvalidArgumentError(StrCat("[tensor list] ",
                                    list.size() == 0 ? "the list is empty, and of the shape of its elements"
                                                     : "an element of the list was never set, and of its shape",
                                    " only ", known, " is known"));
}

void CheckElement(const KernelContext& ctx, const Tensor& element, const Shape& shape) {
  if (element.dtype() == ElementDType(ctx) && element.shape().IsCompatibleWith(shape)) return;
  throw InvalidArgumentError(StrCat("[tensor list] expected an element of ", ElementDType(ctx), shape,
                                    " in the list; got ", element.dtype(), element.shape()));
}

void GetItem(KernelContext& ctx) {
  const IndexedList list = IndexedListOf(ctx.input(0));
  Tensor element = list.At(Number(ctx, 1));
  if (!element.defined()) element = Tensor::Zeros(ElementDType(ctx), KnownShape(ctx, list, 2));
  CheckElement(ctx, element, ShapeOfElements(ctx, 2));
  ctx.SetOutput(0, PlacedAs(ctx, 0, std::move(element)));
}

void SetItem(KernelContext& ctx) {
  const int64_t index = Number(ctx, 1);
  IndexedList list = IndexedListOf(ctx.TakeInput(0, 1));
  list.Set(index, ctx.input(2), ctx.node().attr<bool>("resize_if_index_out_of_bounds"));
  ctx.SetOutput(0, MakeIndexedList(std::move(list)));
}

void Length(KernelContext& ctx) {
  const int64_t size = IndexedListOf(ctx.input(0)).size();
  ctx.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(size)));
}

// On a device, the rows are put together in host memory.
void Stack(KernelContext& ctx) {
  const IndexedList list = IndexedListOf(ctx.input(0));
  const int64_t wanted = ctx.node().attr<int64_t>("num_elements");
  if (wanted >= 0 && wanted != list.size()) {
    throw InvalidArgumentError(
        StrCat("[tensor list] expected a list of ", wanted, " elements; got one of ", list.size()));
  }
  const Shape row = KnownShape(ctx, list, 1);
  std::vector<int64_t> dims = {list.size()};
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  Tensor rows = Tensor::Zeros(ElementDType(ctx), Shape(dims));
  for (int64_t i = 0; i < list.size(); ++i) {
    Tensor element = list.At(i);
    if (!element.defined()) continue;
    CheckElement(ctx, element, row);
    if (!element.space().is_host()) element = ctx.device().CopyToHost(element);
    Tensor place = rows.Slice(i, i + 1);
    if (element.dtype() == DType::kString) {
      std::copy_n(element.data<std::string>(), element.num_elements(), place.data<std::string>());
    } else if (element.bytes() > 0) {
      std::memcpy(place.raw_data(), element.raw_data(), element.bytes());
    }
  }
  ctx.SetOutput(0, PlacedAs(ctx, 0, std::move(rows)));
}

}  // namespace

void RegisterTensorListKernels(KernelRegistry& registry) {
  registry.RegisterHostFn("EmptyTensorList", Empty, KernelMemory::kEither);
  registry.RegisterHostFn("TensorListPushBack", PushBack, KernelMemory::kEither);
  registry.RegisterHostFn("TensorListPopBack", PopBack, KernelMemory::kEither);
  registry.RegisterHostFn("TensorListReserve", Reserve, KernelMemory::kEither);
  registry.RegisterHostFn("TensorListFromTensor", FromTensor, KernelMemory::kEither);
  registry.RegisterHostFn("TensorListGetItem", GetItem, KernelMemory::kEither);
  registry.RegisterHostFn("TensorListSetItem", SetItem, KernelMemory::kEither);
  registry.RegisterHostFn("TensorListLength", Length, KernelMemory::kEither);
  registry.RegisterHostFn("TensorListStack", Stack, KernelMemory::kEither);
}

}  // namespace cohort
