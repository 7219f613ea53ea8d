// RecurrentLayer: the base of LSTM, GRU and SimpleRNN, as Bidirectional sees them. Internal to keras/.
#pragma once

#include <string>
#include <vector>

#include "cohort/keras/layers/compound_layer.h"

namespace cohort::keras {

// A layer that reads a sequence step by step. Its inputs are the sequence and, if they are given, all initial states.
class RecurrentLayer : public CompoundLayer, public NamedArguments {
 public:
  // The order of the sequence that is returned: that in which the steps are read, or that of the input.
  enum class Order { kAsRead, kAsGiven };

  virtual bool return_sequences() const = 0;
  virtual bool return_state() const = 0;
  virtual bool go_backwards() const = 0;
  virtual size_t num_states() const = 0;
  // Returns a layer for a Bidirectional, with the same options, but with this name and direction. If it returns
  // sequences, the outputs of masked steps are zeros. Files do not tell the order.
  virtual LayerRef Copy(const std::string& name, bool go_backwards, Order order) const = 0;
  std::vector<std::string> ArgumentNames() const override { return {"sequences", "initial_state"}; }

 protected:
  using CompoundLayer::CompoundLayer;
};

}  // namespace cohort::keras
