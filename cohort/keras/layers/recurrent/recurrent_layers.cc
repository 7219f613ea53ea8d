// LSTM, GRU and SimpleRNN. A layer contains a cell, as in Keras, so that its weights are called as in Keras. The cell
// has the weights and adds all steps: it multiplies the inputs of all steps by the kernel, takes the product apart into
// steps, and adds the nodes of one step after the other. The three kinds of cells differ in the function Step. The
// table of makers is at the end.
#include "cohort/keras/layers/recurrent/recurrent_layers.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/layers/layer_config.h"
#include "cohort/keras/layers/layer_inputs.h"
#include "cohort/keras/layers/recurrent/recurrent_layer.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/join.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

using Order = RecurrentLayer::Order;

// Each step is a dozen nodes of the graph.
constexpr int64_t kMostSteps = 16384;

// The options that all three layers have.
struct CellOptions {
  int64_t units;
  ActivationFunction activation;
  bool use_bias;
  Initializer kernel_initializer, recurrent_initializer, bias_initializer;
  Regularizer kernel_regularizer, recurrent_regularizer, bias_regularizer;
  double dropout, recurrent_dropout;
  int64_t seed;
  bool return_sequences, return_state, go_backwards, zero_output_for_mask;
  Order order;
};

template <typename Options>
CellOptions CellOptionsOf(int64_t units, const Options& options, Order order) {
  return {units,
          options.activation,
          options.use_bias,
          options.kernel_initializer,
          options.recurrent_initializer,
          options.bias_initializer,
          options.kernel_regularizer,
          options.recurrent_regularizer,
          options.bias_regularizer,
          options.dropout,
          options.recurrent_dropout,
          options.seed,
          options.return_sequences,
          options.return_state,
          options.go_backwards,
          options.zero_output_for_mask,
          order};
}

// The products of h with the recurrent kernel [units, gates * units], and the bias that is added to them. A cell makes
// it for one call.
class Recurrence {
 public:
  // `masks` has for each gate what h is multiplied by before, or is empty. `bias` may be empty.
  Recurrence(Output kernel, int64_t units, std::vector<Output> masks, Output bias)
      : kernel_(kernel), units_(units), masks_(std::move(masks)), bias_(bias) {}

  const Output& bias() const { return bias_; }
  // Returns h times the columns of gates first, ..., first + count - 1.
  Output Product(Output h, int64_t first, int64_t count) {
    if (masks_.empty()) return ops::MatMul(h, Columns(first, count));
    std::vector<Output> products;
    for (int64_t gate = first; gate < first + count; ++gate) {
      products.push_back(ops::MatMul(ops::Mul(h, masks_[static_cast<size_t>(gate)]), Columns(gate, 1)));
    }
    return ops::Concat(products, 1);
  }

 private:
  Output Columns(int64_t first, int64_t count) {
    if (count * units_ == kernel_.shape().dim(1)) return kernel_;
    Output& columns = columns_[{first, count}];
    if (!columns.valid()) columns = ops::Slice(kernel_, {0, first * units_}, {-1, count * units_});
    return columns;
  }

  const Output kernel_;
  const int64_t units_;
  const std::vector<Output> masks_;
  const Output bias_;
  std::map<std::pair<int64_t, int64_t>, Output> columns_;
};

