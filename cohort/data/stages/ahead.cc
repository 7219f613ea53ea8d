#include "cohort/data/stages/ahead.h"

#include "cohort/data/element_codec.h"

namespace cohort::data {

std::string SavedPosition(StageIterator& iterator) {
  WireWriter position;
  iterator.Save(&position);
  return position.Take();
}

void WriteOutcome(const Status& status, const Element& element, WireWriter* out) {
  out->Varint(static_cast<uint64_t>(status.code()));
  out->String(status.message());
  WriteElement(status.ok() ? element : Element(), out);
}

void ReadOutcome(WireReader* in, Status* status, Element* element) {
  const auto code = static_cast<Code>(in->Varint(100));
  *status = Status(code, in->String());
  *element = ReadElement(in);
}

}  // namespace cohort::data
