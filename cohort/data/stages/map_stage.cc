// Map: applies a function to every element. MapIterator calls it on the caller's thread. ParallelMapIterator keeps
// several blocks of calls running on threads of its own (Fill) and returns their results in the order of the elements
// (Await). A position holds the inputs of the calls that have not been returned, so a restored iterator makes these
// calls again.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"
#include "cohort/data/description.h"
#include "cohort/data/stages/ahead.h"
#include "cohort/data/stages/stages.h"
#include "cohort/data/stages/unary_stage.h"

namespace cohort::data {
namespace {

using FunctionPtr = std::shared_ptr<const ElementFunction>;

class MapIterator : public UnaryIterator {
 public:
  MapIterator(NodePtr node, StagePtr input, const FunctionPtr& function)
      : UnaryIterator(std::move(node), std::move(input)), function_(*function) {}
  bool Next(Element* out) override {
    if (!input_->Next(&element_)) return false;
    node_->Guard([&] { *out = function_.Call(element_); }, &element_);
    return true;
  }

 private:
  const ElementFunction& function_;  // the node's
  Element element_;
};

// A thread runs as many calls, one after another, as take about this long together. So for cheap functions the threads
// are not woken for each element.
constexpr std::chrono::microseconds kBlockTime{200};
constexpr size_t kMostCalls = 64;

struct Call {
  std::string position;  // of the input before this element, if positions are small
  Element input;
  Element output;
  Status status;
  Status input_status;  // the input failed: there is no call
};

// Calls that one thread runs, in the order of their elements. Until `done`, only the pool uses outputs and statuses.
struct Block {
  std::vector<Call> calls;
  size_t next = 0;                // the consumer's: the first call that it has not returned
  std::atomic<bool> done{false};  // written under the iterator's lock
};
using BlockPtr = std::shared_ptr<Block>;

class ParallelMapIterator : public UnaryIterator {
 public:
  ParallelMapIterator(NodePtr node, StagePtr input, const FunctionPtr& function, int parallel)
      : UnaryIterator(std::move(node), std::move(input)),
        function_(*function),
        parallel_(static_cast<size_t>(parallel)),
        pool_("map", parallel) {}
  ~ParallelMapIterator() override { stopping_ = true; }  // the pool drops what has not begun
  bool Next(Element* out) override {
    Fill();
    if (blocks_.empty()) return false;
    const BlockPtr block = blocks_.front();
    if (block->next == 0) Await(*block);
    Call call = std::move(block->calls[block->next]);
    if (++block->next == block->calls.size()) {
      blocks_.pop_front();
      Fill();  // while the consumer works on this one
    }
    call.status.ThrowIfError();
    *out = std::move(call.output);
    return true;
  }
  void Save(WireWriter* out) override {
    if (small_) {
      out->String(blocks_.empty() ? SavedPosition(*input_) : blocks_.front()->calls[blocks_.front()->next].position);
      return;
    }
    size_t left = 0;
    for (const BlockPtr& block : blocks_) left += block->calls.size() - block->next;
    out->Varint(left);
    for (const BlockPtr& block : blocks_) {
      for (size_t i = block->next; i < block->calls.size(); ++i) {
        WriteOutcome(block->calls[i].input_status, block->calls[i].input, out);
      }
    }
    input_->Save(out);
  }
  void Restore(WireReader* in) override {
    if (small_) {
      WireReader position(in->View());
      input_->Restore(&position);
      return;
    }
    for (uint64_t left = in->Varint(); left > 0; --left) {
      auto block = std::make_shared<Block>();
      Call& call = block->calls.emplace_back();
      ReadOutcome(in, &call.input_status, &call.input);
      Start(block);
    }
    input_->Restore(in);
  }
  bool HasSmallPosition() const override { return small_; }

 private:
  using Clock = std::chrono::steady_clock;