class CellLayer : public Layer {
 public:
  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    const int64_t width = gates_ * options_.units;
    std::vector<WeightSpec> weights = {{.name = "kernel",
                                        .shape = Shape{KnownDim(inputs.at(0), -1), width},
                                        .initializer = options_.kernel_initializer,
                                        .regularizer = options_.kernel_regularizer},
                                       {.name = "recurrent_kernel",
                                        .shape = Shape{options_.units, width},
                                        .initializer = options_.recurrent_initializer,
                                        .regularizer = options_.recurrent_regularizer}};
    if (options_.use_bias) {
      weights.push_back({.name = "bias",
                         .shape = two_biases_ ? Shape{2, width} : Shape{width},
                         .initializer = BiasInitializer(),
                         .regularizer = options_.bias_regularizer});
    }
    return weights;
  }

  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    Output bias, recurrent_bias;
    if (options_.use_bias) bias = ctx.weight("bias");
    if (options_.use_bias && two_biases_) {
      const std::vector<Output> both = ops::Unpack(bias, 2);
      bias = both[0];
      recurrent_bias = both[1];
    }
    std::vector<Output> steps = Projected(ctx, inputs[0], bias);
    if (options_.go_backwards) std::reverse(steps.begin(), steps.end());
    std::vector<Output> states(inputs.begin() + 1, inputs.end());
    std::vector<Output> counts;  // for each step the mask [batch, 1], if there is a mask
    if (states.empty() && ctx.mask(0).valid()) counts = StepMasks(ctx.mask(0), steps.size());
    // A sequence of one step begins with zeros, so that the recurrent kernel has a gradient there, too.
    if (states.empty() && steps.size() == 1) states = Zeros(steps[0]);
    Recurrence recurrence(ctx.weight("recurrent_kernel"), options_.units, RecurrentMasks(ctx, steps[0]),
                          recurrent_bias);
    std::vector<Output> sequence;
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::vector<Output> before = states;
      states = Step(steps[i], states, recurrence);
      if (!counts.empty()) Keep(counts[i], before.empty() ? Zeros(steps[0]) : before, states);
      const bool zeros = options_.zero_output_for_mask && !counts.empty();
      sequence.push_back(zeros ? ops::SelectV2(counts[i], states[0], 0) : states[0]);
    }
    std::vector<Output> results = {sequence.back()};
    if (options_.return_sequences) results[0] = ctx.WithMask(ops::Pack(Ordered(sequence), 1), ctx.mask(0));
    if (options_.return_state) results.insert(results.end(), states.begin(), states.end());
    return results;
  }

 protected:
  CellLayer(const char* class_name, const char* name, int64_t gates, size_t states, bool two_biases,
            CellOptions options)
      : Layer(class_name, name),
        options_(std::move(options)),
        gates_(gates),
        num_states_(states),
        two_biases_(two_biases) {
    if (options_.units <= 0) {
      throw InvalidArgumentError(StrCat("[keras/recurrent] expected units > 0; got ", options_.units));
    }
    for (const double rate : {options_.dropout, options_.recurrent_dropout}) {
      if (rate >= 0 && rate < 1) continue;
      throw InvalidArgumentError(StrCat("[keras/recurrent] expected a rate in [0, 1); got ", rate));
    }
  }

  virtual Initializer BiasInitializer() const { return options_.bias_initializer; }
  // Returns the states after a step; the first of them is the output. `x` [batch, gates * units] is the step's input
  // times the kernel, plus the bias. If `states` is empty, all states are zeros.
  virtual std::vector<Output> Step(Output x, const std::vector<Output>& states, Recurrence& recurrence) const = 0;

  const CellOptions options_;

 private:
  // Different for each mask of the layer. The seed may be any number.
  int64_t SeedOf(int64_t number) const {
    return static_cast<int64_t>(static_cast<uint64_t>(options_.seed) * 2 * static_cast<uint64_t>(gates_) +
                                static_cast<uint64_t>(number));
  }

  // Returns what `rate` leaves of ones like `like`.
  Output Mask(CallContext& ctx, Output like, double rate, int64_t number) const {
    return ops::StatelessDropout(ops::OnesLike(like), rate, ctx.StepSeed(SeedOf(number)));
  }

  std::vector<Output> RecurrentMasks(CallContext& ctx, Output step) const {
    std::vector<Output> masks;
    if (!ctx.training() || options_.recurrent_dropout == 0) return masks;
    const Output like = ops::Slice(step, {0, 0}, {-1, options_.units});
    for (int64_t i = 0; i < gates_; ++i) masks.push_back(Mask(ctx, like, options_.recurrent_dropout, gates_ + i));
    return masks;
  }

  // Returns states of zeros.
  std::vector<Output> Zeros(Output step) const {
    return std::vector<Output>(num_states_, ops::ZerosLike(ops::Slice(step, {0, 0}, {-1, options_.units})));
  }

  // Returns the mask of each step, [batch, 1], in the order in which the steps are read.
  std::vector<Output> StepMasks(Output mask, size_t steps) const {
    if (mask.shape().rank() != 2) {
      throw InvalidArgumentError(StrCat("[keras/recurrent] expected a mask [batch, steps]; got shape ", mask.shape()));
    }
    std::vector<Output> masks = ops::Unpack(ops::ExpandDims(mask, -1), static_cast<int>(steps), 1);
    if (options_.go_backwards) std::reverse(masks.begin(), masks.end());
    return masks;
  }

  // Sets the states back to those before the step for the examples whose step does not count.
  static void Keep(Output counts, const std::vector<Output>& before, std::vector<Output>& states) {
    for (size_t i = 0; i < states.size(); ++i) states[i] = ops::SelectV2(counts, states[i], before[i]);
  }

  // Returns the outputs, which are in the order in which the steps were read, in the order of the result.
  std::vector<Output> Ordered(std::vector<Output> sequence) const {
    if (options_.go_backwards && options_.order == Order::kAsGiven) std::reverse(sequence.begin(), sequence.end());
    return sequence;
  }

  // Returns x kernel + bias for each step.
  std::vector<Output> Projected(CallContext& ctx, Output x, Output bias) const {
    const int64_t steps = x.shape().dim(1), in = x.shape().dim(2), width = gates_ * options_.units;
    const Output kernel = ctx.weight("kernel");
    Output all;
    if (ctx.training() && options_.dropout > 0) {
      const Output like = ops::Slice(x, {0, 0, 0}, {-1, 1, -1});
      // As in Keras, each gate has a mask of its own if h has masks, too.
      const int64_t masks = options_.recurrent_dropout > 0 ? gates_ : 1;
      const std::vector<Output> kernels =
          masks == 1 ? std::vector<Output>{kernel} : ops::Split(kernel, 1, static_cast<int>(masks));
      std::vector<Output> products;
      for (int64_t i = 0; i < masks; ++i) {
        const Output kept = ops::Mul(x, Mask(ctx, like, options_.dropout, i));
        products.push_back(ops::MatMul(ops::Reshape(kept, {-1, in}), kernels[static_cast<size_t>(i)]));
      }
      all = ops::Concat(products, 1);
    } else {
      all = ops::MatMul(ops::Reshape(x, {-1, in}), kernel);
    }
    if (bias.valid()) all = ops::BiasAdd(all, bias);
    return ops::Unpack(ops::Reshape(all, {-1, steps, width}), static_cast<int>(steps), 1);
  }

  const int64_t gates_;
  const size_t num_states_;
  const bool two_biases_;  // one for x kernel, one for h recurrent_kernel
};

