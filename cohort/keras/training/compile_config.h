// What Compile was given as configuration ("compile_config" of a .keras file), and the reverse. Internal to keras/.
#pragma once

#include <string>
#include <vector>

#include "cohort/keras/files/config.h"
#include "cohort/keras/training/options.h"

namespace cohort::keras {

struct CompiledModel;

// Throws UnimplementedError for an optimizer, a loss or a metric of the program's own.
ConfigValue SerializedCompile(const CompileOptions& options, const CompiledModel& compiled);

// `output_names`: the layers of the outputs, by which Keras's files may say which loss is whose. Throws
// InvalidArgumentError for what is not known, UnimplementedError for outputs with different metrics.
CompileOptions DeserializeCompile(const ConfigValue& value, const std::vector<std::string>& output_names);

}  // namespace cohort::keras
