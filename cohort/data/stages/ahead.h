// For stages that run their input ahead of the consumer: what they keep of an element that is not consumed yet.
#pragma once

#include <string>

#include "cohort/core/error.h"
#include "cohort/data/stages/stage.h"

namespace cohort::data {

std::string SavedPosition(StageIterator& iterator);

// An element, or the error in its place.
void WriteOutcome(const Status& status, const Element& element, WireWriter* out);
void ReadOutcome(WireReader* in, Status* status, Element* element);

}  // namespace cohort::data