class LSTMCell final : public CellLayer {
 public:
  LSTMCell(const LSTMOptions& options, const CellOptions& cell)
      : CellLayer("LSTMCell", "lstm_cell", 4, 2, false, cell),
        recurrent_activation_(options.recurrent_activation),
        unit_forget_bias_(options.unit_forget_bias) {}

 private:
  Initializer BiasInitializer() const override {
    if (!unit_forget_bias_) return options_.bias_initializer;
    const auto with_ones = [units = options_.units,
                            bias = options_.bias_initializer](const ops::InitializerRequest& request) {
      const auto part = [&request](const Initializer& initializer, int64_t size) {
        ops::InitializerRequest of_part = request;
        of_part.shape = Shape{size};
        return initializer.function()(of_part);
      };
      return ops::Concat({part(bias, units), part("ones", units), part(bias, 2 * units)}, 0);
    };
    return {"unit_forget_bias", with_ones};
  }

  std::vector<Output> Step(Output x, const std::vector<Output>& states, Recurrence& recurrence) const override {
    if (!states.empty()) x = ops::Add(x, recurrence.Product(states[0], 0, 4));
    const std::vector<Output> gates = ops::Split(x, 1, 4);
    Output c = ops::Mul(recurrent_activation_(gates[0]), options_.activation(gates[2]));
    if (!states.empty()) c = ops::Add(ops::Mul(recurrent_activation_(gates[1]), states[1]), c);
    return {ops::Mul(recurrent_activation_(gates[3]), options_.activation(c)), c};
  }

