#include "cohort/keras/layers/layer.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/device_name.h"
#include "cohort/keras/layers/layer_instance.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/initializers.h"

namespace cohort::keras {
namespace {

constexpr const char* kServerJob = "ps";

}  // namespace

Layer::Layer(std::string class_name, std::string name, bool trainable)
    : class_name_(std::move(class_name)), name_(std::move(name)), trainable_(trainable) {
  if (name_.find('/') != std::string::npos) {
    throw InvalidArgumentError(
        StrCat("[keras/layer] expected a name without '/' for a ", class_name_, " layer; got '", name_, "'"));
  }
}

ConfigValue::Object Layer::Config() const {
  if (made_without_arguments_) return {};
  throw UnimplementedError(StrCat("[keras/layer] expected layers that say how they are made; ", class_name_,
                                  " does not: override Config() to save models that have it, or make it without "
                                  "arguments: MakeLayer<",
                                  class_name_, ">()"));
}

std::vector<Output> Layer::Call(CallContext& ctx, const std::vector<Output>& inputs) const {
  if (inputs.size() == 1) return {Call(ctx, inputs[0])};
  throw InvalidArgumentError(
      StrCat("[keras/layer] expected one input for a ", class_name_, " layer; got ", inputs.size()));
}

Output Layer::Call(CallContext&, Output) const {
  throw UnimplementedError(
      StrCat("[keras/layer] expected layers that override Call(CallContext&, Output) or Call(CallContext&, const "
             "std::vector<Output>&); ",
             class_name_, " does not"));
}

Graph& CallContext::graph() const { return instance_.graph(); }
bool CallContext::training() const { return instance_.training(); }

void CallContext::Declare(const WeightSpec& spec) {
  const ModelWeight& weight = instance_.weights_.Get(path_, spec, trainable_);
  for (const auto& [name, variable] : weights_) {
    if (name == spec.name) return;
  }
  weights_.emplace_back(spec.name, weight.variable);
}

Output CallContext::weight(const WeightSpec& spec) {
  Declare(spec);
  return weight(spec.name);
}

ops::Variable CallContext::variable(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& [weight, variable] : weights_) {
    if (weight == name) return variable;
    names.push_back(weight);
  }
  throw InvalidArgumentError(StrCat("[keras/layer] expected a weight that layer '", path_, "' declares (",
                                    names.empty() ? "it declares none" : StrJoin(names, ", "), "); got '", name, "'"));
}

Output CallContext::Computed(Output value) const { return instance_.Computed(value); }

Output CallContext::mask(size_t i) const {
  knows_masks_ = true;
  return i < inputs_.size() ? instance_.MaskOf(inputs_[i]) : Output();
}

bool CallContext::IsInput(const Output& value) const {
  return std::find(inputs_.begin(), inputs_.end(), value) != inputs_.end();
}

Output CallContext::WithMask(Output value, Output mask) {
  knows_masks_ = true;
  if (!mask.valid()) return value;
  const Shape& whole = value.shape();
  const bool fits =
      mask.dtype() == DType::kBool && &mask.graph() == &graph() &&
      (!whole.has_rank() || !mask.shape().has_rank() ||
       (mask.shape().rank() <= whole.rank() && mask.shape().IsCompatibleWith(whole.Sub(0, mask.shape().rank()))));
  if (!fits) {
    throw InvalidArgumentError(StrCat("[keras/layer] expected in layer '", path_, "' a bool mask of the model's graph ",
                                      "with the first dimensions of the value ", whole, "; got ", mask.dtype(),
                                      mask.shape()));
  }
  const Output carried = instance_.MaskOf(value);
  if (carried == mask && !IsInput(value)) return value;
  if (carried.valid() || IsInput(value)) value = ops::Identity(value);
  instance_.SetMaskOf(value, mask);
  return value;
}

std::vector<Output> CallContext::Call(const Layer& layer, const std::vector<Output>& inputs) {
  knows_masks_ = true;
  const std::string name = instance_.NameOf(layer, path_);
  return instance_.Add(layer, path_.empty() ? name : path_ + "/" + name, inputs);
}

Output CallContext::Rows(const std::string& name, Output indices) const {
  const ops::Variable weight = variable(name);
  const ops::Variable part = weight.parts().empty() ? weight : weight.parts()[0];
  const bool is_remote = DeviceName::Parse(part.handle().node->device()).job == kServerJob;
  return Computed(is_remote ? weight.GatherUnique(indices) : weight.Gather(indices));
}

Output CallContext::value(const std::string& name) const {
  const WeightUpdates* updates = instance_.options_.updates;
  return updates == nullptr ? variable(name).value() : updates->Current(variable(name));
}

