// Shuffle: yields elements drawn at random from a buffer, which is refilled from the input. The algorithm and its
// random numbers are those of TensorFlow's ShuffleDataset, so equal seeds give equal orders. The buffer is a ring of
// slots (Ring). A draw takes a number of the Philox generator modulo the slots in use, and the content of the first
// slot then moves to the slot that was drawn. If the input has random access, the ring holds indices (IndexShuffle);
// otherwise it holds elements (ElementShuffle).
#include <algorithm>
#include <random>

#include "cohort/core/philox.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/description.h"
#include "cohort/data/element_codec.h"
#include "cohort/data/stages/stages.h"

namespace cohort::data {
namespace {

constexpr uint64_t kGraphSeed = 87654321;  // TensorFlow's first seed if no global seed is set
constexpr int64_t kSeedModulus = 2147483647;

// Returns the seed in [0, kSeedModulus), as TensorFlow's Python functions do.
uint64_t TruncatedSeed(int64_t seed) {
  return static_cast<uint64_t>((seed % kSeedModulus + kSeedModulus) % kSeedModulus);
}

struct Seeds {
  uint64_t first, second;
};

PhiloxWords WordsAfter(const Seeds& seeds, uint64_t words) {
  Philox philox(seeds.first, seeds.second);
  philox.Skip(words / Philox::kWords);
  PhiloxWords result(philox);
  for (uint64_t i = 0; i < words % Philox::kWords; ++i) result();
  return result;
}

// Each pass draws its two seeds from a generator that has the shuffle's seeds.
Seeds SeedsOfEpoch(const Seeds& seeds, int64_t epoch) {
  PhiloxWords words = WordsAfter(seeds, 2 * static_cast<uint64_t>(epoch));
  const uint64_t first = words();
  return {first, words()};
}

template <typename T>
class Ring {
 public:
  Ring(int64_t capacity, const Seeds& seeds) : capacity_(capacity), seeds_(seeds), words_(WordsAfter(seeds, 0)) {}
  bool full() const { return end_ - start_ == capacity_; }
  bool empty() const { return end_ == start_; }
  void Push(T value) {
    const auto slot = static_cast<size_t>(end_++ % capacity_);
    if (slot >= slots_.size()) slots_.resize(slot + 1);
    slots_[slot] = std::move(value);
  }
  T Draw() {
    ++drawn_;
    const auto used = static_cast<uint64_t>(end_ - start_);
    T& slot = slots_[static_cast<size_t>((start_ + static_cast<int64_t>(words_() % used)) % capacity_)];
    T& first = slots_[static_cast<size_t>(start_++ % capacity_)];
    std::swap(slot, first);
    return std::move(first);
  }

  // The number of draws, and the slots from the first one on. Set puts the slots at index 0 and after; this does not
  // change later draws.
  uint64_t drawn() const { return drawn_; }
  std::vector<T> Contents() const {
    std::vector<T> contents;
    for (int64_t i = start_; i < end_; ++i) contents.push_back(slots_[static_cast<size_t>(i % capacity_)]);
    return contents;
  }
  void Set(uint64_t drawn, std::vector<T> contents) {
    words_ = WordsAfter(seeds_, drawn);
    drawn_ = drawn;
    start_ = 0;
    end_ = static_cast<int64_t>(contents.size());
    slots_ = std::move(contents);
  }

 private:
  const int64_t capacity_;
  const Seeds seeds_;
  PhiloxWords words_;
  std::vector<T> slots_;
  int64_t start_ = 0, end_ = 0;
  uint64_t drawn_ = 0;
};

// For an input with random access: a ring of indices. A position is the number of elements that were yielded.
class IndexShuffle : public StageIterator {
 public:
  IndexShuffle(NodePtr input, int64_t buffer_size, const Seeds& seeds)
      : input_(std::move(input)),
        size_(input_->RandomAccessSize()),
        ring_(std::clamp<int64_t>(buffer_size, 1, std::max<int64_t>(size_, 1)), seeds) {}
  bool Next(Element* out) override {
    const int64_t index = NextIndex();
    if (index < 0) return false;
    input_->Get(index, out);
    return true;
  }
  void Save(WireWriter* out) override { out->Varint(ring_.drawn()); }
  void Restore(WireReader* in) override {
    for (uint64_t left = in->Varint(static_cast<uint64_t>(size_)); left > 0; --left) NextIndex();
  }
  bool HasSmallPosition() const override { return true; }

 private:
  int64_t NextIndex() {
    while (pushed_ < size_ && !ring_.full()) ring_.Push(pushed_++);
    return ring_.empty() ? -1 : ring_.Draw();
  }