  const ActivationFunction recurrent_activation_;
  const bool unit_forget_bias_;
};

class GRUCell final : public CellLayer {
 public:
  GRUCell(const GRUOptions& options, const CellOptions& cell)
      : CellLayer("GRUCell", "gru_cell", 3, 1, options.reset_after, cell),
        recurrent_activation_(options.recurrent_activation),
        reset_after_(options.reset_after) {}

 private:
  std::vector<Output> Step(Output x, const std::vector<Output>& states, Recurrence& recurrence) const override {
    std::vector<Output> gates = ops::Split(x, 1, 3);
    Output candidate = gates[2];
    if (reset_after_) {
      std::vector<Output> inner = InnerGates(states, recurrence);
      for (size_t i = 0; i < 2 && !inner.empty(); ++i) gates[i] = ops::Add(gates[i], inner[i]);
      if (!inner.empty()) candidate = ops::Add(candidate, ops::Mul(recurrent_activation_(gates[1]), inner[2]));
    } else if (!states.empty()) {
      const std::vector<Output> inner = ops::Split(recurrence.Product(states[0], 0, 2), 1, 2);
      for (size_t i = 0; i < 2; ++i) gates[i] = ops::Add(gates[i], inner[i]);
      const Output reset = ops::Mul(recurrent_activation_(gates[1]), states[0]);
      candidate = ops::Add(candidate, recurrence.Product(reset, 2, 1));
    }
    const Output update = recurrent_activation_(gates[0]);
    candidate = options_.activation(candidate);
    // update * h + (1 - update) * candidate
    if (states.empty()) return {ops::Sub(candidate, ops::Mul(update, candidate))};
    return {ops::Add(candidate, ops::Mul(update, ops::Sub(states[0], candidate)))};
  }

  // Returns h recurrent_kernel plus its bias, gate by gate. The result is empty if it would be zeros.
  static std::vector<Output> InnerGates(const std::vector<Output>& states, Recurrence& recurrence) {
    if (states.empty()) return recurrence.bias().valid() ? ops::Split(recurrence.bias(), 0, 3) : std::vector<Output>();
    const Output product = recurrence.Product(states[0], 0, 3);
    return ops::Split(recurrence.bias().valid() ? ops::BiasAdd(product, recurrence.bias()) : product, 1, 3);
  }

  const ActivationFunction recurrent_activation_;
  const bool reset_after_;
};

class SimpleRNNCell final : public CellLayer {
 public:
  explicit SimpleRNNCell(const CellOptions& cell) : CellLayer("SimpleRNNCell", "simple_rnn_cell", 1, 1, false, cell) {}

 private:
  std::vector<Output> Step(Output x, const std::vector<Output>& states, Recurrence& recurrence) const override {
    if (!states.empty()) x = ops::Add(x, recurrence.Product(states[0], 0, 1));
    return {options_.activation(x)};
  }
};

