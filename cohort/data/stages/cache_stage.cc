// Cache in memory. The first pass that reads the input to its end fills the store, which all iterators of the
// description share. The input is always read as epoch 0, because later passes yield what the first one has read.
#include "cohort/core/logging.h"
#include "cohort/core/mutex.h"
#include "cohort/data/description.h"
#include "cohort/data/stages/counted_iterator.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {
namespace {

using Elements = std::vector<Element>;

class Store {
 public:
  std::shared_ptr<const Elements> Get() {
    MutexLock lock(mu_);
    return elements_;
  }
  void Publish(Elements elements) {
    MutexLock lock(mu_);
    if (elements_ == nullptr) elements_ = std::make_shared<const Elements>(std::move(elements));
  }

 private:
  Mutex mu_;
  std::shared_ptr<const Elements> elements_ COHORT_GUARDED_BY(mu_);
};

class CacheIterator : public CountedIterator {
 public:
  // If `store` is null, the seeds are not the description's, and the elements must not be kept.
  CacheIterator(NodePtr node, StagePtr input, std::shared_ptr<Store> store)
      : node_(std::move(node)),
        store_(std::move(store)),
        cached_(store_ == nullptr ? nullptr : store_->Get()),
        input_(cached_ == nullptr ? std::move(input) : nullptr) {}
  ~CacheIterator() override {
    if (store_ == nullptr || cached_ != nullptr || collected_.empty()) return;
    LogWarning("data", node_->ToString(), " was left after ", collected_.size(),
               " elements, before its end; what was cached is discarded. Call Take before Cache, not after it");
  }
  bool Next(Element* out) override {
    if (cached_ != nullptr) {
      if (index_ >= cached_->size()) return false;
      *out = (*cached_)[index_++];
      return true;
    }
    if (ended_) return false;
    if (!input_->Next(out)) {
      ended_ = true;
      if (store_ != nullptr) store_->Publish(std::move(collected_));
      collected_.clear();
      return false;
    }
    if (store_ != nullptr) collected_.push_back(*out);
    ++index_;
    return true;
  }

 private:
  const NodePtr node_;
  const std::shared_ptr<Store> store_;
  const std::shared_ptr<const Elements> cached_;
  const StagePtr input_;
  bool ended_ = false;
  Elements collected_;
};

class CacheNode : public DatasetNode {
 public:
  explicit CacheNode(NodePtr input) : DatasetNode({input}, input->spec()), store_(std::make_shared<Store>()) {}
  std::string kind() const override { return "Cache"; }
  int64_t Cardinality() const override { return input()->Cardinality(); }
  void Write(DescriptionWriter* out) const override { out->String(""); }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeMemoryCache(inputs.at(0)); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    IteratorContext first = context;
    first.epoch = 0;
    return std::make_unique<CacheIterator>(shared_from_this(), input()->MakeIterator(first),
                                           context.seeds == nullptr ? store_ : nullptr);
  }

 private:
  const std::shared_ptr<Store> store_;
};

}  // namespace

NodePtr MakeMemoryCache(NodePtr input) { return std::make_shared<CacheNode>(std::move(input)); }

}  // namespace cohort::data
