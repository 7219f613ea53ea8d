#include "cohort/data/stages/stage.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::data {
namespace {

void AppendShufflesWithoutSeed(const DatasetNode& node, std::vector<const DatasetNode*>* out) {
  for (const NodePtr& input : node.inputs()) AppendShufflesWithoutSeed(*input, out);
  if (node.drawn_seed()) out->push_back(&node);
}

// A walk over the indices of a stage with random access.
class IndexIterator : public StageIterator {
 public:
  explicit IndexIterator(NodePtr node) : node_(std::move(node)) {}
  bool Next(Element* out) override {
    if (next_ >= node_->RandomAccessSize()) return false;
    node_->Get(next_++, out);
    return true;
  }
  void Save(WireWriter* out) override { out->Varint(static_cast<uint64_t>(next_)); }
  void Restore(WireReader* in) override {
    next_ = static_cast<int64_t>(in->Varint(static_cast<uint64_t>(node_->RandomAccessSize())));
  }
  bool HasSmallPosition() const override { return true; }

 private:
  const NodePtr node_;
  int64_t next_ = 0;
};

}  // namespace

std::string StageLabel(const DatasetNode& node) { return StrCat(node.kind(), "(", node.Parameters(), ")"); }

std::vector<const DatasetNode*> ShufflesWithoutSeed(const DatasetNode& root) {
  std::vector<const DatasetNode*> shuffles;
  AppendShufflesWithoutSeed(root, &shuffles);
  return shuffles;
}

std::string DatasetNode::ToString() const {
  if (inputs_.empty()) return StageLabel(*this);
  return StrCat(input()->ToString(), ".", StageLabel(*this));
}

void DatasetNode::Get(int64_t, Element*) const {
  throw InternalError(StrCat("[data] ", StageLabel(*this), " has no random access"));
}

StagePtr DatasetNode::MakeStage(const IteratorContext&) const {
  throw InternalError(StrCat("[data] ", StageLabel(*this), " has no iterator of its own"));
}

StagePtr DatasetNode::MakeIterator(const IteratorContext& context) const {
  if (RandomAccessSize() != kSequential) return std::make_unique<IndexIterator>(shared_from_this());
  return MakeStage(context);
}

void DatasetNode::ThrowWithPlace() const {
  const Status status = Status::FromCurrentException().WithPlace(
      inputs_.empty() ? "stage " + StageLabel(*this) : StrCat("stage ", StageLabel(*this), " of ", ToString()));
  ThrowError(status.code(), status.message());
}

int64_t MinCardinality(int64_t a, int64_t b) {
  if (a == kInfiniteCardinality) return b;
  if (b == kInfiniteCardinality) return a;
  if (a == 0 || b == 0) return 0;
  if (a == kUnknownCardinality || b == kUnknownCardinality) return kUnknownCardinality;
  return a < b ? a : b;
}

int64_t AddCardinality(int64_t a, int64_t b) {
  if (a == kInfiniteCardinality || b == kInfiniteCardinality) return kInfiniteCardinality;
  if (a == kUnknownCardinality || b == kUnknownCardinality) return kUnknownCardinality;
  return a + b;
}

}  // namespace cohort::data