void CallContext::AddUpdate(const std::string& weight, Output value) {
  const ops::Variable updated = variable(weight);
  if (!value.valid() || &value.graph() != &graph() || value.dtype() != updated.dtype() ||
      !value.shape().IsCompatibleWith(updated.shape())) {
    throw InvalidArgumentError(StrCat("[keras/layer] expected in AddUpdate of weight '", weight, "' of layer '", path_,
                                      "' a value ", updated.dtype(), updated.shape(), " of the model's graph; got ",
                                      !value.valid()
                                          ? std::string("an empty Output")
                                          : StrCat(value.dtype(), value.shape(), " of ", value.node->Describe(),
                                                   &value.graph() == &graph() ? "" : ", which is of another graph")));
  }
  if (training() && instance_.options_.updates != nullptr) instance_.options_.updates->Set(updated, value);
}

void CallContext::AddLoss(Output loss) {
  if (!loss.shape().IsCompatibleWith(Shape())) {
    throw InvalidArgumentError(
        StrCat("[keras/layer] expected a scalar in AddLoss of layer '", path_, "'; got shape ", loss.shape()));
  }
  instance_.losses_.push_back(loss);
}

Output CallContext::StepSeed(int64_t seed) const {
  const Output step = instance_.options_.step;
  if (!step.valid()) {
    throw FailedPreconditionError(
        StrCat("[keras/layer] expected StepSeed in a training step; layer '", path_, "' asked for it elsewhere"));
  }
  const auto same = [this](const LayerInstance::LayerValues& values) { return values.path == path_; };
  const auto calls = std::count_if(instance_.values_.begin(), instance_.values_.end(), same);
  const distribute::ReplicaContext* replica = instance_.replica();
  const int id = replica == nullptr ? 0 : replica->replica_id_in_sync_group();
  const std::string place = StrCat(path_, "#", calls, id == 0 ? "" : StrCat("@", id));
  const int32_t own = ops::InitialValueSeed(graph(), place, seed).data<int32_t>()[0];
  // [own, step]
  const Output count = ops::Mul(ops::Cast(step, DType::kInt32), ops::Const(graph(), std::vector<int32_t>{0, 1}));
  return ops::Add(count, ops::Const(graph(), std::vector<int32_t>{own, 0}));
}

Output CallContext::SumOverReplicas(Output value) const {
  distribute::ReplicaContext* replica = instance_.replica();
  return replica == nullptr ? value : replica->AllReduce(distribute::Reduction::kSum, value);
}

namespace {

// Throws unless `layer`, which was made for examples of `shape`, gets such examples.
void CheckInputShape(const Layer& layer, const Shape& shape, const std::vector<LayerInput>& inputs) {
  if (inputs.size() == 1 && inputs[0].shape.rank() >= 1 &&
      shape.IsCompatibleWith(inputs[0].shape.Sub(1, inputs[0].shape.rank()))) {
    return;
  }
  std::vector<Shape> got;
  for (const LayerInput& input : inputs) got.push_back(input.shape);
  throw InvalidArgumentError(StrCat("[keras/layer] expected one input of examples of the input_shape ", shape,
                                    " for a ", layer.class_name(), "; got ", StrJoin(got, ", ")));
}

}  // namespace

std::vector<LayerTensor> LayerRef::Apply(const std::vector<LayerTensor>& inputs) const {
  std::vector<LayerInput> specs;
  specs.reserve(inputs.size());
  for (const LayerTensor& input : inputs) specs.push_back({input.dtype(), input.shape()});
  if (input_shape_) CheckInputShape(*layer_, *input_shape_, specs);
  const auto call = std::make_shared<const LayerCall>(LayerCall{*this, inputs});
  std::vector<LayerTensor> results;
  for (const LayerInput& spec : InferOutputs(*layer_, specs)) {
    results.emplace_back(call, static_cast<int>(results.size()), spec);
  }
  return results;
}

std::vector<LayerInput> InferOutputs(const Layer& layer, const std::vector<LayerInput>& inputs) {
  Graph scratch;
  WeightStore weights(scratch);
  LayerInstance instance(weights, LayerInstance::Options{});
  std::vector<Output> values;
  values.reserve(inputs.size());
  for (const LayerInput& input : inputs) values.push_back(ops::Placeholder(scratch, input.dtype, input.shape));
  std::vector<LayerInput> results;
  for (const Output& output : instance.Add(layer, instance.NameOf(layer, ""), values)) {
    results.push_back({output.dtype(), output.shape()});
  }
  return results;
}

}  // namespace cohort::keras
