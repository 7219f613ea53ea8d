// Filter: the elements for which a predicate holds.
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
      if (node_->Guard([&] { return predicate_.Call(*out).at(0).scalar<bool>(); })) return true;
    }
    return false;
  }

 private:
  const ElementFunction& predicate_;  // the node's
};

class FilterNode : public DatasetNode {
 public:
  FilterNode(NodePtr input, std::shared_ptr<const ElementFunction> predicate)
      : DatasetNode({input}, input->spec()), predicate_(std::move(predicate)) {}
  std::string kind() const override { return "Filter"; }
  std::string Parameters() const override { return predicate_->ToString(); }
  int64_t Cardinality() const override { return input()->Cardinality() == 0 ? 0 : kUnknownCardinality; }
  void Write(DescriptionWriter* out) const override { predicate_->Write(out); }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeFilter(inputs.at(0), predicate_); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    return std::make_unique<FilterIterator>(shared_from_this(), input()->MakeIterator(context), *predicate_);
  }

 private:
  const std::shared_ptr<const ElementFunction> predicate_;
};

}  // namespace

NodePtr MakeFilter(NodePtr input, std::shared_ptr<const ElementFunction> predicate) {
  const ElementSpec expected{{DType::kBool, Shape()}};
  if (!IsCompatible(predicate->output_spec(), expected)) {
    throw InvalidArgumentError(StrCat("[data] expected a predicate that yields ", ToString(expected), "; got ",
                                      ToString(predicate->output_spec()), " from ", predicate->ToString()));
  }
  return std::make_shared<FilterNode>(std::move(input), std::move(predicate));
}

}  // namespace cohort::data
