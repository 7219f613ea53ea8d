// File names that contain the epoch and logs: "model.{epoch:02d}-{val_loss:.2f}.keras". Internal to keras/.
#pragma once

#include <string>

#include "cohort/keras/callbacks/logs.h"

namespace cohort::keras {

// Replaces {NAME} and {NAME:FORMAT} by values. "{{" and "}}" mean braces. FORMAT is Python's [0][WIDTH][.PRECISION] and
// d, e, f or g. Without a format, a whole number has no fraction. Throws InvalidArgumentError for a name that is not in
// `values` (and lists them), for an open brace, and for an invalid format.
std::string FillIn(const std::string& path_template, const Logs& values);

}  // namespace cohort::keras