// What distinguishes the classes: the name in files, the number of states, and the cell.
template <typename Options>
struct Kind;
template <>
struct Kind<LSTMOptions> {
  static constexpr char kName[] = "LSTM";
  static constexpr size_t kStates = 2;
  static std::shared_ptr<const Layer> Cell(const LSTMOptions& options, const CellOptions& cell) {
    return std::make_shared<const LSTMCell>(options, cell);
  }
};
template <>
struct Kind<GRUOptions> {
  static constexpr char kName[] = "GRU";
  static constexpr size_t kStates = 1;
  static std::shared_ptr<const Layer> Cell(const GRUOptions& options, const CellOptions& cell) {
    return std::make_shared<const GRUCell>(options, cell);
  }
};
template <>
struct Kind<SimpleRNNOptions> {
  static constexpr char kName[] = "SimpleRNN";
  static constexpr size_t kStates = 1;
  static std::shared_ptr<const Layer> Cell(const SimpleRNNOptions&, const CellOptions& cell) {
    return std::make_shared<const SimpleRNNCell>(cell);
  }
};

template <typename Options>
class RecurrentLayerOf final : public RecurrentLayer {
 public:
  RecurrentLayerOf(int64_t units, const Options& options, Order order = Order::kAsRead)
      : RecurrentLayer(Kind<Options>::kName, options.name, options.trainable),
        units_(units),
        options_(options),
        cell_(Kind<Options>::Cell(options, CellOptionsOf(units, options, order))) {
    cell_->SetTrainable(options.trainable);
  }

  std::vector<Part> Parts() const override { return {{cell_, cell_->name(), "cell", ""}}; }
  bool return_sequences() const override { return options_.return_sequences; }
  bool return_state() const override { return options_.return_state; }
  bool go_backwards() const override { return options_.go_backwards; }
  size_t num_states() const override { return Kind<Options>::kStates; }
  LayerRef Copy(const std::string& name, bool go_backwards, Order order) const override {
    Options options = options_;
    options.name = name;
    options.trainable = trainable();
    options.go_backwards = go_backwards;
    options.zero_output_for_mask = options.return_sequences;  // as in Keras
    return MakeLayer<RecurrentLayerOf>(units_, options, order);
  }

  std::vector<WeightSpec> Build(const std::vector<LayerInput>& inputs) const override {
    if (inputs.size() != 1 && inputs.size() != 1 + num_states()) {
      throw InvalidArgumentError(StrCat("[keras/recurrent] expected a sequence, or a sequence and ", num_states(),
                                        num_states() == 1 ? " initial state" : " initial states", "; got ",
                                        inputs.size(), " inputs"));
    }
    CheckInputRank(inputs[0], 3, "[batch, steps, features]");
    KnownDim(inputs[0], 2);
    const int64_t steps = KnownDim(inputs[0], 1);
    if (steps < 1 || steps > kMostSteps) {
      throw InvalidArgumentError(
          StrCat("[keras/recurrent] expected 1 to ", kMostSteps, " steps; got shape ", inputs[0].shape));
    }
    for (size_t i = 1; i < inputs.size(); ++i) {
      if (inputs[i].shape.rank() == 2 && inputs[i].shape.dim(1) == units_) continue;
      throw InvalidArgumentError(
          StrCat("[keras/recurrent] expected an initial state [batch, ", units_, "]; got shape ", inputs[i].shape));
    }
    return {};
  }
  std::vector<Output> Call(CallContext& ctx, const std::vector<Output>& inputs) const override {
    return ctx.Call(*cell_, inputs);
  }

