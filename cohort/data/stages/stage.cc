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

// A run of a stage that ends when its iterator is told to stop. The stages that read it may call it in an endless loop,
// such as a Filter that never finds an element.
class StoppableIterator : public StageIterator {
 public:
  StoppableIterator(StagePtr stage, std::shared_ptr<const std::atomic<bool>> stop)
      : stage_(std::move(stage)), stop_(std::move(stop)) {}
  bool Next(Element* out) override {
    CheckNotStopped(stop_.get());
    return stage_->Next(out);
  }
  bool PeekReady(Element* out) override { return !stop_->load(std::memory_order_relaxed) && stage_->PeekReady(out); }
  void Save(WireWriter* out) override { stage_->Save(out); }
  void Restore(WireReader* in) override { stage_->Restore(in); }
  bool HasSmallPosition() const override { return stage_->HasSmallPosition(); }

 private:
  const StagePtr stage_;
  const std::shared_ptr<const std::atomic<bool>> stop_;
};

}  // namespace

void CheckNotStopped(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
    throw CancelledError("[data] the iterator was told to stop");
  }
}

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
  StagePtr stage =
      RandomAccessSize() != kSequential ? std::make_unique<IndexIterator>(shared_from_this()) : MakeStage(context);
  if (context.stop == nullptr) return stage;
  return std::make_unique<StoppableIterator>(std::move(stage), context.stop);
}

void DatasetNode::ThrowWithPlace(const Element* element) const {
  std::string place = StrCat("stage ", StageLabel(*this));
  if (element != nullptr) place += StrCat(" for the element ", Description(*element));
  if (!inputs_.empty()) place += " of " + ToString();
  const Status status = Status::FromCurrentException().WithPlace(place);
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
