// Interleave: elements of several inner datasets in turn, in the order of TensorFlow's InterleaveDataset.
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/element_codec.h"
#include "cohort/data/stages/stages.h"
#include "cohort/data/stages/unary_stage.h"

namespace cohort::data {
namespace {

class InterleaveIterator : public UnaryIterator {
 public:
  InterleaveIterator(NodePtr node, StagePtr input, const DatasetFunction& function, const InterleaveOptions& options,
                     const IteratorContext& context)
      : UnaryIterator(std::move(node), std::move(input)),
        function_(function),
        block_length_(options.block_length),
        inner_context_{context.epoch, nullptr},
        slots_(static_cast<size_t>(options.cycle_length)) {}
  bool Next(Element* out) override {
    while (!input_ended_ || open_ > 0) {
      Slot& slot = slots_[current_];
      if (slot.iterator == nullptr) {
        if (input_ended_ || !Open(&slot)) Advance();
        continue;
      }
      if (slot.iterator->Next(out)) {
        if (++taken_ == block_length_) Advance();
        return true;
      }
      slot.iterator.reset();
      --open_;
      Advance();
    }
    return false;
  }
  void Save(WireWriter* out) override {
    out->Varint(input_ended_ ? 1 : 0);
    out->Varint(current_);
    out->Varint(static_cast<uint64_t>(taken_));
    for (Slot& slot : slots_) {
      out->Varint(slot.iterator != nullptr ? 1 : 0);
      if (slot.iterator == nullptr) continue;
      WriteElement(slot.element, out);
      slot.iterator->Save(out);
    }
    input_->Save(out);
  }
  void Restore(WireReader* in) override {
    input_ended_ = in->Varint(1) != 0;
    current_ = in->Varint(slots_.size() - 1);
    taken_ = static_cast<int>(in->Varint(static_cast<uint64_t>(block_length_)));
    for (Slot& slot : slots_) {
      if (in->Varint(1) == 0) continue;
      slot.element = ReadElement(in);
      MakeInner(&slot);
      slot.iterator->Restore(in);
    }
    input_->Restore(in);
  }
  bool HasSmallPosition() const override { return false; }

 private:
  struct Slot {
    Element element;  // of the input
    StagePtr iterator;
  };
  bool Open(Slot* slot) {
    if (!input_->Next(&slot->element)) {
      input_ended_ = true;
      return false;
    }
    MakeInner(slot);
    return true;
  }
  void MakeInner(Slot* slot) {
    slot->iterator =
        node_->Guard([&] { return function_.Call(slot->element)->MakeIterator(inner_context_); }, &slot->element);
    ++open_;
  }
  void Advance() {
    taken_ = 0;
    current_ = (current_ + 1) % slots_.size();
  }

  const DatasetFunction& function_;  // the node's
  const int block_length_;
  const IteratorContext inner_context_;
  std::vector<Slot> slots_;
  size_t current_ = 0;
  int taken_ = 0;  // from the current slot in its turn
  int open_ = 0;
  bool input_ended_ = false;
};

class InterleaveNode : public DatasetNode {
 public:
  InterleaveNode(NodePtr input, std::shared_ptr<const DatasetFunction> function, const InterleaveOptions& options)
      : DatasetNode({input}, function->output_spec()), function_(std::move(function)), options_(options) {}
  const DatasetFunction& function() const { return *function_; }
  std::string kind() const override { return "Interleave"; }
  std::string Parameters() const override {
    return StrCat(function_->ToString(), ", cycle=", options_.cycle_length, ", block=", options_.block_length);
  }
  int64_t Cardinality() const override { return input()->Cardinality() == 0 ? 0 : kUnknownCardinality; }
  void Write(DescriptionWriter* out) const override {
    function_->Write(out);
    out->Int(options_.cycle_length);
    out->Int(options_.block_length);
  }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override {
    return MakeInterleave(inputs.at(0), function_, options_);
  }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<InterleaveIterator>(shared_from_this(), input()->MakeIterator(context), *function_,
                                                options_, context);
  }

 private:
  const std::shared_ptr<const DatasetFunction> function_;
  const InterleaveOptions options_;
};

}  // namespace

NodePtr MakeInterleave(NodePtr input, std::shared_ptr<const DatasetFunction> function,
                       const InterleaveOptions& options) {
  CheckParameter(options.cycle_length >= 1, "a cycle length of Interleave of at least 1", options.cycle_length);
  CheckParameter(options.block_length >= 1, "a block length of Interleave of at least 1", options.block_length);
  return std::make_shared<InterleaveNode>(std::move(input), std::move(function), options);
}

const DatasetFunction* InterleaveFunction(const DatasetNode& node) {
  const auto* interleave = dynamic_cast<const InterleaveNode*>(&node);
  return interleave == nullptr ? nullptr : &interleave->function();
}

}  // namespace cohort::data
