// Stages with several inputs: Zip and Concatenate. If all inputs have random access, so has the result, and each
// element is read by its index. Otherwise an iterator reads the inputs one after another.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {
namespace {

std::vector<StagePtr> MakeIterators(const std::vector<NodePtr>& nodes, const IteratorContext& context) {
  std::vector<StagePtr> iterators;
  iterators.reserve(nodes.size());
  for (const NodePtr& node : nodes) iterators.push_back(node->MakeIterator(context));
  return iterators;
}

class JoinIterator : public StageIterator {
 public:
  explicit JoinIterator(std::vector<StagePtr> inputs) : inputs_(std::move(inputs)) {}
  bool HasSmallPosition() const override {
    return std::all_of(inputs_.begin(), inputs_.end(), [](const StagePtr& input) { return input->HasSmallPosition(); });
  }

 protected:
  const std::vector<StagePtr> inputs_;
};

class ZipIterator : public JoinIterator {
 public:
  using JoinIterator::JoinIterator;
  bool Next(Element* out) override {
    if (ended_) return false;
    Element joined;
    for (const StagePtr& input : inputs_) {
      if (!input->Next(&part_)) {
        ended_ = true;
        return false;
      }
      std::move(part_.begin(), part_.end(), std::back_inserter(joined));
    }
    *out = std::move(joined);
    return true;
  }
  void Save(WireWriter* out) override {
    out->Varint(ended_ ? 1 : 0);
    for (const StagePtr& input : inputs_) input->Save(out);
  }
  void Restore(WireReader* in) override {
    ended_ = in->Varint(1) != 0;
    for (const StagePtr& input : inputs_) input->Restore(in);
  }

 private:
  Element part_;
  bool ended_ = false;
};

class ZipNode : public DatasetNode {
 public:
  ZipNode(std::vector<NodePtr> inputs, ElementSpec spec) : DatasetNode(std::move(inputs), std::move(spec)) {
    size_ = inputs_size();
  }
  std::string kind() const override { return "Zip"; }
  std::string ToString() const override {
    std::vector<std::string> names;
    for (const NodePtr& input : inputs()) names.push_back(input->ToString());
    return StrCat("Zip(", StrJoin(names, ", "), ")");
  }
  int64_t Cardinality() const override {
    int64_t count = kInfiniteCardinality;
    for (const NodePtr& input : inputs()) count = MinCardinality(count, input->Cardinality());
    return count;
  }
  int64_t RandomAccessSize() const override { return size_; }
  void Get(int64_t index, Element* out) const override {
    out->clear();
    Element part;
    for (const NodePtr& input : inputs()) {
      input->Get(index, &part);
      std::move(part.begin(), part.end(), std::back_inserter(*out));
    }
  }
  void Write(DescriptionWriter*) const override {}
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeZip(std::move(inputs)); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<ZipIterator>(MakeIterators(inputs(), context));
  }

 private:
  int64_t inputs_size() const {
    int64_t size = input()->RandomAccessSize();
    for (const NodePtr& input : inputs()) size = std::min(size, input->RandomAccessSize());
    return size;
  }
  int64_t size_;
};

class ConcatenateIterator : public JoinIterator {
 public:
  using JoinIterator::JoinIterator;
  bool Next(Element* out) override {
    while (current_ < inputs_.size()) {
      if (inputs_[current_]->Next(out)) return true;
      ++current_;
    }
    return false;
  }
  void Save(WireWriter* out) override {
    out->Varint(current_);
    if (current_ < inputs_.size()) inputs_[current_]->Save(out);
  }
  void Restore(WireReader* in) override {
    current_ = in->Varint(inputs_.size());
    if (current_ < inputs_.size()) inputs_[current_]->Restore(in);
  }

 private:
  size_t current_ = 0;
};

class ConcatenateNode : public DatasetNode {
 public:
  ConcatenateNode(NodePtr first, NodePtr second, ElementSpec spec)
      : DatasetNode({std::move(first), std::move(second)}, std::move(spec)) {
    const int64_t a = inputs()[0]->RandomAccessSize(), b = inputs()[1]->RandomAccessSize();
    size_ = a == kSequential || b == kSequential ? kSequential : a + b;
  }
  std::string kind() const override { return "Concatenate"; }
  std::string Parameters() const override { return inputs()[1]->ToString(); }
  int64_t Cardinality() const override {
    return AddCardinality(inputs()[0]->Cardinality(), inputs()[1]->Cardinality());
  }
  int64_t RandomAccessSize() const override { return size_; }
  void Get(int64_t index, Element* out) const override {
    const int64_t first = inputs()[0]->RandomAccessSize();
    if (index < first) {
      inputs()[0]->Get(index, out);
    } else {
      inputs()[1]->Get(index - first, out);
    }
  }
  void Write(DescriptionWriter*) const override {}
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeConcatenate(inputs.at(0), inputs.at(1)); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<ConcatenateIterator>(MakeIterators(inputs(), context));
  }

 private:
  int64_t size_;
};

}  // namespace

NodePtr MakeZip(std::vector<NodePtr> inputs) {
  CheckParameter(!inputs.empty(), "one dataset at least for Zip", 0);
  ElementSpec spec;
  for (const NodePtr& input : inputs) spec.insert(spec.end(), input->spec().begin(), input->spec().end());
  return std::make_shared<ZipNode>(std::move(inputs), std::move(spec));
}

NodePtr MakeConcatenate(NodePtr first, NodePtr second) {
  ElementSpec spec = first->spec();
  const ElementSpec& other = second->spec();
  bool alike = spec.size() == other.size();
  for (size_t i = 0; alike && i < spec.size(); ++i) {
    alike = spec[i].dtype == other[i].dtype;
    spec[i].shape = spec[i].shape.CommonWith(other[i].shape);
  }
  if (!alike) {
    throw InvalidArgumentError(StrCat("[data] expected datasets of the same dtypes for Concatenate; got ",
                                      ToString(first->spec()), " and ", ToString(other)));
  }
  return std::make_shared<ConcatenateNode>(std::move(first), std::move(second), std::move(spec));
}

}  // namespace cohort::data
