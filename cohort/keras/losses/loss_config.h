// Helpers for the form of Keras's losses in files. A loss returns its options in Serialized(). FromConfig, a function
// of the same class, makes the loss from them. The table of the classes is in losses.cc. Internal to keras/.
#pragma once

#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/losses/loss.h"

namespace cohort::keras {

// Returns the form of `loss` in files. `options` are those that its class has beside name and reduction.
ConfigValue LossInFile(const Loss& loss, const char* class_name, const ConfigValue::Object& options);

// Reads name and reduction.
void ReadLossOptions(ConfigReader& reader, std::string& name, Reduction& reduction);

}  // namespace cohort::keras
