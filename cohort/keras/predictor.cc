#include "cohort/keras/predictor.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/text/nearest_names.h"
#include "cohort/keras/files/model_config.h"
#include "cohort/keras/training/model_state.h"

namespace cohort::keras {

struct Predictor::Parts {
  std::shared_ptr<ModelState> state;  // of this predictor alone
  std::vector<Value> inputs, outputs;
  Callable predict;

  void Check(const std::vector<Tensor>& x) const;
};

namespace {

using Value = Predictor::Value;

std::string Described(const Value& value) { return StrCat("'", value.name, "' ", value.dtype, value.shape); }

std::vector<std::string> Names(const std::vector<Value>& values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (const Value& value : values) names.push_back(value.name);
  return names;
}

std::string DescribedAll(const std::vector<Value>& values) {
  std::vector<std::string> all;
  all.reserve(values.size());
  for (const Value& value : values) all.push_back(Described(value));
  return StrJoin(all, ", ");
}

std::string Got(const Tensor& tensor) {
  return tensor.defined() ? StrCat(tensor.dtype(), tensor.shape()) : std::string("an empty Tensor");
}

[[noreturn]] void FailInput(const std::string& model, const Value& input, const Tensor& got) {
  const char* advice = "";
  if (got.defined() && got.dtype() != input.dtype) {
    advice = "; convert it, the predictor does not";
  } else if (got.defined() && got.shape().rank() + 1 == input.shape.rank()) {
    advice = "; the first dimension is the batch, also of one example";
  }
  throw InvalidArgumentError(StrCat("[keras/predictor] expected ", input.dtype, input.shape, " for input '", input.name,
                                    "' of model '", model, "'; got ", Got(got), advice));
}

std::vector<Value> InputsOf(const LayerGraph& layers) {
  const std::vector<std::string> names = StepNames(layers);
  std::vector<Value> inputs;
  for (size_t i = 0; i < layers.inputs().size(); ++i) {
    inputs.push_back({names[i], layers.inputs()[i].dtype, layers.inputs()[i].shape});
  }
  return inputs;
}

// Outputs are float32 also in a model of mixed precision, so dtypes and shapes are those of the values in the graph.
std::vector<Value> OutputsOf(const LayerGraph& layers, const std::vector<Output>& values) {
  const std::vector<std::string> names = StepNames(layers);
  std::vector<Value> outputs;
  std::map<std::string, int> uses;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& layer = names[layers.output_values()[i].step];
    const int use = uses[layer]++;
    outputs.push_back({use == 0 ? layer : StrCat(layer, ":", use), values[i].dtype(), values[i].shape()});
  }
  return outputs;
}

std::shared_ptr<ModelState> CopyOf(const Model& model, const SessionConfig& session) {
  const std::vector<Tensor> weights = model.GetWeights();
  const ModelOptions options = {
      .name = model.name(), .dtype_policy = model.state().options().dtype_policy, .session = session};
  auto copy = std::make_shared<ModelState>(
      options, [layers = model.state().shared_layers()](const data::ElementSpec&) { return layers; });
  copy->engine().SetWeights(weights);
  return copy;
}

}  // namespace

void Predictor::Parts::Check(const std::vector<Tensor>& x) const {
  if (x.size() != inputs.size()) {
    throw InvalidArgumentError(StrCat("[keras/predictor] expected ", inputs.size(),
                                      " tensors for the inputs of model '", state->name(), "' (", DescribedAll(inputs),
                                      "); got ", x.size()));
  }
  for (size_t i = 0; i < x.size(); ++i) {
    if (!x[i].defined() || x[i].dtype() != inputs[i].dtype || !inputs[i].shape.IsCompatibleWith(x[i].shape())) {
      FailInput(state->name(), inputs[i], x[i]);
    }
    if (i > 0 && x[i].shape().dim(0) != x[0].shape().dim(0)) {
      throw InvalidArgumentError(StrCat("[keras/predictor] expected one batch size for all inputs of model '",
                                        state->name(), "'; got ", x[0].shape().dim(0), " examples for input '",
                                        inputs[0].name, "' and ", x[i].shape().dim(0), " for input '", inputs[i].name,
                                        "'"));
    }
  }
}

Predictor::Predictor(std::shared_ptr<ModelState> state)
    : parts_([&] {
        ModelEngine& engine = state->engine();
        return std::make_shared<const Parts>(Parts{state, InputsOf(engine.layers()),
                                                   OutputsOf(engine.layers(), engine.predictions()),
                                                   engine.PredictFunction()});
      }()) {}

Predictor::Predictor(const Model& model, const SessionConfig& session) : Predictor(CopyOf(model, session)) {}

Predictor Predictor::Load(const std::string& path, const PredictorOptions& options) {
  const Model model =
      LoadModel(path, {.compile = false, .custom_layers = options.custom_layers, .session = options.session});
  return Predictor(model.shared_state());
}

Tensor Predictor::Predict(const Tensor& x) const {
  if (parts_->outputs.size() != 1) {
    throw InvalidArgumentError(StrCat("[keras/predictor] expected a model with one output; model '", name(), "' has ",
                                      DescribedAll(parts_->outputs), ": call PredictAll"));
  }
  return std::move(PredictAll({x})[0]);
}

std::vector<Tensor> Predictor::PredictAll(const std::vector<Tensor>& x) const {
  parts_->Check(x);
  return parts_->predict(x);
}

std::map<std::string, Tensor> Predictor::PredictNamed(const std::vector<std::pair<std::string, Tensor>>& x) const {
  const std::vector<Value>& inputs = parts_->inputs;
  std::vector<Tensor> ordered(inputs.size());
  for (const auto& [name, tensor] : x) {
    const auto named = [&name = name](const Value& input) { return input.name == name; };
    const auto found = std::find_if(inputs.begin(), inputs.end(), named);
    if (found == inputs.end()) {
      throw InvalidArgumentError(StrCat("[keras/predictor] expected names of inputs of model '", parts_->state->name(),
                                        "' (", DescribedAll(inputs), "); got '", name, "'",
                                        DidYouMean(name, Names(inputs))));
    }
    Tensor& place = ordered[static_cast<size_t>(found - inputs.begin())];
    if (place.defined()) {
      throw InvalidArgumentError(StrCat("[keras/predictor] expected each input of model '", parts_->state->name(),
                                        "' once; got '", name, "' twice"));
    }
    if (!tensor.defined()) FailInput(parts_->state->name(), *found, tensor);
    place = tensor;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (ordered[i].defined()) continue;
    throw InvalidArgumentError(StrCat("[keras/predictor] expected a tensor for each input of model '",
                                      parts_->state->name(), "'; got none for ", Described(inputs[i])));
  }
  std::vector<Tensor> values = PredictAll(ordered);
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < values.size(); ++i) named[parts_->outputs[i].name] = std::move(values[i]);
  return named;
}

const std::string& Predictor::name() const { return parts_->state->name(); }
const std::vector<Value>& Predictor::inputs() const { return parts_->inputs; }
const std::vector<Value>& Predictor::outputs() const { return parts_->outputs; }
const Graph& Predictor::graph() const { return parts_->state->engine().graph(); }

}  // namespace cohort::keras
