// Saves models by their ModelState, for the sources of keras/. Internal to keras/.
#pragma once

#include <string>
#include <vector>

#include "cohort/keras/files/weights_file.h"
#include "cohort/keras/training/model_state.h"

namespace cohort::keras {

// As SaveModel and SaveWeights in model_files.h.
void SaveModel(ModelState& state, const std::string& path);
// Throws UnimplementedError if SaveModel would do so because of a layer. Requires: the model is built.
void CheckCanBeSaved(ModelState& state);
void SaveWeights(ModelState& state, const std::string& path);

// Returns the groups of a weights file: the weights and the optimizer's state.
std::vector<WeightGroup> WeightGroupsOf(ModelState& state);
// Sets weights and the optimizer's state. `where` names the file in errors. Throws what LoadWeights throws.
void SetWeightGroups(ModelState& state, const std::vector<WeightGroup>& groups, const std::string& where);

}  // namespace cohort::keras
