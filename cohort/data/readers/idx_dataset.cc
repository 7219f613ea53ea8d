// IDX files as a source. Its description has only the names of the files, so it is small, and each process reads its
// own copies.
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/readers/idx.h"
#include "cohort/data/readers/readers.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {
namespace {

class IdxNode : public DatasetNode {
 public:
  IdxNode(std::vector<std::string> paths, NodePtr slices)
      : DatasetNode({}, slices->spec()), paths_(std::move(paths)), slices_(std::move(slices)) {}
  std::string kind() const override { return "Idx"; }
  std::string Parameters() const override { return StrJoin(paths_, ", "); }
  int64_t Cardinality() const override { return slices_->Cardinality(); }
  int64_t RandomAccessSize() const override { return slices_->RandomAccessSize(); }
  void Get(int64_t index, Element* out) const override { slices_->Get(index, out); }
  void Write(DescriptionWriter* out) const override {
    out->Int(static_cast<int64_t>(paths_.size()));
    for (const std::string& path : paths_) out->String(path);
  }
  NodePtr WithInputs(std::vector<NodePtr>) const override { return shared_from_this(); }

 private:
  const std::vector<std::string> paths_;
  const NodePtr slices_;
};

}  // namespace

NodePtr MakeIdx(std::vector<std::string> paths) {
  std::vector<Tensor> tensors;
  for (const std::string& path : paths) tensors.push_back(ReadIdx(path));
  NodePtr slices = MakeSlices(std::move(tensors));
  return std::make_shared<IdxNode>(std::move(paths), std::move(slices));
}

Dataset IdxDataset(const std::vector<std::string>& paths) { return Dataset(MakeIdx(paths)); }

}  // namespace cohort::data