  const NodePtr input_;
  const int64_t size_;
  int64_t pushed_ = 0;
  Ring<int64_t> ring_;
};

class ElementShuffle : public StageIterator {
 public:
  ElementShuffle(StagePtr input, int64_t buffer_size, const Seeds& seeds)
      : input_(std::move(input)), ring_(buffer_size, seeds) {}
  bool Next(Element* out) override {
    Element element;
    while (!input_ended_ && !ring_.full()) {
      if (input_->Next(&element)) {
        ring_.Push(std::move(element));
      } else {
        input_ended_ = true;
      }
    }
    if (ring_.empty()) return false;
    *out = ring_.Draw();
    return true;
  }
  void Save(WireWriter* out) override {
    out->Varint(input_ended_ ? 1 : 0);
    out->Varint(ring_.drawn());
    const std::vector<Element> contents = ring_.Contents();
    out->Varint(contents.size());
    for (const Element& element : contents) WriteElement(element, out);
    input_->Save(out);
  }
  void Restore(WireReader* in) override {
    input_ended_ = in->Varint(1) != 0;
    const uint64_t drawn = in->Varint();
    std::vector<Element> contents;
    for (uint64_t left = in->Varint(); left > 0; --left) contents.push_back(ReadElement(in));
    ring_.Set(drawn, std::move(contents));
    input_->Restore(in);
  }
  bool HasSmallPosition() const override { return false; }

 private:
  const StagePtr input_;
  bool input_ended_ = false;
  Ring<Element> ring_;
};

class ShuffleNode : public DatasetNode {
 public:
  ShuffleNode(const NodePtr& input, int64_t buffer_size, std::optional<int64_t> seed, bool reshuffle,
              uint64_t drawn_seed)
      : DatasetNode({input}, input->spec()),
        buffer_size_(buffer_size),
        seed_(seed),
        reshuffle_(reshuffle),
        drawn_seed_(drawn_seed) {}
  std::string kind() const override { return "Shuffle"; }
  std::string Parameters() const override {
    return StrCat(buffer_size_, seed_ ? StrCat(", seed=", *seed_) : "", reshuffle_ ? "" : ", reshuffle=false");
  }
  int64_t Cardinality() const override { return input()->Cardinality(); }
  std::optional<uint64_t> drawn_seed() const override { return seed_ ? std::nullopt : std::optional(drawn_seed_); }
  NodePtr WithDrawnSeed(uint64_t seed) const override {
    return seed_ ? shared_from_this() : MakeShuffle(input(), buffer_size_, seed_, reshuffle_, seed);
  }
  void Write(DescriptionWriter* out) const override {
    out->Int(buffer_size_);
    out->Int(seed_ ? 1 : 0);
    out->Int(seed_.value_or(0));
    out->Int(reshuffle_ ? 1 : 0);
    out->Int(seed_ ? 0 : static_cast<int64_t>(drawn_seed_));
  }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override {
    return MakeShuffle(inputs.at(0), buffer_size_, seed_, reshuffle_, drawn_seed_);
  }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    const Seeds own{kGraphSeed, seed_ ? TruncatedSeed(*seed_) : ActualSeed(context)};
    const Seeds seeds = reshuffle_ ? SeedsOfEpoch(own, context.epoch) : own;
    if (input()->RandomAccessSize() != kSequential) return std::make_unique<IndexShuffle>(input(), buffer_size_, seeds);
    return std::make_unique<ElementShuffle>(input()->MakeIterator(context), buffer_size_, seeds);
  }

 private:
  uint64_t ActualSeed(const IteratorContext& context) const {
    if (context.seeds == nullptr) return drawn_seed_;
    const auto restored = context.seeds->find(this);
    return restored == context.seeds->end() ? drawn_seed_ : restored->second;
  }

  const int64_t buffer_size_;
  const std::optional<int64_t> seed_;
  const bool reshuffle_;
  const uint64_t drawn_seed_;
};

uint64_t DrawSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

NodePtr MakeShuffle(const NodePtr& input, int64_t buffer_size, std::optional<int64_t> seed,
                    bool reshuffle_each_iteration, std::optional<uint64_t> drawn_seed) {
  CheckParameter(buffer_size >= 1, "a buffer of Shuffle of at least one element", buffer_size);
  return std::make_shared<ShuffleNode>(input, buffer_size, seed, reshuffle_each_iteration,
                                       drawn_seed ? *drawn_seed : DrawSeed());
}

}  // namespace cohort::data
