// Helpers of stages that run their input ahead of the consumer. They save elements that are read but not yet consumed.
#pragma once

#include <string>

#include "cohort/core/error.h"
#include "cohort/data/stages/stage.h"

namespace cohort::data {

// Returns the iterator's position as bytes.
std::string SavedPosition(StageIterator& iterator);

// Write and read an element, or the error that came in its place.
void WriteOutcome(const Status& status, const Element& element, WireWriter* out);
void ReadOutcome(WireReader* in, Status* status, Element* element);

}  // namespace cohort::data
