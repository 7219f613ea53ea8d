// Converts the arguments of Compile to a configuration ("compile_config" of a .keras file) and back. Internal to
// keras/.
#pragma once

#include <string>
#include <vector>

#include "cohort/keras/files/config.h"
#include "cohort/keras/training/options.h"

namespace cohort::keras {

struct CompiledModel;

// Throws UnimplementedError for an optimizer, a loss or a metric of the program's own.
ConfigValue SerializedCompile(const CompileOptions& options, const CompiledModel& compiled);

// `output_names` are the layers of the outputs, by which Keras's files may say which loss belongs to which output.
// Throws InvalidArgumentError for unknown names and options, UnimplementedError if outputs have different metrics.
CompileOptions DeserializeCompile(const ConfigValue& value, const std::vector<std::string>& output_names);

}  // namespace cohort::keras
