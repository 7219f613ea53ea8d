// Take, Skip and Shard: some of the elements, in their order.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/stages/stages.h"
#include "cohort/data/stages/unary_stage.h"

namespace cohort::data {
namespace {

// Yields the elements with indices first, first + stride, ... before `limit` (-1: all).
struct ElementRange {
  int64_t first = 0;
  int64_t stride = 1;
  int64_t limit = -1;
  bool require_non_empty = false;

  // Returns how many of `count` elements are in the range.
  int64_t CountOf(int64_t count) const {
    if (limit >= 0 && (count == kInfiniteCardinality || count > limit)) count = limit;
    if (count < 0) return count;
    return count <= first ? 0 : (count - first - 1) / stride + 1;
  }
};

class SubsetIterator : public UnaryIterator {
 public:
  SubsetIterator(NodePtr node, StagePtr input, const ElementRange& range)
      : UnaryIterator(std::move(node), std::move(input)), range_(range), wanted_(range.first) {}
  bool Next(Element* out) override {
    while (range_.limit < 0 || wanted_ < range_.limit) {
      if (!input_->Next(out)) {
        if (range_.require_non_empty && wanted_ == range_.first) FailEmpty();
        return false;
      }
      if (index_++ < wanted_) continue;
      wanted_ += range_.stride;
      return true;
    }
    return false;
  }
  void Save(WireWriter* out) override {
    out->Varint(static_cast<uint64_t>(index_));
    out->Varint(static_cast<uint64_t>(wanted_));
    input_->Save(out);
  }
  void Restore(WireReader* in) override {
    index_ = static_cast<int64_t>(in->Varint());
    wanted_ = static_cast<int64_t>(in->Varint());
    input_->Restore(in);
  }

 private:
  [[noreturn]] void FailEmpty() const {
    node_->Guard([&] {
      throw InvalidArgumentError(StrCat(
          "[data] expected at least ", range_.stride,
          " elements (names of files, where files are sharded), one for each worker; got ", index_, ", so that worker ",
          range_.first, " has none; give it more, or choose the auto-shard policy DATA or OFF"));
    });
    __builtin_unreachable();
  }

  const ElementRange range_;
  int64_t index_ = 0;  // of the input's next element
  int64_t wanted_;     // of the next element to yield
};

class SubsetNode : public DatasetNode {
 public:
  SubsetNode(const char* kind, NodePtr input, const ElementRange& range)
      : DatasetNode({input}, input->spec()), kind_(kind), range_(range) {
    const int64_t size = input->RandomAccessSize();
    size_ = size == kSequential ? kSequential : range.CountOf(size);
    if (range.require_non_empty && size_ == 0) size_ = kSequential;  // the iterator then throws the error
  }
  std::string kind() const override { return kind_; }
  std::string Parameters() const override {
    if (kind_ == "Take") return StrCat(range_.limit);
    if (kind_ == "Skip") return StrCat(range_.first);
    return StrCat(range_.stride, ", ", range_.first);
  }
  int64_t Cardinality() const override { return range_.CountOf(input()->Cardinality()); }
  int64_t RandomAccessSize() const override { return size_; }
  void Get(int64_t index, Element* out) const override { input()->Get(range_.first + index * range_.stride, out); }
  void Write(DescriptionWriter* out) const override {
    for (const int64_t value : {range_.first, range_.stride, range_.limit}) out->Int(value);
    out->Int(range_.require_non_empty ? 1 : 0);
  }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override {
    return std::make_shared<SubsetNode>(kind_.c_str(), inputs.at(0), range_);
  }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<SubsetIterator>(shared_from_this(), input()->MakeIterator(context), range_);
  }

 private:
  const std::string kind_;
  const ElementRange range_;
  int64_t size_;
};

class ShardHintNode : public DatasetNode {
 public:
  explicit ShardHintNode(NodePtr input) : DatasetNode({input}, input->spec()) {}
  std::string kind() const override { return "ShardHint"; }
  int64_t Cardinality() const override { return kUnknownCardinality; }
  void Write(DescriptionWriter*) const override {}
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeShardHint(inputs.at(0)); }

 protected:
  StagePtr MakeStage(const IteratorContext&) const override {
    throw FailedPreconditionError(StrCat("[data] expected AutoShard with the policy HINT before ", ToString(),
                                         " runs, which is sharded by a hint"));
  }
};

}  // namespace

NodePtr MakeShardHint(NodePtr input) { return std::make_shared<ShardHintNode>(std::move(input)); }

NodePtr MakeTake(NodePtr input, int64_t count) {
  CheckParameter(count >= -1, "a count of Take of at least 0, or -1 for all", count);
  return std::make_shared<SubsetNode>("Take", std::move(input), ElementRange{.limit = count});
}

NodePtr MakeSkip(NodePtr input, int64_t count) {
  CheckParameter(count >= -1, "a count of Skip of at least 0, or -1 for all", count);
  if (count < 0) return std::make_shared<SubsetNode>("Skip", std::move(input), ElementRange{.limit = 0});
  return std::make_shared<SubsetNode>("Skip", std::move(input), ElementRange{.first = count});
}

NodePtr MakeShard(NodePtr input, int64_t num_shards, int64_t index, bool require_non_empty) {
  CheckParameter(num_shards >= 1, "at least one shard", num_shards);
  if (index < 0 || index >= num_shards) {
    throw InvalidArgumentError(
        StrCat("[data] expected the index of a shard from 0 to ", num_shards - 1, "; got ", index));
  }
  return std::make_shared<SubsetNode>(
      "Shard", std::move(input),
      ElementRange{.first = index, .stride = num_shards, .require_non_empty = require_non_empty});
}

}  // namespace cohort::data
