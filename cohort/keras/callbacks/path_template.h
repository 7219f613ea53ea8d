// File names with the epoch and the logs in them: "model.{epoch:02d}-{val_loss:.2f}.keras". Internal to keras/.
#pragma once

#include <string>

#include "cohort/keras/callbacks/logs.h"

namespace cohort::keras {

// Fills in {NAME} and {NAME:FORMAT}; "{{" and "}}" are braces. FORMAT: Python's [0][WIDTH][.PRECISION] and d, e, f or
// g; without one a whole number has no fraction. Throws InvalidArgumentError for a name that is not among `values` (and
// lists them), for an open brace and for another format.
std::string FillIn(const std::string& path_template, const Logs& values);

}  // namespace cohort::keras
