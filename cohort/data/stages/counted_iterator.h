// CountedIterator: the base of iterators whose position is the number of elements that they have yielded. Restore reads
// that many elements again.
#pragma once

#include "cohort/data/stages/stage.h"

namespace cohort::data {

// A subclass must count the elements that it yields in index_. Not thread-safe.
class CountedIterator : public StageIterator {
 public:
  void Save(WireWriter* out) override { out->Varint(index_); }
  void Restore(WireReader* in) override {
    const uint64_t index = in->Varint();
    Element element;
    while (index_ < index && Next(&element)) {
    }
  }
  bool HasSmallPosition() const override { return true; }

 protected:
  uint64_t index_ = 0;
};

}  // namespace cohort::data
