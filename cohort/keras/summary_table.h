// The table that Model::Summary prints, in the form of Keras 2. Internal to keras/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/shape.h"

namespace cohort::keras {

// One layer in the table.
struct SummaryRow {
  std::string name;        // "conv2d"
  std::string class_name;  // "Conv2D"
  std::vector<Shape> outputs;
  int64_t params = 0;
  std::vector<std::string> connected_to;  // "conv2d[0][0]"
};

// Numbers of parameters of the whole model.
struct SummaryTotals {
  int64_t trainable = 0;
  int64_t non_trainable = 0;
};

// Returns the table as text. `connections` adds the column "Connected to", for models that are not a chain of layers.
std::string SummaryTable(const std::string& title, const std::vector<SummaryRow>& rows, const SummaryTotals& totals,
                         bool connections);

class ModelState;
// Returns the table of a model's layers.
std::string SummaryOf(ModelState& state);

}  // namespace cohort::keras
