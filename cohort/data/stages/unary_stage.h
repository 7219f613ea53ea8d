// UnaryIterator: the base of iterators that take their elements from one input, one after another.
#pragma once

#include <utility>

#include "cohort/data/stages/stage.h"

namespace cohort::data {

// The position is that of the input. A subclass with a state of its own writes that first. Not thread-safe.
class UnaryIterator : public StageIterator {
 public:
  UnaryIterator(NodePtr node, StagePtr input) : node_(std::move(node)), input_(std::move(input)) {}
  void Save(WireWriter* out) override { input_->Save(out); }
  void Restore(WireReader* in) override { input_->Restore(in); }
  bool HasSmallPosition() const override { return input_->HasSmallPosition(); }

 protected:
  const NodePtr node_;
  const StagePtr input_;
};

}  // namespace cohort::data
