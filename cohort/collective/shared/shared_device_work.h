// The work of one collective whose inputs lie in the memory of devices of this process. Internal to shared/.
#pragma once

#include <vector>

#include "cohort/collective/call.h"

namespace cohort::collective {

// Allocates the result of a call whose input lies in device memory, and records when the input is complete (`output`
// and `ready`). Does nothing for other calls. Throws the errors of the device's allocator.
void PrepareOnDevice(CollectiveCall& call);

// Returns whether the inputs of all calls lie in device memory. `calls` has the call of each rank. Throws
// InvalidArgumentError if this differs.
bool AreOnDevices(const std::vector<CollectiveCall>& calls);

// Enqueues the collective. Returns the results by rank; they are valid in the order of each device's compute stream.
// The inputs may be freed when it returns. Throws the errors of the devices. Requires: PrepareOnDevice was called for
// each call, and AreOnDevices returns true.
std::vector<Tensor> RunOnDevices(const std::vector<CollectiveCall>& calls);

}  // namespace cohort::collective
