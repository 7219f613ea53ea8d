// Filter: the elements for which a predicate holds. TakeWhile: the elements before the first one for which it does not.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/stages/stages.h"
#include "cohort/data/stages/unary_stage.h"

namespace cohort::data {
namespace {

class FilterIterator : public UnaryIterator {
 public:
  FilterIterator(NodePtr node, StagePtr input, const ElementFunction& predicate)
      : UnaryIterator(std::move(node), std::move(input)), predicate_(predicate) {}
  bool Next(Element* out) override {
    while (input_->Next(out)) {
      if (node_->Guard([&] { return predicate_.Call(*out).at(0).scalar<bool>(); }, out)) return true;
    }
    return false;
  }

 private:
  const ElementFunction& predicate_;  // the node's
};

class TakeWhileIterator : public UnaryIterator {
 public:
  TakeWhileIterator(NodePtr node, StagePtr input, const ElementFunction& predicate)
      : UnaryIterator(std::move(node), std::move(input)), predicate_(predicate) {}
  bool Next(Element* out) override {
    if (ended_ || !input_->Next(out)) return false;
    ended_ = !node_->Guard([&] { return predicate_.Call(*out).at(0).scalar<bool>(); }, out);
    return !ended_;
  }
  void Save(WireWriter* out) override {
    out->Varint(ended_ ? 1 : 0);
    input_->Save(out);
  }
  void Restore(WireReader* in) override {
    ended_ = in->Varint(1) != 0;
    input_->Restore(in);
  }

 private:
  const ElementFunction& predicate_;  // the node's
  bool ended_ = false;                // the predicate did not hold
};

// A stage of `kind` whose iterator is an Iter.
template <typename Iter>
class PredicateNode : public DatasetNode {
 public:
  PredicateNode(const char* kind, NodePtr input, std::shared_ptr<const ElementFunction> predicate)
      : DatasetNode({input}, input->spec()), kind_(kind), predicate_(std::move(predicate)) {}
  std::string kind() const override { return kind_; }
  std::string Parameters() const override { return predicate_->ToString(); }
  int64_t Cardinality() const override { return input()->Cardinality() == 0 ? 0 : kUnknownCardinality; }
  void Write(DescriptionWriter* out) const override { predicate_->Write(out); }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override {
    return std::make_shared<PredicateNode>(kind_, inputs.at(0), predicate_);
  }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<Iter>(shared_from_this(), input()->MakeIterator(context), *predicate_);
  }

 private:
  const char* const kind_;
  const std::shared_ptr<const ElementFunction> predicate_;
};

template <typename Iter>
NodePtr MakePredicateNode(const char* kind, NodePtr input, std::shared_ptr<const ElementFunction> predicate) {
  const ElementSpec expected{{DType::kBool, Shape()}};
  if (!IsCompatible(predicate->output_spec(), expected)) {
    throw InvalidArgumentError(StrCat("[data] expected a predicate that yields ", ToString(expected), "; got ",
                                      ToString(predicate->output_spec()), " from ", predicate->ToString()));
  }
  return std::make_shared<PredicateNode<Iter>>(kind, std::move(input), std::move(predicate));
}

}  // namespace

NodePtr MakeFilter(NodePtr input, std::shared_ptr<const ElementFunction> predicate) {
  return MakePredicateNode<FilterIterator>("Filter", std::move(input), std::move(predicate));
}

NodePtr MakeTakeWhile(NodePtr input, std::shared_ptr<const ElementFunction> predicate) {
  return MakePredicateNode<TakeWhileIterator>("TakeWhile", std::move(input), std::move(predicate));
}

}  // namespace cohort::data
