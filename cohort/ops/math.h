// Includes all families of arithmetic ops, and the operators on Output.
#pragma once

#include "cohort/ops/arithmetic.h"
#include "cohort/ops/clip.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/scan.h"
#include "cohort/ops/select.h"
#include "cohort/ops/unary.h"
