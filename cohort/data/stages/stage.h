// What a dataset is made of: DatasetNode, one stage of the description, and StageIterator, its run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/wire.h"
#include "cohort/data/element.h"

namespace cohort::data {

class DatasetNode;
class DescriptionWriter;
using NodePtr = std::shared_ptr<const DatasetNode>;

// Not thread-safe; one at a time uses it.
class StageIterator {
 public:
  virtual ~StageIterator() = default;
  // Replaces *out by the next element. False at the end, and from then on. After an exception the next call goes on
  // behind what failed.
  virtual bool Next(Element* out) = 0;
  // Appends what Restore needs. Not const: a stage with a thread halts it meanwhile.
  virtual void Save(WireWriter* out) = 0;
  // On an iterator that is fresh from MakeIterator: it then yields what the saved one would have yielded.
  virtual void Restore(WireReader* in) = 0;
  // Whether a position is a few numbers and costs next to nothing; false where elements have to be saved with it.
  virtual bool HasSmallPosition() const = 0;
};
using StagePtr = std::unique_ptr<StageIterator>;

struct IteratorContext {
  int64_t epoch = 0;  // of reshuffling: counts the passes over the same stage
  // Seeds of shuffles that were described without one, where they differ from those drawn by the description.
  std::shared_ptr<const std::map<const DatasetNode*, uint64_t>> seeds;
};

// Immutable, thread-safe, always held by a shared_ptr; iterators keep theirs alive.
class DatasetNode : public std::enable_shared_from_this<DatasetNode> {
 public:
  static constexpr int64_t kSequential = -1;

  DatasetNode(std::vector<NodePtr> inputs, ElementSpec spec) : inputs_(std::move(inputs)), spec_(std::move(spec)) {}
  virtual ~DatasetNode() = default;
  DatasetNode(const DatasetNode&) = delete;

  const std::vector<NodePtr>& inputs() const { return inputs_; }
  const NodePtr& input() const { return inputs_.front(); }
  const ElementSpec& spec() const { return spec_; }
  // The stage's name in a description: "Shuffle".
  virtual std::string kind() const = 0;
  // Its parameters for people and for comparing positions: "10, seed=3". Never contents of tensors.
  virtual std::string Parameters() const { return ""; }
  // The whole pipeline: "Range(0, 10, 1).Shuffle(10, seed=3)".
  virtual std::string ToString() const;
  // Number of elements, kInfiniteCardinality or kUnknownCardinality.
  virtual int64_t Cardinality() const = 0;

  // Number of elements where each can be had by its index at once, else kSequential.
  virtual int64_t RandomAccessSize() const { return kSequential; }
  virtual void Get(int64_t index, Element* out) const;
  // Rows of the batches that the stage makes; -1 where it makes none.
  virtual int64_t batch_size() const { return -1; }
  // The seed that was drawn for a shuffle described without one.
  virtual std::optional<uint64_t> drawn_seed() const { return std::nullopt; }
  // Returns the same stage with another drawn seed; itself if it has none.
  virtual NodePtr WithDrawnSeed(uint64_t /*seed*/) const { return shared_from_this(); }

  // Writes what the stage's reader in description.cc reads. Throws FailedPreconditionError for a stage that calls back
  // into this process.
  virtual void Write(DescriptionWriter* out) const = 0;
  // The same stage over other inputs (of compatible specs).
  virtual NodePtr WithInputs(std::vector<NodePtr> inputs) const = 0;

  StagePtr MakeIterator(const IteratorContext& context) const;
  // Calls `work`, which is this stage's own; what it throws gets the place " (from stage Map(...) of ...)".
  template <typename Work>
  auto Guard(const Work& work) const {
    try {
      return work();
    } catch (...) {
      ThrowWithPlace();
    }
  }

 protected:
  // Called only where there is no random access.
  virtual StagePtr MakeStage(const IteratorContext& context) const;

 private:
  [[noreturn]] void ThrowWithPlace() const;

  std::vector<NodePtr> inputs_;
  ElementSpec spec_;
};

// "Shuffle(10, seed=3)".
std::string StageLabel(const DatasetNode& node);
// Returns the stages that have a drawn seed, in the order in which ToString() names them.
std::vector<const DatasetNode*> ShufflesWithoutSeed(const DatasetNode& root);
// Minimum and sum of counts that may be infinite or unknown.
int64_t MinCardinality(int64_t a, int64_t b);
int64_t AddCardinality(int64_t a, int64_t b);

}  // namespace cohort::data
