#include "cohort/data/stages/ahead.h"

#include "cohort/data/element_codec.h"

namespace cohort::data {

std::string SavedPosition(StageIterator& iterator) {
  WireWriter position;
  iterator.Save(&position);
  return position.Take();
}

void WriteOutcome(const Status& status, const Element& element, WireWriter* out) {
  PutStatus(*out, status);
  WriteElement(status.ok() ? element : Element(), out);
}

void ReadOutcome(WireReader* in, Status* status, Element* element) {
  *status = GetStatus(*in);
  *element = ReadElement(in);
}

}  // namespace cohort::data
