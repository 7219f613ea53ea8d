#include "cohort/cluster/transport.h"

#include "cohort/core/str_cat.h"

namespace cohort {

void CheckCanTravel(const Message& message) {
  for (const Tensor& tensor : message.tensors) {
    if (tensor.defined() && tensor.dtype() != DType::kResource && tensor.space() == MemorySpace::kHost) continue;
    throw InvalidArgumentError(
        StrCat("[transport] expected tensors in host memory to send; got ",
               !tensor.defined() ? "an undefined one" : StrCat(tensor.dtype(), tensor.shape(), " elsewhere"),
               " in a message of kind ", message.kind));
  }
}

}  // namespace cohort
