#include <map>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/wire.h"
#include "cohort/data/dataset.h"
#include "cohort/data/element_codec.h"
#include "cohort/data/stages/stage.h"

namespace cohort::data {
namespace {

constexpr uint64_t kPositionVersion = 1;

}  // namespace

// The seeds of a restored position stay with the iterator, because its next position must have them, too.
struct Iterator::Seeds {
  std::shared_ptr<const std::map<const DatasetNode*, uint64_t>> restored;
};

Iterator::Iterator(std::shared_ptr<const DatasetNode> root, const IteratorOptions& options)
    : root_(std::move(root)), seeds_(std::make_unique<Seeds>()), epoch_(options.epoch), stop_(options.stop) {
  if (epoch_ < 0) throw InvalidArgumentError(StrCat("[data] expected an epoch of at least 0; got ", epoch_));
  stage_ = root_->MakeIterator({epoch_, nullptr, stop_});
}

Iterator::~Iterator() = default;

const ElementSpec& Iterator::element_spec() const { return root_->spec(); }

bool Iterator::Next(std::vector<Tensor>* element) { return stage_->Next(element); }

bool Iterator::PeekReady(std::vector<Tensor>* element) { return stage_->PeekReady(element); }

std::vector<Tensor> Iterator::Next() {
  std::vector<Tensor> element;
  if (!Next(&element)) throw OutOfRangeError("[data] End of sequence: " + root_->ToString());
  return element;
}

std::string Iterator::Save() {
  WireWriter out;
  out.Varint(kPositionVersion);
  out.String(root_->ToString());
  WriteInt(epoch_, &out);
  for (const DatasetNode* node : ShufflesWithoutSeed(*root_)) {
    out.Fixed64(seeds_->restored != nullptr ? seeds_->restored->at(node) : *node->drawn_seed());
  }
  stage_->Save(&out);
  return out.Take();
}

void Iterator::Restore(std::string_view position) {
  WireReader in(position);
  const uint64_t version = in.Varint();
  if (version != kPositionVersion) {
    throw InvalidArgumentError(
        StrCat("[data] expected the position of a dataset of version ", kPositionVersion, "; got version ", version));
  }
  const std::string_view pipeline = in.View();
  if (pipeline != root_->ToString()) {
    throw InvalidArgumentError(StrCat("[data] expected a position of ", root_->ToString(), "; got one of ", pipeline,
                                      "; describe the dataset as it was when the position was saved"));
  }
  const int64_t epoch = ReadInt(&in);
  auto seeds = std::make_shared<std::map<const DatasetNode*, uint64_t>>();
  bool as_drawn = true;
  for (const DatasetNode* node : ShufflesWithoutSeed(*root_)) {
    (*seeds)[node] = in.Fixed64();
    as_drawn = as_drawn && seeds->at(node) == node->drawn_seed();
  }
  if (as_drawn) seeds = nullptr;
  StagePtr stage = root_->MakeIterator({epoch, seeds, stop_});
  stage->Restore(&in);
  in.ExpectEnd();
  stage_ = std::move(stage);
  seeds_->restored = std::move(seeds);
  epoch_ = epoch;
}

}  // namespace cohort::data
