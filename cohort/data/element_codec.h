// Elements and specs as bytes, for positions, caches and descriptions: counts as varints, tensors as serialized
// TensorProtos.
#pragma once

#include "cohort/core/wire.h"
#include "cohort/data/element.h"

namespace cohort::data {

void WriteTensor(const Tensor& tensor, WireWriter* out);
void WriteElement(const Element& element, WireWriter* out);
void WriteSpec(const ElementSpec& spec, WireWriter* out);

// Throw DataLossError or InvalidArgumentError for bytes that are none.
Tensor ReadTensor(WireReader* in);
Element ReadElement(WireReader* in);
ElementSpec ReadSpec(WireReader* in);

// Signed numbers: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
void WriteInt(int64_t value, WireWriter* out);
int64_t ReadInt(WireReader* in);

}  // namespace cohort::data
