// Unbatch: the rows of batches, one element each.
#include "cohort/data/description.h"
#include "cohort/data/element_codec.h"
#include "cohort/data/stack.h"
#include "cohort/data/stages.h"
#include "cohort/data/unary_stage.h"

namespace cohort::data {
namespace {

class UnbatchIterator : public UnaryIterator {
 public:
  using UnaryIterator::UnaryIterator;
  bool Next(Element* out) override {
    while (next_row_ >= num_rows_) {
      if (small_) {
        WireWriter position;
        input_->Save(&position);
        before_ = position.Take();
      }
      if (!input_->Next(&batch_)) return false;
      node_->Guard([&] { num_rows_ = NumRows(batch_); });
      next_row_ = 0;
    }
    *out = Row(batch_, next_row_++);
    return true;
  }
  // Either from before the batch, which is read again, or the batch itself.
  void Save(WireWriter* out) override {
    const bool inside = next_row_ < num_rows_;
    out->Varint(inside ? static_cast<uint64_t>(next_row_) + 1 : 0);
    if (!inside) {
      input_->Save(out);
      return;
    }
    out->String(small_ ? before_ : "");
    if (small_) return;
    WriteElement(batch_, out);
    input_->Save(out);
  }
  void Restore(WireReader* in) override {
    const uint64_t row = in->Varint();
    if (row == 0) {
      input_->Restore(in);
      return;
    }
    before_ = in->String();
    if (small_) {
      WireReader before(before_);
      input_->Restore(&before);
      Element first;
      Next(&first);
    } else {
      batch_ = ReadElement(in);
      num_rows_ = NumRows(batch_);
      input_->Restore(in);
    }
    next_row_ = static_cast<int64_t>(row) - 1;
  }

 private:
  const bool small_ = input_->HasSmallPosition();
  std::string before_;
  Element batch_;
  int64_t num_rows_ = 0;
  int64_t next_row_ = 0;
};

class UnbatchNode : public DatasetNode {
 public:
  explicit UnbatchNode(NodePtr input) : DatasetNode({input}, RowSpec(input->spec())) {}
  std::string kind() const override { return "Unbatch"; }
  int64_t Cardinality() const override {
    const int64_t count = input()->Cardinality();
    const Shape& shape = input()->spec().front().shape;
    if (count <= 0 && count != kUnknownCardinality) return count;
    if (count < 0 || !shape.has_rank() || shape.dim(0) < 0) return kUnknownCardinality;
    return count * shape.dim(0);
  }
  void Write(DescriptionWriter*) const override {}
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeUnbatch(inputs.at(0)); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<UnbatchIterator>(shared_from_this(), input()->MakeIterator(context));
  }
};

}  // namespace

NodePtr MakeUnbatch(NodePtr input) { return std::make_shared<UnbatchNode>(std::move(input)); }

}  // namespace cohort::data
