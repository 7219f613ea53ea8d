#include "cohort/train/hyperparameter.h"

#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"

namespace cohort::train {

Output Hyperparameter::For(const ops::Variable& variable, DType dtype, const std::string& name) {
  if (tensor_.valid() && tensor_.dtype() == dtype) return tensor_;
  Output& made = made_[{tensor_.valid() ? "" : variable.handle().node->device(), dtype}];
  if (made.valid()) return made;
  if (tensor_.valid()) {
    made = ops::Cast(tensor_, dtype);
  } else {
    const ColocateWith beside(variable.graph(), *variable.handle().node);
    made = ops::Const(variable.graph(), ops::NumberTensor(dtype, value_), name);
  }
  return made;
}

}  // namespace cohort::train
