// The names of what is in the folder of a SavedModel. Internal.
#pragma once

namespace cohort::saved_model {

inline constexpr const char* kFile = "/saved_model.pb";
inline constexpr const char* kAssets = "/assets/";
inline constexpr const char* kValues = "/variables/variables";
// The collection that names the op to run after the values were restored.
inline constexpr const char* kMainOp = "saved_model_main_op";

}  // namespace cohort::saved_model
