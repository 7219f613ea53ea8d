#include "cohort/device/variable_resource.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {

VariableResource::SetLock::SetLock(std::vector<VariableResource*> variables, Mode mode) COHORT_NO_THREAD_SAFETY_ANALYSIS
    : variables_(std::move(variables)),
      mode_(mode) {
  std::sort(variables_.begin(), variables_.end(), std::less<>());
  const auto twice = std::adjacent_find(variables_.begin(), variables_.end());
  if (twice != variables_.end()) {
    throw InvalidArgumentError(
        StrCat("[variable] expected different variables in one update; got '", (*twice)->name(), "' twice"));
  }
  for (VariableResource* variable : variables_) {
    mode_ == Mode::kShared ? variable->mu_.LockShared() : variable->mu_.Lock();
  }
}

VariableResource::SetLock::~SetLock() COHORT_NO_THREAD_SAFETY_ANALYSIS {
  for (VariableResource* variable : variables_) {
    mode_ == Mode::kShared ? variable->mu_.UnlockShared() : variable->mu_.Unlock();
  }
}

VariableResource::VariableResource(std::string name, DType dtype, Shape shape, Allocator& allocator,
                                   std::string container)
    : name_(std::move(name)),
      container_(std::move(container)),
      dtype_(dtype),
      shape_(std::move(shape)),
      allocator_(allocator) {}

void VariableResource::CheckInitialized() const {
  if (!value_.defined()) {
    throw FailedPreconditionError(StrCat("[variable] Attempting to use uninitialized value ", name_,
                                         "; run its initializer or restore it first"));
  }
}

void VariableResource::CheckFits(const Tensor& value) const {
  if (value.dtype() != dtype_ || !shape_.IsCompatibleWith(value.shape())) {
    throw InvalidArgumentError(StrCat("[variable] expected ", dtype_, shape_, " as value of variable '", name_,
                                      "'; got ", value.dtype(), value.shape()));
  }
}

void VariableResource::Store(Tensor value) {
  value_ = std::move(value);
  initialized_.store(true, std::memory_order_release);
  CountUpdate();
}

Shape VariableResource::value_shape() const {
  ReaderLock lock(mu_);
  CheckInitialized();
  return value_.shape();
}

Tensor VariableResource::Read() const {
  ReaderLock lock(mu_);
  CheckInitialized();
  return value_;
}

void VariableResource::Assign(const Tensor& value) {
  CheckFits(value);
  WriterLock lock(mu_);
  Store(value);
}

Tensor VariableResource::TargetOfUpdate() const {
  return value_.OwnsBufferAlone() ? value_ : Tensor(value_.dtype(), value_.shape(), allocator_);
}

void VariableResource::Update(const std::function<void(const Tensor& old, Tensor& out)>& change) {
  WriterLock lock(mu_);
  CheckInitialized();
  Tensor out = TargetOfUpdate();
  change(value_, out);
  value_ = std::move(out);
  CountUpdate();
}

void VariableResource::UpdateTogether(std::span<VariableResource* const> variables,
                                      const std::function<void(std::span<const Tensor> olds, std::span<Tensor> outs)>&
                                          change) COHORT_NO_THREAD_SAFETY_ANALYSIS {
  const SetLock lock({variables.begin(), variables.end()}, SetLock::Mode::kExclusive);
  std::vector<Tensor> outs;
  std::vector<Tensor> olds;
  outs.reserve(variables.size());
  olds.reserve(variables.size());
  for (VariableResource* variable : variables) {
    variable->CheckInitialized();
    outs.push_back(variable->TargetOfUpdate());
    olds.push_back(variable->value_);
  }
  change(olds, outs);
  for (size_t i = 0; i < variables.size(); ++i) {
    variables[i]->value_ = std::move(outs[i]);
    variables[i]->CountUpdate();
  }
}

VariableResource::Places VariableResource::RunAtPlaces(std::span<const Place> places, const std::function<void()>& work)
    COHORT_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<VariableResource*> variables;
  variables.reserve(places.size());
  for (const Place& place : places) variables.push_back(place.variable);
  const SetLock lock(std::move(variables), SetLock::Mode::kExclusive);
  for (const Place& place : places) {
    const Tensor& value = place.variable->value_;
    if (!value.defined() || value.raw_data() != place.data || value.shape() != place.shape) return Places::kMoved;
    if (place.updates > 0 && !value.OwnsBufferAlone()) return Places::kShared;
  }
  work();
  for (const Place& place : places) {
    for (int i = 0; i < place.updates; ++i) place.variable->CountUpdate();
  }
  return Places::kKept;
}

bool VariableResource::OwnsValueAlone() const {
  ReaderLock lock(mu_);
  CheckInitialized();
  return value_.OwnsBufferAlone();
}

}  // namespace cohort
