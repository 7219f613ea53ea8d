// Rebatch: the rows of batches, cut anew to sizes in turn.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/element_codec.h"
#include "cohort/data/stack.h"
#include "cohort/data/stages/stages.h"
#include "cohort/data/stages/unary_stage.h"

namespace cohort::data {
namespace {

class RebatchIterator : public UnaryIterator {
 public:
  RebatchIterator(NodePtr node, StagePtr input, const std::vector<int64_t>& sizes)
      : UnaryIterator(std::move(node), std::move(input)), sizes_(sizes) {}
  bool Next(Element* out) override {
    if (ended_) return false;
    int64_t wanted = sizes_[next_size_];
    next_size_ = (next_size_ + 1) % sizes_.size();
    if (wanted == 0 && batch_.empty() && !Read()) return false;
    if (wanted == 0) {
      *out = SliceRows(batch_, 0, 0);
      return true;
    }
    std::vector<Element> parts;
    while (wanted > 0 && (next_row_ < num_rows_ || Read())) {
      const int64_t count = std::min(wanted, num_rows_ - next_row_);
      parts.push_back(SliceRows(batch_, next_row_, next_row_ + count));
      next_row_ += count;
      wanted -= count;
    }
    if (parts.empty()) return false;
    node_->Guard([&] { *out = parts.size() == 1 ? parts.front() : ConcatenateRows(parts); });
    return true;
  }
  void Save(WireWriter* out) override {
    out->Varint(ended_ ? 1 : 0);
    out->Varint(next_size_);
    WriteElement(batch_.empty() ? Element() : SliceRows(batch_, next_row_, num_rows_), out);
    input_->Save(out);
  }
  void Restore(WireReader* in) override {
    ended_ = in->Varint(1) != 0;
    next_size_ = in->Varint(sizes_.size() - 1);
    batch_ = ReadElement(in);
    next_row_ = 0;
    num_rows_ = NumRows(batch_);
    input_->Restore(in);
  }
  bool HasSmallPosition() const override { return false; }

 private:
  bool Read() {
    if (!input_->Next(&batch_)) {
      ended_ = true;
      return false;
    }
    node_->Guard([&] { num_rows_ = NumRows(batch_); });
    next_row_ = 0;
    return true;
  }

  const std::vector<int64_t>& sizes_;  // the node's
  size_t next_size_ = 0;
  Element batch_;
  int64_t next_row_ = 0, num_rows_ = 0;
  bool ended_ = false;
};

class RebatchNode : public DatasetNode {
 public:
  RebatchNode(NodePtr input, std::vector<int64_t> sizes)
      : DatasetNode({input}, BatchSpec(RowSpec(input->spec()), Shape::kUnknownDim)), sizes_(std::move(sizes)) {}
  std::string kind() const override { return "Rebatch"; }
  std::string Parameters() const override { return StrJoin(sizes_, ", "); }
  int64_t Cardinality() const override {
    const int64_t count = input()->Cardinality();
    return count == 0 || count == kInfiniteCardinality ? count : kUnknownCardinality;
  }
  void Write(DescriptionWriter* out) const override {
    out->Int(static_cast<int64_t>(sizes_.size()));
    for (const int64_t size : sizes_) out->Int(size);
  }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeRebatch(inputs.at(0), sizes_); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<RebatchIterator>(shared_from_this(), input()->MakeIterator(context), sizes_);
  }

 private:
  const std::vector<int64_t> sizes_;
};

}  // namespace

NodePtr MakeRebatch(NodePtr input, std::vector<int64_t> sizes) {
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    CheckParameter(size >= 0, "sizes of Rebatch of at least 0", size);
    sum += size;
  }
  CheckParameter(sum > 0, "sizes of Rebatch with a row at least", sum);
  return std::make_shared<RebatchNode>(std::move(input), std::move(sizes));
}

}  // namespace cohort::data
