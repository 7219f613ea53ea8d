// Kernels of tensor lists. A list holds its tensors in whichever memory they were pushed from.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/tensor_list.h"
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

}  // namespace

void RegisterTensorListKernels(KernelRegistry& registry) {
  registry.RegisterHostFn("EmptyTensorList", Empty, KernelMemory::kEither);
  registry.RegisterHostFn("TensorListPushBack", PushBack, KernelMemory::kEither);
  registry.RegisterHostFn("TensorListPopBack", PopBack, KernelMemory::kEither);
}

}  // namespace cohort
