// Cases in which tensors are saved and read back in one step.
#include <unistd.h>

#include <filesystem>
#include <string>

#include "cohort/checkpoint/ops.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/constant.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

// A folder that is removed when this process ends.
class ScratchFolder {
 public:
  ScratchFolder() : path_(std::filesystem::temp_directory_path() / StrCat("cohort_op_cases_", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string Prefix(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

OpCase::Build SaveAndRestore(const std::string& prefix) {
  return [prefix](Graph& graph, const Outputs& in) {
    const Output path = ops::Const(graph, prefix);
    const Output names = ops::Const(graph, std::vector<std::string>{"a", "b"});
    const Output whole = ops::Const(graph, std::vector<std::string>{"", ""});
    Node* save = ops::SaveV2(path, names, whole, in);
    const ControlDependencies after(graph, {save});
    return ops::RestoreV2(path, names, whole, {in[0].dtype(), in[1].dtype()});
  };
}

}  // namespace

void AddCheckpointCases(std::vector<OpCase>& cases) {
  static const ScratchFolder folder;
  const std::vector<Tensor> values = {AsType(Ramp({2, 3}), DType::kFloat32),
                                      Tensor::Vector(std::vector<std::string>{"x", "", "yz"})};
  cases.push_back({"SaveV2", "two", values, SaveAndRestore(folder.Prefix("save"))});
  cases.push_back({"RestoreV2", "two", values, SaveAndRestore(folder.Prefix("restore"))});
}

}  // namespace cohort::testing
