// ModelEngine::MeasureSignal. It adds nodes that compute the mean squares of each layer's output, of its gradient, of
// its largest kernel and of the kernel's gradient (Probe). It runs them once on a batch and fills in the report. The
// other replicas take part without examples, because the step has collectives.
#include <cmath>
#include <limits>

#include "cohort/keras/training/model_engine.h"
#include "cohort/ops/array.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/unary.h"

namespace cohort::keras {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Mean square, float32 scalar.
Output MeanSquare(Output value) {
  if (value.dtype() != DType::kFloat32) value = ops::Cast(value, DType::kFloat32);
  return ops::Mean(ops::Square(value));
}

// Numbers that are fetched in one run. At() is for afterwards.
class Probe {
 public:
  // Returns the index of the mean square of `value`, or -1 if there is no value.
  int Add(Output value) {
    if (!value.valid()) return -1;
    fetches_.push_back(MeanSquare(value));
    return static_cast<int>(fetches_.size()) - 1;
  }
  int Add(const Gradient& gradient) { return Add(gradient.exists() ? gradient.values : Output()); }
  int AddScalar(Output value) {
    fetches_.push_back(value);
    return static_cast<int>(fetches_.size()) - 1;
  }
  void Run(Session& session, const FeedList& feeds) { results_ = session.Run(feeds, fetches_); }
  double Scalar(int index) const { return results_[static_cast<size_t>(index)].scalar<float>(); }
  double Rms(int index) const {
    if (index < 0) return kNone;
    const double square = Scalar(index);
    return std::isfinite(square) ? std::sqrt(square) : std::numeric_limits<double>::infinity();
  }

 private:
  std::vector<Output> fetches_;
  std::vector<Tensor> results_;
};

// The largest kernel of a layer speaks for it.
const ModelWeight* KernelOf(const std::vector<ModelWeight>& weights, const std::string& path) {
  const ModelWeight* found = nullptr;
  for (const size_t i : WeightsBelow(weights, path)) {
    const ModelWeight& weight = weights[i];
    if (!weight.trainable || weight.spec.shape.rank() < 2) continue;
    if (found == nullptr || weight.spec.shape.num_elements() > found->spec.shape.num_elements()) found = &weight;
  }
  return found;
}

bool HasKerasFans(const std::vector<ModelWeight>& weights, const LayerSignal& layer) {
  if (layer.class_name != "DepthwiseConv2D" && layer.class_name != "SeparableConv2D") return false;
  for (const ModelWeight& weight : weights) {
    const bool depthwise = weight.spec.name == "depthwise_kernel" || weight.spec.name == "kernel";
    if (weight.layer == layer.layer && depthwise) return !weight.spec.fans.has_value();
  }
  return false;
}

// Returns true if the gradient of the value is measured. Fed values have none. The answer must be equal at all
// replicas, because computing a gradient may run a collective.
bool IsProbed(const Output& value) { return IsFloating(value.dtype()) && value.node->op_name() != "Placeholder"; }

// Adds the values of another replica for which the measured replica may wait.
void AddOtherReplica(const Output& loss, const std::vector<LayerInstance::LayerValues>& layers,
                     const std::vector<ModelWeight>& weights, Probe* probe) {
  std::vector<Output> xs;
  for (const LayerInstance::LayerValues& layer : layers) {
    if (layer.is_whole() && IsProbed(layer.outputs.at(0))) xs.push_back(layer.outputs[0]);
  }
  for (const ModelWeight& weight : weights) {
    if (weight.trainable) xs.push_back(weight.variable.handle());
  }
  probe->AddScalar(loss);
  for (const Gradient& gradient : Gradients({loss}, xs)) {
    if (gradient.exists()) probe->AddScalar(ops::Sum(gradient.values));
  }
}

struct Places {
  int activation = -1;
  int gradient = -1;
  int weight = -1;
  int weight_gradient = -1;
};

// Sets the measurements of one layer. `share` is this process's share of the batch of all processes.
void SetSignal(const Probe& probe, const Places& places, double share, LayerSignal* signal) {
  signal->activation = probe.Rms(places.activation);
  signal->gradient = probe.Rms(places.gradient) / share;
  signal->weight = probe.Rms(places.weight);
  signal->weight_gradient = probe.Rms(places.weight_gradient) / share;
}

}  // namespace

SignalReport ModelEngine::MeasureSignal(const StepFunction& step, const std::vector<Tensor>& batch) {
  const std::vector<LayerGraph::LayerStep>& steps = layers_->steps();
  const StepFunction::Replica& first = step.replicas_[0];
  std::vector<const LayerInstance::LayerValues*> layers;
  for (const LayerInstance::LayerValues& value : first.layer_values) {
    if (value.is_whole()) layers.push_back(&value);
  }
  SignalReport report;
  std::vector<Places> places(steps.size());
  std::vector<const ModelWeight*> kernels(steps.size(), nullptr);
  std::vector<Output> xs;                       // what gradients are taken of
  std::vector<std::pair<size_t, bool>> owners;  // of each: the layer, and whether it is the kernel
  Probe probe;
  for (size_t i = 0; i < layers.size() && i < steps.size(); ++i) {
    const Output value = layers[i]->outputs.at(0);
    LayerSignal signal;
    signal.layer = layers[i]->path;
    signal.class_name = steps[i].layer->class_name();
    signal.shape = value.shape();
    signal.keras_fans = HasKerasFans(weights(), signal);
    report.layers.push_back(signal);
    if (IsFloating(value.dtype())) places[i].activation = probe.Add(value);
    if (IsProbed(value)) {
      xs.push_back(value);
      owners.emplace_back(i, false);
    }
    kernels[i] = KernelOf(weights(), signal.layer);
    if (kernels[i] != nullptr) {
      places[i].weight = probe.Add(kernels[i]->variable.value());
      xs.push_back(kernels[i]->variable.handle());
      owners.emplace_back(i, true);
    }
  }
  const std::vector<Gradient> gradients = Gradients({first.loss}, xs);
  for (size_t g = 0; g < gradients.size(); ++g) {
    Places& place = places[owners[g].first];
    (owners[g].second ? place.weight_gradient : place.gradient) = probe.Add(gradients[g]);
  }
  const int loss = probe.AddScalar(first.loss);
  // The other replicas of the process take part, with no examples: their collectives are the first one's too.
  for (size_t r = 1; r < step.replicas_.size(); ++r) {
    const StepFunction::Replica& other = step.replicas_[r];
    AddOtherReplica(other.loss, other.layer_values, store(r).weights(), &probe);
  }
  FeedList feeds;
  for (size_t r = 0; r < step.replicas_.size(); ++r) {
    const std::vector<Output>& own = step.replicas_[r].feeds;
    for (size_t i = 0; i < own.size(); ++i) feeds.emplace_back(own[i], r == 0 ? batch[i] : batch[i].Slice(0, 0));
  }
  probe.Run(*session_, feeds);
  // Each process has a batch of its own, of which the losses of all are shares.
  const double share = 1.0 / strategy_->num_workers();
  report.loss = probe.Scalar(loss) / share;
  for (size_t i = 0; i < report.layers.size(); ++i) SetSignal(probe, places[i], share, &report.layers[i]);
  return report;
}

}  // namespace cohort::keras
