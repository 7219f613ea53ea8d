// The public interface of Cohort: include this, or the single headers that it lists. What it does not reach is not
// installed and may change at any time.
#pragma once

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/shape.h"
#include "cohort/core/tensor.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/session.h"
