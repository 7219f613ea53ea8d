#include "cohort/distribute/coordinator/closure.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/coordinator/per_worker.h"
#include "cohort/ops/array.h"

namespace cohort::distribute {

Output ClosureContext::Argument(DType dtype, const Shape& shape) {
  arguments_.push_back(ops::Placeholder(graph_, dtype, shape, "argument"));
  return arguments_.back();
}

namespace {

const std::shared_ptr<PerWorkerSource>& SharedSourceOf(const PerWorkerValue& value) {
  if (value.valid()) return value.source();
  throw InvalidArgumentError(
      "[coordinator] expected a PerWorkerValue; got an empty one: make it with CreatePerWorkerValue or "
      "CreatePerWorkerDataset");
}

}  // namespace

const std::shared_ptr<PerWorkerSource>& ClosureContext::AddSource(const PerWorkerValue& value) {
  sources_.push_back(SharedSourceOf(value));
  return value.source();
}

std::vector<Output> ClosureContext::Get(const PerWorkerValue& value) {
  const std::shared_ptr<PerWorkerSource>& source = AddSource(value);
  elements_ += source->elements();
  return source->Get(worker_);
}

std::vector<Output> ClosureContext::GetAt(const PerWorkerValue& value, Output index) {
  return AddSource(value)->GetAt(worker_, index);
}

void ClosureContext::CountAgain(const PerWorkerValue& value) { elements_ += SharedSourceOf(value)->elements(); }

void ClosureFunction::CheckArguments(const std::vector<Tensor>& arguments) const {
  const std::vector<Output>& wanted = workers_[0].arguments;
  if (arguments.size() != wanted.size()) {
    throw InvalidArgumentError(StrCat("[coordinator] expected ", wanted.size(), " arguments for function '", name_,
                                      "'; got ", arguments.size()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool defined = arguments[i].defined();
    if (defined && arguments[i].dtype() == wanted[i].dtype() &&
        wanted[i].shape().IsCompatibleWith(arguments[i].shape())) {
      continue;
    }
    const std::string got =
        defined ? StrCat(arguments[i].dtype(), arguments[i].shape()) : std::string("an undefined tensor");
    throw InvalidArgumentError(StrCat("[coordinator] expected ", wanted[i].dtype(), wanted[i].shape(), " as argument ",
                                      i, " of function '", name_, "'; got ", got));
  }
}

}  // namespace cohort::distribute
