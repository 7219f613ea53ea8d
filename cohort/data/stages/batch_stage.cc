// Batch: consecutive elements stacked.
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/stack.h"
#include "cohort/data/stages/stages.h"
#include "cohort/data/stages/unary_stage.h"

namespace cohort::data {
namespace {

class BatchIterator : public UnaryIterator {
 public:
  BatchIterator(NodePtr node, StagePtr input, int64_t batch_size, bool drop_remainder)
      : UnaryIterator(std::move(node), std::move(input)), batch_size_(batch_size), drop_remainder_(drop_remainder) {}
  bool Next(Element* out) override {
    elements_.clear();
    Element element;
    while (static_cast<int64_t>(elements_.size()) < batch_size_ && input_->Next(&element)) {
      elements_.push_back(std::move(element));
    }
    if (elements_.empty()) return false;
    if (drop_remainder_ && static_cast<int64_t>(elements_.size()) < batch_size_) return false;
    node_->Guard([&] { *out = Stack(elements_); });
    elements_.clear();
    return true;
  }

 private:
  const int64_t batch_size_;
  const bool drop_remainder_;
  std::vector<Element> elements_;
};

class BatchNode : public DatasetNode {
 public:
  BatchNode(NodePtr input, int64_t batch_size, bool drop_remainder)
      : DatasetNode({input}, BatchSpec(input->spec(), drop_remainder ? batch_size : Shape::kUnknownDim)),
        batch_size_(batch_size),
        drop_remainder_(drop_remainder) {}
  std::string kind() const override { return "Batch"; }
  std::string Parameters() const override { return StrCat(batch_size_, drop_remainder_ ? ", drop_remainder" : ""); }
  int64_t Cardinality() const override {
    const int64_t count = input()->Cardinality();
    if (count < 0) return count;
    return count / batch_size_ + (!drop_remainder_ && count % batch_size_ != 0 ? 1 : 0);
  }
  int64_t batch_size() const override { return batch_size_; }
  void Write(DescriptionWriter* out) const override {
    out->Int(batch_size_);
    out->Int(drop_remainder_ ? 1 : 0);
  }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override {
    return MakeBatch(inputs.at(0), batch_size_, drop_remainder_);
  }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<BatchIterator>(shared_from_this(), input()->MakeIterator(context), batch_size_,
                                           drop_remainder_);
  }

 private:
  const int64_t batch_size_;
  const bool drop_remainder_;
};

}  // namespace

NodePtr MakeBatch(NodePtr input, int64_t batch_size, bool drop_remainder) {
  CheckParameter(batch_size >= 1, "a batch size of at least 1", batch_size);
  return std::make_shared<BatchNode>(std::move(input), batch_size, drop_remainder);
}

}  // namespace cohort::data
