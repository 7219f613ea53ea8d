// Unbatch: the rows of batches, one element each. LegacyRebatch: batches cut into equal parts.
#include <algorithm>

#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/element_codec.h"
#include "cohort/data/stack.h"
#include "cohort/data/stages/stages.h"
#include "cohort/data/stages/unary_stage.h"

namespace cohort::data {
namespace {

// How a batch is cut.
struct Cut {
  int64_t parts = 0;  // 0: into its rows

  int64_t Count(int64_t rows) const { return parts == 0 ? rows : parts; }
  Element Piece(const Element& batch, int64_t rows, int64_t index) const {
    if (parts == 0) return Row(batch, index);
    const int64_t size = (rows + parts - 1) / parts;
    return SliceRows(batch, std::min(rows, index * size), std::min(rows, (index + 1) * size));
  }
};

class CutIterator : public UnaryIterator {
 public:
  CutIterator(NodePtr node, StagePtr input, const Cut& cut)
      : UnaryIterator(std::move(node), std::move(input)), cut_(cut) {}
  bool Next(Element* out) override {
    while (next_ >= count_) {
      if (small_) {
        WireWriter position;
        input_->Save(&position);
        before_ = position.Take();
      }
      if (!input_->Next(&batch_)) return false;
      node_->Guard([&] { Take(); });
    }
    *out = cut_.Piece(batch_, rows_, next_++);
    return true;
  }
  // Inside a batch, saves the position before the batch, which is then read again, or saves the batch itself.
  void Save(WireWriter* out) override {
    const bool inside = next_ < count_;
    out->Varint(inside ? static_cast<uint64_t>(next_) + 1 : 0);
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
    const uint64_t piece = in->Varint();
    if (piece == 0) {
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
      Take();
      input_->Restore(in);
    }
    next_ = static_cast<int64_t>(piece) - 1;
  }

 private:
  void Take() {
    rows_ = NumRows(batch_);
    count_ = cut_.Count(rows_);
    next_ = 0;
  }

  const Cut cut_;
  const bool small_ = input_->HasSmallPosition();
  std::string before_;
  Element batch_;
  int64_t rows_ = 0;   // of the batch
  int64_t count_ = 0;  // of its pieces
  int64_t next_ = 0;
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
    return std::make_unique<CutIterator>(shared_from_this(), input()->MakeIterator(context), Cut());
  }
};

class LegacyRebatchNode : public DatasetNode {
 public:
  LegacyRebatchNode(NodePtr input, int64_t replicas)
      : DatasetNode({input}, BatchSpec(RowSpec(input->spec()), Shape::kUnknownDim)), replicas_(replicas) {}
  std::string kind() const override { return "LegacyRebatch"; }
  std::string Parameters() const override { return StrCat(replicas_); }
  int64_t Cardinality() const override {
    const int64_t count = input()->Cardinality();
    return count < 0 ? count : count * replicas_;
  }
  void Write(DescriptionWriter* out) const override { out->Int(replicas_); }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeLegacyRebatch(inputs.at(0), replicas_); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<CutIterator>(shared_from_this(), input()->MakeIterator(context), Cut{replicas_});
  }

 private:
  const int64_t replicas_;
};

}  // namespace

NodePtr MakeLegacyRebatch(NodePtr input, int64_t replicas) {
  CheckParameter(replicas >= 1, "at least one replica", replicas);
  return std::make_shared<LegacyRebatchNode>(std::move(input), replicas);
}

NodePtr MakeUnbatch(NodePtr input) { return std::make_shared<UnbatchNode>(std::move(input)); }

}  // namespace cohort::data
