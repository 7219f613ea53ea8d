// The table that Model::Summary prints, as Keras 2 printed it. Internal to keras/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/shape.h"

namespace cohort::keras {

struct SummaryRow {
  std::string name;        // "conv2d"
  std::string class_name;  // "Conv2D"
  std::vector<Shape> outputs;
  int64_t params = 0;
  std::vector<std::string> connected_to;  // "conv2d[0][0]"
};

struct SummaryTotals {
  int64_t trainable = 0;
  int64_t non_trainable = 0;
};

// `connections`: with the column "Connected to", as for models that are no chain.
std::string SummaryTable(const std::string& title, const std::vector<SummaryRow>& rows, const SummaryTotals& totals,
                         bool connections);

class ModelState;
// The table of a model's layers, as Model::Summary prints it.
std::string SummaryOf(ModelState& state);

}  // namespace cohort::keras
