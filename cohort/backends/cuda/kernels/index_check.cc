#include "cohort/backends/cuda/kernels/index_check.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {

IndexReport::IndexReport(const CudaCall& call, DescribeIndex describe, std::string where) : call_(call) {
  const ErrorWords::Check check = call.device().error_words().Announce(
      call.ctx(),
      [describe = std::move(describe)](int64_t position, int64_t index) {
        return Status(Code::kInvalidArgument, describe(position, index));
      },
      std::move(where));
  check_ = {check.word, check.number};
}

IndexReport::~IndexReport() { call_.device().error_words().Follow(call_.ctx()); }

DescribeIndex DescribeRow(const VariableResource& variable, int64_t rows) {
  return [name = variable.name(), rows](int64_t position, int64_t index) {
    return StrCat("[variable] indices[", position, "] = ", index, " is not in [0, ", rows, "), the rows of variable '",
                  name, "'");
  };
}

}  // namespace cohort::cuda
