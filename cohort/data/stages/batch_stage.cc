// Batch: consecutive elements stacked. PaddedBatch: the same, but each value is first padded to the shape that
// PaddedBatchOptions says. Both have the iterator BatchIterator; their nodes differ in BatchNode::Join. MakePaddedBatch
// replaces what the options leave open by what the input's spec knows, so that a PaddedBatchNode has a padded shape for
// each component.
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/stack.h"
#include "cohort/data/stages/stages.h"
#include "cohort/data/stages/unary_stage.h"

namespace cohort::data {
namespace {

class BatchNode : public DatasetNode {
 public:
  // `spec`: of the elements of one batch, before they are joined.
  BatchNode(NodePtr input, const ElementSpec& spec, int64_t batch_size, bool drop_remainder)
      : DatasetNode({std::move(input)}, BatchSpec(spec, drop_remainder ? batch_size : Shape::kUnknownDim)),
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
  bool drop_remainder() const { return drop_remainder_; }
  // Makes one batch of the elements, of which there is at least one.
  virtual Element Join(const std::vector<Element>& elements) const { return Stack(elements); }
  void Write(DescriptionWriter* out) const override {
    out->Int(batch_size_);
    out->Int(drop_remainder_ ? 1 : 0);
  }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override {
    return MakeBatch(inputs.at(0), batch_size_, drop_remainder_);
  }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override;

 private:
  const int64_t batch_size_;
  const bool drop_remainder_;
};

class BatchIterator : public UnaryIterator {
 public:
  BatchIterator(NodePtr node, StagePtr input, const BatchNode& batch)
      : UnaryIterator(std::move(node), std::move(input)), batch_(batch) {}
  bool Next(Element* out) override {
    elements_.clear();
    Element element;
    while (static_cast<int64_t>(elements_.size()) < batch_.batch_size() && input_->Next(&element)) {
      elements_.push_back(std::move(element));
    }
    if (elements_.empty()) return false;
    if (batch_.drop_remainder() && static_cast<int64_t>(elements_.size()) < batch_.batch_size()) return false;
    node_->Guard([&] { *out = batch_.Join(elements_); });
    elements_.clear();
    return true;
  }

 private:
  const BatchNode& batch_;  // the node
  std::vector<Element> elements_;
};

StagePtr BatchNode::MakeStage(const IteratorContext& context) const {
  return std::make_unique<BatchIterator>(shared_from_this(), input()->MakeIterator(context), *this);
}

ElementSpec SpecOf(const ElementSpec& input, const Padding& padding) {
  ElementSpec spec = input;
  for (size_t i = 0; i < spec.size(); ++i) spec[i].shape = padding.shapes[i];
  return spec;
}

class PaddedBatchNode : public BatchNode {
 public:
  PaddedBatchNode(const NodePtr& input, int64_t batch_size, bool drop_remainder, Padding padding)
      : BatchNode(input, SpecOf(input->spec(), padding), batch_size, drop_remainder), padding_(std::move(padding)) {}
  std::string kind() const override { return "PaddedBatch"; }
  std::string Parameters() const override {
    return StrCat(BatchNode::Parameters(), ", shapes=(", StrJoin(padding_.shapes, ", "), ")");
  }
  Element Join(const std::vector<Element>& elements) const override { return StackPadded(elements, padding_); }
  void Write(DescriptionWriter* out) const override {
    BatchNode::Write(out);
    out->Spec(SpecOf(input()->spec(), padding_));
    for (const Tensor& value : padding_.values) {
      out->Int(value.defined() ? 1 : 0);
      if (value.defined()) out->TensorReference(value);
    }
  }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override {
    return MakePaddedBatch(inputs.at(0), batch_size(), {padding_.shapes, padding_.values, drop_remainder()});
  }

 private:
  const Padding padding_;
};

// Returns the padded shape of component `i`. It has the dimensions of `spec` if `wanted` has -1 for them.
Shape PaddedShape(const TensorSpec& spec, size_t i, const Shape& wanted) {
  if (!wanted.has_rank()) {
    throw InvalidArgumentError(StrCat("[data] expected a padded shape of known rank for component ", i, " (",
                                      spec.dtype, spec.shape, ") of PaddedBatch; got none; give padded_shapes"));
  }
  if (!spec.shape.has_rank()) return wanted;
  Shape padded = wanted;
  bool fits = spec.shape.rank() == wanted.rank();
  for (int axis = 0; fits && axis < wanted.rank(); ++axis) {
    if (wanted.dim(axis) == Shape::kUnknownDim) padded.set_dim(axis, spec.shape.dim(axis));
    fits = padded.dim(axis) == Shape::kUnknownDim || padded.dim(axis) >= spec.shape.dim(axis);
  }
  if (fits) return padded;
  throw InvalidArgumentError(
      StrCat("[data] expected a padded shape into which component ", i, " (", spec.dtype, spec.shape,
             ") of PaddedBatch fits; got ", wanted,
             "; give as many dimensions, each of them as large or -1 for the longest of a batch"));
}

void CheckPaddingValue(const TensorSpec& spec, size_t i, const Tensor& value) {
  if (!value.defined() || (value.dtype() == spec.dtype && value.shape().IsScalar())) return;
  throw InvalidArgumentError(StrCat("[data] expected a scalar of ", spec.dtype, " as the padding value of component ",
                                    i, "; got ", value.dtype(), value.shape()));
}

void CheckCount(const char* what, size_t count, const ElementSpec& spec) {
  if (count == 0 || count == spec.size()) return;
  throw InvalidArgumentError(StrCat("[data] expected ", what, " for each component of ", ToString(spec), "; got ",
                                    count, " for ", spec.size(), " components; give none to have the default for all"));
}

}  // namespace

NodePtr MakeBatch(NodePtr input, int64_t batch_size, bool drop_remainder) {
  CheckParameter(batch_size >= 1, "a batch size of at least 1", batch_size);
  const ElementSpec spec = input->spec();
  return std::make_shared<BatchNode>(std::move(input), spec, batch_size, drop_remainder);
}

NodePtr MakePaddedBatch(NodePtr input, int64_t batch_size, const PaddedBatchOptions& options) {
  CheckParameter(batch_size >= 1, "a batch size of at least 1", batch_size);
  const ElementSpec& spec = input->spec();
  CheckCount("a padded shape", options.padded_shapes.size(), spec);
  CheckCount("a padding value", options.padding_values.size(), spec);
  Padding padding;
  for (size_t i = 0; i < spec.size(); ++i) {
    padding.shapes.push_back(
        PaddedShape(spec[i], i, options.padded_shapes.empty() ? spec[i].shape : options.padded_shapes[i]));
    padding.values.push_back(options.padding_values.empty() ? Tensor() : options.padding_values[i]);
    CheckPaddingValue(spec[i], i, padding.values.back());
  }
  return std::make_shared<PaddedBatchNode>(input, batch_size, options.drop_remainder, std::move(padding));
}

}  // namespace cohort::data
