// Helpers for the form of Keras's losses in files. A loss returns its options in Serialized(). FromConfig, a function
// of the same class, makes the loss from them. A new source of losses adds a function below and a line to the list in
// loss_config.cc. Internal to keras/.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/losses/loss.h"

namespace cohort::keras {

// The name of a class in files, and the function that makes its losses.
using LossMaker = std::pair<std::string, std::function<LossPtr(ConfigReader& reader)>>;
std::vector<LossMaker> ProbabilityLossMakers();  // losses.cc
std::vector<LossMaker> RegressionLossMakers();   // regression_losses.cc
std::vector<LossMaker> FocalLossMakers();        // focal_losses.cc
std::vector<LossMaker> OverlapLossMakers();      // overlap_losses.cc

// Returns the form of `loss` in files. `options` are those that its class has beside name and reduction.
ConfigValue LossInFile(const Loss& loss, const char* class_name, const ConfigValue::Object& options);

// Reads name and reduction.
void ReadLossOptions(ConfigReader& reader, std::string& name, Reduction& reduction);

}  // namespace cohort::keras
