// What may be done with trained weights and their moving averages (CommonOptions::use_ema).
#pragma once

namespace cohort::keras {

enum class AveragesChange {
  kSwap,              // exchange the values of weights and averages
  kOverwriteWeights,  // give the weights the values of their averages
  kFollowWeights,     // give the averages the values of their weights
};

}  // namespace cohort::keras