  ConfigValue::Object Config() const override {
    ConfigValue::Object config = {{"return_sequences", options_.return_sequences},
                                  {"return_state", options_.return_state},
                                  {"go_backwards", options_.go_backwards},
                                  {"stateful", false},
                                  {"unroll", false},
                                  {"zero_output_for_mask", options_.zero_output_for_mask},
                                  {"units", units_},
                                  {"activation", options_.activation.Serialized()},
                                  {"use_bias", options_.use_bias},
                                  {"kernel_initializer", options_.kernel_initializer.Serialized()},
                                  {"recurrent_initializer", options_.recurrent_initializer.Serialized()},
                                  {"bias_initializer", options_.bias_initializer.Serialized()},
                                  {"kernel_regularizer", options_.kernel_regularizer.Serialized()},
                                  {"recurrent_regularizer", options_.recurrent_regularizer.Serialized()},
                                  {"bias_regularizer", options_.bias_regularizer.Serialized()},
                                  {"activity_regularizer", nullptr},
                                  {"kernel_constraint", nullptr},
                                  {"recurrent_constraint", nullptr},
                                  {"bias_constraint", nullptr},
                                  {"dropout", options_.dropout},
                                  {"recurrent_dropout", options_.recurrent_dropout},
                                  {"seed", options_.seed == 0 ? ConfigValue() : ConfigValue(options_.seed)}};
    if constexpr (requires { options_.recurrent_activation; }) {
      config.emplace_back("recurrent_activation", options_.recurrent_activation.Serialized());
    }
    if constexpr (requires { options_.unit_forget_bias; }) {
      config.emplace_back("unit_forget_bias", options_.unit_forget_bias);
    }
    if constexpr (requires { options_.reset_after; }) config.emplace_back("reset_after", options_.reset_after);
    return config;
  }
  static LayerRef FromConfig(ConfigReader& reader) {
    Options options;
    ReadWeighted(reader, options);
    reader.OnlyDefault("recurrent_constraint", nullptr);
    reader.OnlyDefault("stateful", false);
    reader.Ignore("unroll");  // it is always unrolled
    reader.Read("zero_output_for_mask", options.zero_output_for_mask);
    reader.Read("return_sequences", options.return_sequences);
    reader.Read("return_state", options.return_state);
    reader.Read("go_backwards", options.go_backwards);
    Read(reader, "activation", options.activation);
    reader.Read("use_bias", options.use_bias);
    Read(reader, "kernel_initializer", options.kernel_initializer);
    Read(reader, "recurrent_initializer", options.recurrent_initializer);
    Read(reader, "bias_initializer", options.bias_initializer);
    Read(reader, "kernel_regularizer", options.kernel_regularizer);
    Read(reader, "recurrent_regularizer", options.recurrent_regularizer);
    Read(reader, "bias_regularizer", options.bias_regularizer);
    reader.Read("dropout", options.dropout);
    reader.Read("recurrent_dropout", options.recurrent_dropout);
    options.seed = ReadSeed(reader);
    if constexpr (requires { options.recurrent_activation; }) {
      Read(reader, "recurrent_activation", options.recurrent_activation);
    }
    if constexpr (requires { options.unit_forget_bias; }) reader.Read("unit_forget_bias", options.unit_forget_bias);
    if constexpr (requires { options.reset_after; }) reader.Read("reset_after", options.reset_after);
    return MakeLayer<RecurrentLayerOf>(reader.Required("units").AsInt(), options);
  }

 private:
  const int64_t units_;
  const Options options_;
  const std::shared_ptr<const Layer> cell_;
};

}  // namespace

LayerRef LSTM(int64_t units, const LSTMOptions& options) {
  return MakeLayer<RecurrentLayerOf<LSTMOptions>>(units, options).WithInputShape(options.input_shape);
}
LayerRef GRU(int64_t units, const GRUOptions& options) {
  return MakeLayer<RecurrentLayerOf<GRUOptions>>(units, options).WithInputShape(options.input_shape);
}
LayerRef SimpleRNN(int64_t units, const SimpleRNNOptions& options) {
  return MakeLayer<RecurrentLayerOf<SimpleRNNOptions>>(units, options).WithInputShape(options.input_shape);
}

std::vector<LayerMaker> RecurrentLayerMakers() {
  return {{"LSTM", RecurrentLayerOf<LSTMOptions>::FromConfig},
          {"GRU", RecurrentLayerOf<GRUOptions>::FromConfig},
          {"SimpleRNN", RecurrentLayerOf<SimpleRNNOptions>::FromConfig}};
}

}  // namespace cohort::keras
