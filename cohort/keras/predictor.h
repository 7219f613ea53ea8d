// Predictor: computes a model's outputs from several threads at once, for programs that serve a model.
//
//   const keras::Predictor predictor = keras::Predictor::Load("model.keras");
//   ...
//   const Tensor classes = predictor.Predict(images);  // on any thread
//
// A Predictor has its own graph, session and copy of the weights. It prepares one signature when it is made. It has no
// optimizer, no loss and no nodes for training. Training or changing the model afterwards does not change it.
//
// A Predictor is a handle: copies are the same predictor, which ends with its last copy. All its functions are const,
// and any number of threads may call them at the same time. A call takes no locks except those of a Callable. It adds
// no nodes to a graph. Only PredictNamed looks up names.
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
  std::map<std::string, LayerFactory> custom_layers;  // as in LoadOptions
  // For example threads and operation_timeout, the time limit of each call.
  SessionConfig session;
};

class COHORT_EXPORT Predictor {
 public:
  // An input or an output of the model.
  struct Value {
    // The name of the layer that makes the value: "input_layer", "dense_1". If a layer makes several outputs, the
    // second is called "dense_1:1".
    std::string name;
    DType dtype = DType::kFloat32;
    Shape shape;  // [batch, ...]; -1: the dimension may have any size
  };

  // Copies the present weights of the model. Requires: no other thread trains or changes the model during the call.
  // Throws FailedPreconditionError if the model's input shapes are not known yet.
  explicit Predictor(const Model& model, const SessionConfig& session = {});

  // Loads layers and weights from a file that SaveModel or Keras 3 wrote (".keras"). The arguments of Compile in the
  // file are not read. Throws what LoadModel throws, and FailedPreconditionError if the file does not have the model's
  // input shapes.
  static Predictor Load(const std::string& path, const PredictorOptions& options = {});

  // Returns the output for the examples of `x`, [batch, ...], of a model with one input and one output. The number of
  // examples may be different in each call. Throws InvalidArgumentError for a model with more inputs or outputs, and
  // what PredictAll throws.
  Tensor Predict(const Tensor& x) const;

  // Returns all outputs, in the order of outputs(). `x` has one tensor for each input, in the order of inputs().
  // Requires: no thread writes to the tensors of `x` during the call. An output may share memory with a tensor of `x`.
  // Throws InvalidArgumentError, before anything is computed, if the number of tensors is wrong, if a tensor does not
  // have the dtype and shape of its input, or if the tensors have different batch sizes. Dtypes are not converted: the
  // caller must convert images of uint8 to float32. Throws what kernels throw, and DeadlineExceededError if
  // SessionConfig::operation_timeout is set and has passed.
  std::vector<Tensor> PredictAll(const std::vector<Tensor>& x) const;

  // As PredictAll, with inputs and outputs by name. Also throws InvalidArgumentError if the name of an input is
  // missing, unknown or given twice.
  std::map<std::string, Tensor> PredictNamed(const std::vector<std::pair<std::string, Tensor>>& x) const;

  const std::string& name() const;  // of the model
  const std::vector<Value>& inputs() const;
  const std::vector<Value>& outputs() const;
  const Graph& graph() const;  // the predictor's graph, for tools that show it

 private:
  struct Parts;
  explicit Predictor(std::shared_ptr<ModelState> state);

  std::shared_ptr<const Parts> parts_;
};

}  // namespace cohort::keras
