// Writes and reads elements and specs as bytes, for positions, caches and descriptions. Counts are varints, and tensors
// are serialized TensorProtos.
#pragma once

#include "cohort/core/wire.h"
#include "cohort/data/element.h"

namespace cohort::data {

void WriteTensor(const Tensor& tensor, WireWriter* out);
void WriteElement(const Element& element, WireWriter* out);
void WriteSpec(const ElementSpec& spec, WireWriter* out);

// Each throws DataLossError or InvalidArgumentError if the bytes are not such a value.
Tensor ReadTensor(WireReader* in);
Element ReadElement(WireReader* in);
ElementSpec ReadSpec(WireReader* in);

// A signed number as a varint: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
void WriteInt(int64_t value, WireWriter* out);
int64_t ReadInt(WireReader* in);

}  // namespace cohort::data
