// Predictor: computes a model's outputs from several threads at once, for programs that serve a model.
//
//   const keras::Predictor predictor = keras::Predictor::Load("model.keras");
//   ...
//   const Tensor classes = predictor.Predict(images);  // on any thread
//
// A Predictor has a graph, a session and a copy of the weights of its own, and one signature that is prepared when the
// Predictor is made. It has no optimizer, no loss and no nodes for training. Training or changing the model afterwards
// does not change it.
//
// A Predictor is a handle: copies are the same predictor, and the last copy ends it. All its functions are const and
// may be called by any number of threads at the same time. A call takes no lock beyond those of a Callable, adds no
// node to a graph and looks nothing up by name, except for PredictNamed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/model.h"

namespace cohort::keras {

struct COHORT_EXPORT PredictorOptions {
  std::map<std::string, LayerFactory> custom_layers;  // as LoadOptions has them
  SessionConfig session;                              // threads, time limit of each call
};

class COHORT_EXPORT Predictor {
 public:
  // An input or an output of the model.
  struct Value {
    // Of the layer that it is a result of: "input_layer", "dense_1". A further output of the same layer is "dense_1:1".
    std::string name;
    DType dtype = DType::kFloat32;
    Shape shape;  // [batch, ...]; -1 for a dimension that may have any size, as the batch mostly has
  };

  // Takes a copy of the model's weights as they are now. Requires: no other thread trains or changes the model
  // meanwhile. Throws FailedPreconditionError if the model's input shapes are not known yet.
  explicit Predictor(const Model& model, const SessionConfig& session = {});

  // Loads layers and weights of a file that SaveModel or Keras 3 wrote (".keras"). What Compile was given is not read.
  // Throws what LoadModel throws, and FailedPreconditionError for a model whose input shapes the file does not hold.
  static Predictor Load(const std::string& path, const PredictorOptions& options = {});

  // Of a model with one input and one output: returns the output for the examples of `x`, [batch, ...]. The batch may
  // have another size in each call. Throws InvalidArgumentError for a model with more inputs or outputs, and what
  // PredictAll throws.
  Tensor Predict(const Tensor& x) const;

  // Returns all outputs, in the order of outputs(), for one tensor for each of inputs(), in that order. Requires:
  // nobody writes to the tensors of `x` during the call; an output may share memory with an input. Throws
  // InvalidArgumentError, before anything is computed, for a wrong number of tensors, and for a tensor of another
  // dtype, rank or shape than its input or of another batch size than the other tensors; the message names the input.
  // Nothing is converted: images of uint8 must be made float32 by the caller. Throws what kernels throw, and
  // DeadlineExceededError if SessionConfig::operation_timeout_in_ms is set and has passed.
  std::vector<Tensor> PredictAll(const std::vector<Tensor>& x) const;

  // The same with inputs and outputs by name. Throws InvalidArgumentError for a name that is missing, unknown or given
  // twice.
  std::map<std::string, Tensor> PredictNamed(const std::vector<std::pair<std::string, Tensor>>& x) const;

  const std::string& name() const;  // of the model
  const std::vector<Value>& inputs() const;
  const std::vector<Value>& outputs() const;
  const Graph& graph() const;  // of the predictor, for tools that show it

 private:
  struct Parts;
  explicit Predictor(std::shared_ptr<ModelState> state);

  std::shared_ptr<const Parts> parts_;
};

}  // namespace cohort::keras
