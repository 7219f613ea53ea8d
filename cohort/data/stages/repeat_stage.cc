#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {
namespace {

class RepeatIterator : public StageIterator {
 public:
  // `count`: -1 endless.
  RepeatIterator(NodePtr input, int64_t count, const IteratorContext& context)
      : input_(std::move(input)), count_(count), context_(context) {
    StartPass(0);
  }
  bool Next(Element* out) override {
    while (!ended_) {
      if (iterator_->Next(out)) {
        pass_is_empty_ = false;
        return true;
      }
      // Without this, repeating an empty input endlessly would never return.
      ended_ = pass_ + 1 == count_ || (count_ < 0 && pass_is_empty_);
      if (!ended_) StartPass(pass_ + 1);
    }
    return false;
  }
  void Save(WireWriter* out) override {
    out->Varint(ended_ ? 1 : 0);
    out->Varint(pass_is_empty_ ? 1 : 0);
    out->Varint(static_cast<uint64_t>(pass_));
    iterator_->Save(out);
  }
  void Restore(WireReader* in) override {
    const bool ended = in->Varint(1) != 0;
    const bool pass_is_empty = in->Varint(1) != 0;
    StartPass(static_cast<int64_t>(in->Varint(uint64_t{1} << 62)));
    ended_ = ended;
    pass_is_empty_ = pass_is_empty;
    iterator_->Restore(in);
  }
  bool HasSmallPosition() const override { return iterator_->HasSmallPosition(); }

 private:
  void StartPass(int64_t pass) {
    pass_ = pass;
    pass_is_empty_ = true;
    IteratorContext context = context_;
    context.epoch = (count_ < 0 ? context_.epoch : context_.epoch * count_) + pass;
    iterator_.reset();  // its threads end before those of the next pass begin
    iterator_ = input_->MakeIterator(context);
  }

  const NodePtr input_;
  const int64_t count_;
  const IteratorContext context_;
  int64_t pass_ = 0;
  bool pass_is_empty_ = true;
  bool ended_ = false;
  StagePtr iterator_;
};

class NothingIterator : public StageIterator {
 public:
  bool Next(Element*) override { return false; }
  void Save(WireWriter*) override {}
  void Restore(WireReader*) override {}
  bool HasSmallPosition() const override { return true; }
};

class RepeatNode : public DatasetNode {
 public:
  RepeatNode(NodePtr input, int64_t count) : DatasetNode({input}, input->spec()), count_(count) {}
  std::string kind() const override { return "Repeat"; }
  std::string Parameters() const override { return StrCat(count_); }
  int64_t Cardinality() const override {
    const int64_t count = input()->Cardinality();
    if (count == 0 || count_ == 0) return 0;
    if (count_ < 0) return kInfiniteCardinality;
    return count < 0 ? count : count * count_;
  }
  void Write(DescriptionWriter* out) const override { out->Int(count_); }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeRepeat(inputs.at(0), count_); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    if (count_ == 0) return std::make_unique<NothingIterator>();
    return std::make_unique<RepeatIterator>(input(), count_, context);
  }

 private:
  const int64_t count_;
};

}  // namespace

NodePtr MakeRepeat(NodePtr input, int64_t count) {
  CheckParameter(count >= -1, "a count of Repeat of at least 0, or -1 for endlessly", count);
  return std::make_shared<RepeatNode>(std::move(input), count);
}

}  // namespace cohort::data
