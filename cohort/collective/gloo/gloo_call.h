// RunByGloo: one member's part in one collective, by Gloo. Internal to gloo/.
#pragma once

#include "cohort/collective/call.h"
#include "cohort/collective/gloo/mesh.h"

namespace cohort::collective {

// Runs the collective on `mesh` and returns the member's result. `world` is the number of members. For `tag` see
// GlooMesh. Waits until the bytes have moved. Throws the errors of GlooMesh. bfloat16 is reduced as float32, which
// needs twice the bytes. A reduce-scatter is an all-reduce of which the member keeps its rows. A barrier moves no
// bytes: when it gets its turn, all members have begun it. A collective of empty tensors moves no bytes either. May
// move the input out of `call`.
Tensor RunByGloo(GlooMesh& mesh, CollectiveCall& call, int world, uint32_t tag);

}  // namespace cohort::collective
