// The models of keras_models.h in which steps are masked. mask_models.py has the models of the same names.
#include "tests/interop/keras_models.h"

namespace cohort::keras {
namespace {

// Begins with an Embedding of six words, of which 0 pads.
ModelPtr MaskedWords(const std::vector<SequentialItem>& items) {
  std::vector<SequentialItem> all = {Input(Shape{6}, {.dtype = DType::kInt32}),
                                     Embedding(12, 8, {.mask_zero = true, .name = "words"})};
  all.insert(all.end(), items.begin(), items.end());
  return Chain(std::move(all));
}

ModelPtr MaskedFunctional(const std::vector<LayerTensor>& inputs, const LayerTensor& value) {
  return std::make_unique<Model>(inputs, std::vector<LayerTensor>{Dense(3, {.name = "end"})(value)});
}

struct TwoTexts {
  LayerTensor x = Input(Shape{6}, {.dtype = DType::kInt32, .name = "x"});
  LayerTensor y = Input(Shape{4}, {.dtype = DType::kInt32, .name = "y"});
  LayerTensor a = Embedding(12, 4, {.mask_zero = true, .name = "a"})(x);
  LayerTensor b = Embedding(12, 4, {.mask_zero = true, .name = "b"})(y);
};

ModelPtr MaskedSteps() {
  return Chain({Input(Shape{5, 4}), Masking(), GRU(6, {.return_sequences = true}), LayerNormalization(),
                Activation("tanh"), Dense(2)});
}

ModelPtr MaskedNormalized() {
  return Chain({Input(Shape{5, 4}), Dense(4, {.use_bias = false, .name = "before"}), Masking({.mask_value = 0.0}),
                BatchNormalization({.momentum = 0.5}), SimpleRNN(4), Dense(3)});
}

ModelPtr MaskedAttentive() {
  const TwoTexts texts;
  const LayerTensor c = Dense(5, {.activation = "tanh", .name = "c"})(texts.b);
  const LayerTensor attended = MultiHeadAttention(2, 3, {.name = "masked"})({texts.a, c, texts.b});
  const LayerTensor d = Dense(5, {.activation = "tanh", .name = "d"})(texts.a);
  const MultiHeadAttentionOptions causal = {.use_bias = false, .use_causal_mask = true, .name = "own"};
  const LayerTensor own = MultiHeadAttention(2, 3, causal)({d, d});
  return MaskedFunctional({texts.x, texts.y},
                          Concatenate()({GlobalAveragePooling1D()(own), GlobalAveragePooling1D()(attended)}));
}

ModelPtr MaskedScored() {
  const TwoTexts texts;
  const LayerTensor dot = Attention({.use_scale = true, .name = "dot"})({texts.a, texts.b});
  const LayerTensor added = AdditiveAttention({.use_causal_mask = true, .name = "added"})({texts.a, texts.b});
  return MaskedFunctional({texts.x, texts.y},
                          Concatenate()({GlobalAveragePooling1D()(dot), GlobalAveragePooling1D()(added)}));
}

ModelPtr MaskedMerged() {
  const LayerTensor x = Input(Shape{5}, {.dtype = DType::kInt32, .name = "x"});
  const LayerTensor y = Input(Shape{5}, {.dtype = DType::kInt32, .name = "y"});
  const LayerTensor a = Embedding(12, 3, {.mask_zero = true, .name = "a"})(x);
  const LayerTensor b = Embedding(12, 3, {.mask_zero = true, .name = "b"})(y);
  const LayerTensor plain = Embedding(12, 3, {.name = "plain"})(y);
  std::vector<LayerTensor> means;
  for (const LayerTensor& merged :
       {Add()({a, b}), Subtract()({a, b}), Multiply()({a, b}), Average()({a, b}), Maximum()({a, b}), Minimum()({a, b}),
        Multiply()({a, plain}), Maximum()({a, plain, b}), Concatenate()({a, b}), Concatenate({.axis = 1})({a, b}),
        Concatenate({.axis = 1})({plain, b}), Concatenate()({a, plain})}) {
    means.push_back(GlobalAveragePooling1D()(merged));
  }
  return MaskedFunctional({x, y}, Concatenate()(means));
}

ModelPtr MaskedSentences() {
  const LayerTensor x = Input(Shape{3, 4}, {.dtype = DType::kInt32, .name = "x"});
  const LayerTensor words = Embedding(12, 3, {.mask_zero = true, .name = "words"})(x);
  return MaskedFunctional({x}, Flatten()(TimeDistributed(LSTM(4, {.name = "sentence"}))(words)));
}

ModelPtr MaskedInside() {
  const Sequential inner(
      {Input(Shape{6, 4}), Dense(4, {.activation = "tanh", .name = "each"}), GRU(4, {.name = "read"})},
      {.name = "inner"});
  const LayerTensor x = Input(Shape{6}, {.dtype = DType::kInt32, .name = "x"});
  return MaskedFunctional({x}, inner.AsLayer()(Embedding(12, 4, {.mask_zero = true, .name = "words"})(x)));
}

ModelPtr MaskedStates() {
  const LayerTensor x = Input(Shape{6}, {.dtype = DType::kInt32, .name = "x"});
  const LayerTensor words = Embedding(12, 4, {.mask_zero = true, .name = "words"})(x);
  const auto encoded = LSTM(4, {.return_sequences = true, .return_state = true, .name = "encoder"}).Apply({words});
  const LayerTensor decoded = LSTM(4, {.return_sequences = true, .name = "decoder"})(encoded);
  return MaskedFunctional({x}, GlobalAveragePooling1D()(decoded));
}

}  // namespace

ModelMakers MaskModels() {
  return {
      {"masked_lstm",
       [] {
         return MaskedWords({LSTM(6, {.return_sequences = true}), LSTM(6), Dense(3)});
       }},
      {"masked_gru",
       [] {
         return MaskedWords({GRU(5, {.return_sequences = true, .go_backwards = true, .zero_output_for_mask = true}),
                             GRU(4, {.reset_after = false}), Dense(3)});
       }},
      {"masked_simple_rnn",
       [] {
         return MaskedWords({SimpleRNN(5, {.return_sequences = true}),
                             SimpleRNN(4, {.go_backwards = true, .zero_output_for_mask = true}), Dense(3)});
       }},
      {"masked_bidirectional",
       [] {
         return MaskedWords({Bidirectional(LSTM(3, {.return_sequences = true, .name = "a"})),
                             Bidirectional(GRU(3, {.name = "b"}), {.merge_mode = "ave"}), Dense(3)});
       }},
      {"masked_average",
       [] {
         return MaskedWords({Dense(8, {.activation = "tanh"}), GlobalAveragePooling1D(), Dense(3)});
       }},
      {"masked_steps", MaskedSteps},
      {"masked_batch_normalization", MaskedNormalized},
      {"masked_attention", MaskedAttentive},
      {"masked_scored_attention", MaskedScored},
      {"masked_merging", MaskedMerged},
      {"masked_sentences", MaskedSentences},
      {"masked_inside", MaskedInside},
      {"masked_states", MaskedStates},
  };
}

}  // namespace cohort::keras
