#include "cohort/device/reduction.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {

Reductions& Reductions::Global() {
  static Reductions reductions;
  return reductions;
}

void Reductions::Register(const std::string& device_type, const ReductionTable& table) { tables_[device_type] = table; }

const ReductionTable& Reductions::Find(const std::string& device_type) const {
  const auto found = tables_.find(device_type);
  if (found != tables_.end()) return found->second;
  throw FailedPreconditionError(
      StrCat("[device] expected a backend that has registered reductions for ", device_type, "; got ", tables_.size(),
             " device types with reductions: call RegisterAll() (cohort/registration.h) first"));
}

}  // namespace cohort