  void Fill() {
    while (!input_ended_ && blocks_.size() < parallel_) {
      auto block = std::make_shared<Block>();
      Read(block.get());
      if (!block->calls.empty()) Start(block);
    }
  }
  // Takes the elements of a block from the input: one, or more if the input gives them at once.
  void Read(Block* block) {
    const size_t most = most_calls_;
    const auto end = Clock::now() + kBlockTime;
    do {
      Call call;
      try {
        if (small_) call.position = SavedPosition(*input_);
        if (!input_->Next(&call.input)) {
          input_ended_ = true;
          return;
        }
      } catch (...) {
        call.input_status = Status::FromCurrentException();
      }
      block->calls.push_back(std::move(call));
    } while (block->calls.size() < most && Clock::now() < end);
  }
  void Start(const BlockPtr& block) {
    blocks_.push_back(block);
    pool_.Schedule([this, block] { Run(block.get()); });
  }
  void Run(Block* block) {
    const auto begin = Clock::now();
    for (Call& call : block->calls) {
      if (stopping_) return;
      call.status = call.input_status;
      if (!call.status.ok()) continue;
      try {
        node_->Guard([&] { call.output = function_.Call(call.input); }, &call.input);
      } catch (...) {
        call.status = Status::FromCurrentException();
      }
    }
    Adapt(block->calls.size(), Clock::now() - begin);
    MutexLock lock(mu_);
    block->done = true;
    done_.NotifyAll();
  }
  void Adapt(size_t calls, Clock::duration taken) {
    if (taken > kBlockTime) {
      most_calls_ = std::max<size_t>(1, calls / 2);
    } else if (taken < kBlockTime / 2 && calls >= most_calls_) {
      most_calls_ = std::min(kMostCalls, 2 * calls);
    }
  }
  // Waits until the function has returned or thrown for each call of the block. There is no deadline, as in
  // MapIterator::Next, which calls the function itself. Every block is in the pool or done: the pool drops blocks only
  // after the destructor has set `stopping_`, and then Next cannot be called any more.
  void Await(const Block& block) {
    AwaitShortly([&block] { return block.done.load(); });
    MutexLock lock(mu_);
    while (!block.done) done_.Wait(mu_);
  }

  const ElementFunction& function_;  // the node's
  const size_t parallel_;
  const bool small_ = input_->HasSmallPosition();
  bool input_ended_ = false;
  std::deque<BlockPtr> blocks_;  // the consumer's
  std::atomic<size_t> most_calls_{1};
  std::atomic<bool> stopping_{false};
  Mutex mu_;
  CondVar done_;
  ThreadPool pool_;  // last: its threads end before what they use
};

class MapNode : public DatasetNode {
 public:
  MapNode(const NodePtr& input, FunctionPtr function, int num_parallel_calls)
      : DatasetNode({input}, function->output_spec()), function_(std::move(function)), parallel_(num_parallel_calls) {}
  std::string kind() const override { return "Map"; }
  std::string Parameters() const override {
    return StrCat(function_->ToString(), parallel_ > 1 ? StrCat(", parallel=", parallel_) : "");
  }
  int64_t Cardinality() const override { return input()->Cardinality(); }
  void Write(DescriptionWriter* out) const override {
    function_->Write(out);
    out->Int(parallel_);
  }
  NodePtr WithInputs(std::vector<NodePtr> inputs) const override { return MakeMap(inputs.at(0), function_, parallel_); }

 protected:
  StagePtr MakeStage(const IteratorContext& context) const override {
    StagePtr iterator = input()->MakeIterator(context);
    if (parallel_ == 1) return std::make_unique<MapIterator>(shared_from_this(), std::move(iterator), function_);
    return std::make_unique<ParallelMapIterator>(shared_from_this(), std::move(iterator), function_, parallel_);
  }

 private:
  const FunctionPtr function_;
  const int parallel_;
};

}  // namespace

NodePtr MakeMap(const NodePtr& input, std::shared_ptr<const ElementFunction> function, int num_parallel_calls) {
  CheckParameter(num_parallel_calls >= 1, "at least one parallel call of Map", num_parallel_calls);
  return std::make_shared<MapNode>(input, std::move(function), num_parallel_calls);
}

}  // namespace cohort::data
