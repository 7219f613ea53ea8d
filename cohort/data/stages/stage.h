// DatasetNode: one stage of a dataset's description. StageIterator: one run of a stage.
#pragma once

#include <atomic>
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

// One run of a stage over its input. Its owner is the StageIterator of the next stage. If there is no next stage, the
// owner is the program's Iterator. Not thread-safe: one thread at a time may call.
class StageIterator {
 public:
  virtual ~StageIterator() = default;
  // Replaces *out by the next element. Returns false at the end, and in all later calls. If a call throws, the next
  // call continues after the element that failed, or with the next file if the rest of a file cannot be read.
  virtual bool Next(Element* out) = 0;
  // Sets *out to the element that Next will return, if it is there already. Returns false if Next would have to make
  // it, or would return or throw something else. Does not wait. The position stays.
  virtual bool PeekReady(Element* /*out*/) { return false; }
  // Appends the position to `out`. The function is not const because Prefetch halts its thread meanwhile.
  virtual void Save(WireWriter* out) = 0;
  // Goes to a saved position. Afterwards this iterator yields what the saved iterator would have yielded. Requires:
  // MakeIterator has just made this iterator. If it throws, the iterator must be destroyed.
  virtual void Restore(WireReader* in) = 0;
  // Returns true if a position is a few numbers and costs almost nothing. Returns false if it also holds elements.
  virtual bool HasSmallPosition() const = 0;
};
using StagePtr = std::unique_ptr<StageIterator>;

// Throws CancelledError if the iterator was told to stop (IteratorOptions). `stop` may be null.
void CheckNotStopped(const std::atomic<bool>* stop);

// The facts that a stage needs to make an iterator.
struct IteratorContext {
  // The number of this pass over the stage: 0 is the first pass. Shuffles that reshuffle have another order in each
  // pass.
  int64_t epoch = 0;
  // Seeds for stages that have a drawn seed: a stage in this map uses the seed of the map, and not its drawn seed. May
  // be null.
  std::shared_ptr<const std::map<const DatasetNode*, uint64_t>> seeds;
  // As in IteratorOptions. May be null.
  std::shared_ptr<const std::atomic<bool>> stop;
};

// One stage with its inputs, which are stages too. Immutable and thread-safe. Datasets, later stages and iterators
// share ownership of it through shared_ptr.
class DatasetNode : public std::enable_shared_from_this<DatasetNode> {
 public:
  static constexpr int64_t kSequential = -1;

  DatasetNode(std::vector<NodePtr> inputs, ElementSpec spec) : inputs_(std::move(inputs)), spec_(std::move(spec)) {}
  virtual ~DatasetNode() = default;
  DatasetNode(const DatasetNode&) = delete;

  const std::vector<NodePtr>& inputs() const { return inputs_; }
  const NodePtr& input() const { return inputs_.front(); }
  const ElementSpec& spec() const { return spec_; }
  // Returns the stage's name in a description: "Shuffle".
  virtual std::string kind() const = 0;
  // Returns the stage's parameters as text, for ToString(): "10, seed=3". Iterator::Restore throws if ToString()
  // differs from the text in the saved position. The text never shows the contents of tensors.
  virtual std::string Parameters() const { return ""; }
  // Returns the whole pipeline: "Range(0, 10, 1).Shuffle(10, seed=3)".
  virtual std::string ToString() const;
  // Returns the number of elements, kInfiniteCardinality or kUnknownCardinality.
  virtual int64_t Cardinality() const = 0;

  // Returns the number of elements if each of them can be read by its index. Otherwise returns kSequential.
  virtual int64_t RandomAccessSize() const { return kSequential; }
  // Reads element `index`. Requires: the stage has random access.
  virtual void Get(int64_t index, Element* out) const;
  // Returns the number of rows of the batches that the stage makes, or -1 if it makes none.
  virtual int64_t batch_size() const { return -1; }
  // If the stage is a shuffle without a seed, returns the seed that it has drawn. Otherwise returns nullopt.
  virtual std::optional<uint64_t> drawn_seed() const { return std::nullopt; }
  // Returns the same stage with another drawn seed. Returns this stage if it has no drawn seed.
  virtual NodePtr WithDrawnSeed(uint64_t /*seed*/) const { return shared_from_this(); }

  // Writes the parameters that the stage's reader in description.cc reads. Throws FailedPreconditionError if the stage
  // calls a function of this process.
  virtual void Write(DescriptionWriter* out) const = 0;
  // Returns the same stage with other inputs, whose specs must be compatible.
  virtual NodePtr WithInputs(std::vector<NodePtr> inputs) const = 0;

  // Returns a new run of the stage and of its inputs. The caller owns it.
  StagePtr MakeIterator(const IteratorContext& context) const;
  // Calls `work` and returns its result. `work` must not call the stages before this one, because their errors are not
  // errors of this stage. If `work` throws, adds " (from stage Map(...) of ...)" to the error's message. If `work`
  // concerns one element, which is `element`, the message describes it, too.
  template <typename Work>
  auto Guard(const Work& work, const Element* element = nullptr) const {
    try {
      return work();
    } catch (...) {
      ThrowWithPlace(element);
    }
  }

 protected:
  // MakeIterator calls this if the stage has no random access.
  virtual StagePtr MakeStage(const IteratorContext& context) const;

 private:
  [[noreturn]] void ThrowWithPlace(const Element* element) const;

  std::vector<NodePtr> inputs_;
  ElementSpec spec_;
};

// Returns kind and parameters: "Shuffle(10, seed=3)".
std::string StageLabel(const DatasetNode& node);
// Returns the stages that have a drawn seed, in the order in which ToString() names them.
std::vector<const DatasetNode*> ShufflesWithoutSeed(const DatasetNode& root);
// Return the minimum and the sum of two counts, each of which may be infinite or unknown.
int64_t MinCardinality(int64_t a, int64_t b);
int64_t AddCardinality(int64_t a, int64_t b);

}  // namespace cohort::data
