// For stages whose position is how many elements they have yielded, and which get there again by reading these.
#pragma once

#include "cohort/data/stages/stage.h"

namespace cohort::data {

// A subclass counts in index_.
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
