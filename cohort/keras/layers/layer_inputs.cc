#include "cohort/keras/layers/layer_inputs.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::keras {

const LayerInput& OnlyInput(const std::vector<LayerInput>& inputs) {
  if (inputs.size() == 1) return inputs[0];
  throw InvalidArgumentError(StrCat("[keras/layer] expected one input; got ", inputs.size()));
}

void CheckIndices(const LayerInput& input, const char* layer) {
  if (input.dtype != DType::kString) return;
  throw InvalidArgumentError(StrCat("[keras/layer] expected indices for ", layer, "; got strings of shape ",
                                    input.shape, ": put StringLookup or Hashing before it"));
}

void CheckInputRank(const LayerInput& input, int rank, const char* meaning) {
  if (input.shape.rank() == rank) return;
  std::string advice;
  if (rank == 4 && input.shape.rank() == 3) {
    const std::string size = StrCat(input.shape.dim(1), ",", input.shape.dim(2));
    advice = StrCat("; if these are images without a channel axis, begin the model with Input(Shape{", size,
                    ",1}), which takes the same data, or put Reshape({", size, ",1}) before this layer");
  }
  throw InvalidArgumentError(
      StrCat("[keras/layer] expected an input of rank ", rank, " ", meaning, "; got shape ", input.shape, advice));
}

int64_t KnownDim(const LayerInput& input, int axis) {
  const int rank = input.shape.rank();
  const int i = axis < 0 ? rank + axis : axis;
  if (rank > 0 && i >= 0 && i < rank && input.shape.dim(i) >= 0) return input.shape.dim(i);
  throw InvalidArgumentError(
      StrCat("[keras/layer] expected an input whose dimension ", axis, " is known; got shape ", input.shape));
}

std::vector<int64_t> ReshapeDims(const Shape& shape) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  for (size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      throw InvalidArgumentError(
          StrCat("[keras/layer] expected an input of which only the batch size is unknown; got shape ", shape));
    }
  }
  return dims;
}

}  // namespace cohort::keras
