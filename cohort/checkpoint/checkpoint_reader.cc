#include "cohort/checkpoint/checkpoint_reader.h"

#include <filesystem>
#include <system_error>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::train {
namespace {

std::string PrefixOf(const std::string& ckpt_dir_or_file) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(ckpt_dir_or_file, ignored)) return ckpt_dir_or_file;
  const std::string latest = LatestCheckpoint(ckpt_dir_or_file);
  if (!latest.empty()) return latest;
  throw NotFoundError(StrCat("[checkpoint] expected a checkpoint in the folder ", ckpt_dir_or_file, "; there is none"));
}

}  // namespace

CheckpointReader::CheckpointReader(const std::string& ckpt_dir_or_file)
    : reader_(std::make_unique<BundleReader>(PrefixOf(ckpt_dir_or_file))) {}
CheckpointReader::~CheckpointReader() = default;
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;
CheckpointReader& CheckpointReader::operator=(CheckpointReader&&) noexcept = default;

const std::string& CheckpointReader::prefix() const { return reader_->prefix(); }
bool CheckpointReader::HasTensor(const std::string& name) const { return reader_->Has(name); }
Tensor CheckpointReader::GetTensor(const std::string& name) const { return reader_->Read(name); }

std::map<std::string, Shape> CheckpointReader::GetVariableToShapeMap() const {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, entry] : reader_->tensors()) shapes[name] = entry.shape;
  return shapes;
}

std::map<std::string, DType> CheckpointReader::GetVariableToDtypeMap() const {
  std::map<std::string, DType> dtypes;
  for (const auto& [name, entry] : reader_->tensors()) dtypes[name] = entry.dtype();
  return dtypes;
}

CheckpointReader LoadCheckpoint(const std::string& ckpt_dir_or_file) { return CheckpointReader(ckpt_dir_or_file); }

std::vector<StoredShape> ListVariables(const std::string& ckpt_dir_or_file) {
  std::vector<StoredShape> all;
  for (const auto& [name, shape] : LoadCheckpoint(ckpt_dir_or_file).GetVariableToShapeMap())
    all.push_back({name, shape});
  return all;
}

Tensor LoadVariable(const std::string& ckpt_dir_or_file, const std::string& name) {
  return LoadCheckpoint(ckpt_dir_or_file).GetTensor(name);
}

}  // namespace cohort::train
