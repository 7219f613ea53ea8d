// Functions about devices that several examples use: they choose GPUs if there are any, and say what was chosen.
#pragma once

#include <string>

#include "cohort/cohort.h"

namespace examples {

// Returns the device on which one replica trains: the first visible GPU, or else the CPU. Fixes the devices, as
// config::ListLogicalDevices does.
std::string OneTrainingDevice();

// Makes so many logical devices for the replicas of this process, and returns their number. With GPUs, these are as
// many of them as there are replicas; if there are fewer GPUs, the first one is divided. Without GPUs they are logical
// CPUs. 0 replicas mean: each visible GPU, or without GPUs one for each core. Call it before anything uses devices.
int UseDevicesForReplicas(int replicas);

// Returns for example "2 replicas on /device:GPU:0 (NVIDIA H100 80GB HBM3) and /device:GPU:1 (NVIDIA H100 80GB HBM3),
// variables on /device:CPU:0". Says where variables are only if the replicas share them and are elsewhere.
std::string DevicesText(const cohort::distribute::Strategy& strategy);

}  // namespace examples
