// The slots that Keras's optimizers have beside those of their rules. Internal to keras/.
#pragma once

namespace cohort::keras {

inline constexpr char kAverage[] = "average";                      // of a weight (CommonOptions::use_ema)
inline constexpr char kSumOfGradients[] = "gradient_accumulator";  // CommonOptions::gradient_accumulation_steps

}  // namespace cohort::keras
