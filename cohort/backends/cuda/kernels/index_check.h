// IndexReport: announces to the step that a kernel checks indices.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/backends/cuda/kernels/gather.cu.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/core/tensor.h"
#include "cohort/device/variable_resource.h"

namespace cohort::cuda {

// Makes the message about a bad index from its position in the tensor of indices and its value.
using DescribeIndex = std::function<std::string(int64_t position, int64_t index)>;

// Announces a check of indices before the work that checks is enqueued. When the object ends, the work must be
// enqueued: the step then learns in time whether the check has failed. One call of a kernel owns it.
class IndexReport {
 public:
  IndexReport(const CudaCall& call, DescribeIndex describe)
      : IndexReport(call, std::move(describe), call.ctx().Describe()) {}
  // The error says `where` it happened, and not the node of `call`.
  IndexReport(const CudaCall& call, DescribeIndex describe, std::string where);
  ~IndexReport();
  IndexReport(const IndexReport&) = delete;
  IndexReport& operator=(const IndexReport&) = delete;
  const IndexCheck& check() const { return check_; }

 private:
  const CudaCall& call_;
  IndexCheck check_;
};

// Returns the message about an index that is not a row of the variable.
DescribeIndex DescribeRow(const VariableResource& variable, int64_t rows);

}  // namespace cohort::cuda
