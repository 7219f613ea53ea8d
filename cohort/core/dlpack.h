// DLPack: the form in which libraries (NumPy, PyTorch, ...) hand tensors to one another without a copy. A program that
// uses these functions includes <dlpack/dlpack.h> itself; this header does not need it. Structures are those of DLPack
// 0.x (DLManagedTensor). Only memory of the host (kDLCPU) is exchanged.
#pragma once

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

struct DLManagedTensor;

namespace cohort {

// Returns a tensor on the memory of `managed`, under the rules of Tensor::FromBlob. No byte is copied if the elements
// stand in row-major order and are aligned to their size; otherwise the tensor has a copy of its own.
// Takes `managed` over in every case: calls its deleter (if it has one) exactly once, when the last tensor on the
// memory goes, or before FromDLPack returns a copy, or before it throws. A bool has the type code 6, which DLPack has
// had since 0.8, and its bytes have to be 0 or 1. Throws InvalidArgumentError for a null pointer and for shapes that no
// tensor has, UnimplementedError for memory of another device and for types that have no DType.
COHORT_EXPORT Tensor FromDLPack(DLManagedTensor* managed);

// Returns a description of `tensor` for another library. It holds a reference of the tensor's buffer until its deleter
// is called, so kernels do not write into the memory in the meantime. The caller owns it: either the caller or the
// library that takes it over calls `managed->deleter(managed)` once, on any thread. Requires: the receiver does not
// write into the memory. A value that was fetched may be the memory of a variable; a receiver that writes gets
// ToDLPack(tensor.Clone()). Throws InvalidArgumentError for an undefined tensor, for strings and handles, and for
// memory that is not the host's.
COHORT_EXPORT DLManagedTensor* ToDLPack(const Tensor& tensor);

}  // namespace cohort
