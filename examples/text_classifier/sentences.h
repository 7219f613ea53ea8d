// Generated sentences of two classes, on which text_classifier trains if no folder is given.
#pragma once

#include "cohort/cohort.h"

namespace examples {

struct Sentences {
  cohort::Tensor texts;   // string [n]
  cohort::Tensor labels;  // int32 [n]: 0 is negative, 1 is positive
};

// Returns `count` reviews of films. One of fifty has the wrong label. The same seed gives the same sentences.
Sentences MakeSentences(int count, int seed);

}  // namespace examples
