// Map: applies a function to every element. MapIterator calls it on the caller's thread. ParallelMapIterator keeps
// several calls running on threads of its own (Fill) and returns their results in the order of the elements (Await). A
// position holds the inputs of the calls that have not been returned, so a restored iterator makes these calls again.
#include <deque>

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

// One running call. Until `done`, only the pool uses `output` and `status`.
struct Call {
  std::string position;  // of the input before this element, if positions are small
  Element input;
  Element output;
  Status status;
  Status input_status;  // the input failed: there is no call
  bool done = false;    // guarded by the iterator's mutex
};
using CallPtr = std::shared_ptr<Call>;

class ParallelMapIterator : public UnaryIterator {
 public:
  ParallelMapIterator(NodePtr node, StagePtr input, const FunctionPtr& function, int parallel)
      : UnaryIterator(std::move(node), std::move(input)),
        function_(*function),
        parallel_(static_cast<size_t>(parallel)),
        pool_("map", parallel) {}
  ~ParallelMapIterator() override {
    MutexLock lock(mu_);
    stopping_ = true;  // the pool drops what has not begun
  }
  bool Next(Element* out) override {
    Fill();
    if (calls_.empty()) return false;
    const CallPtr call = std::move(calls_.front());
    calls_.pop_front();
    Await(*call);
    Fill();  // while the consumer works on this one
    call->status.ThrowIfError();
    *out = std::move(call->output);
    return true;
  }
  void Save(WireWriter* out) override {
    if (small_) {
      out->String(calls_.empty() ? SavedPosition(*input_) : calls_.front()->position);
      return;
    }
    out->Varint(calls_.size());
    for (const CallPtr& call : calls_) WriteOutcome(call->input_status, call->input, out);
    input_->Save(out);
  }
  void Restore(WireReader* in) override {
    if (small_) {
      WireReader position(in->View());
      input_->Restore(&position);
      return;
    }
    for (uint64_t left = in->Varint(); left > 0; --left) {
      auto call = std::make_shared<Call>();
      ReadOutcome(in, &call->input_status, &call->input);
      Start(call);
    }
    input_->Restore(in);
  }
  bool HasSmallPosition() const override { return small_; }

 private:
  void Fill() {
    while (!input_ended_ && calls_.size() < parallel_) {
      auto call = std::make_shared<Call>();
      try {
        if (small_) call->position = SavedPosition(*input_);
        if (!input_->Next(&call->input)) {
          input_ended_ = true;
          return;
        }
      } catch (...) {
        call->input_status = Status::FromCurrentException();
      }
      Start(call);
    }
  }
  void Start(const CallPtr& call) {
    calls_.push_back(call);
    if (!call->input_status.ok()) {
      call->status = call->input_status;
      MutexLock lock(mu_);
      call->done = true;
      return;
    }
    pool_.Schedule([this, call] { Run(call.get()); });
  }
  void Run(Call* call) {
    {
      MutexLock lock(mu_);
      if (stopping_) return;
    }
    try {
      node_->Guard([&] { call->output = function_.Call(call->input); }, &call->input);
    } catch (...) {
      call->status = Status::FromCurrentException();
    }
    MutexLock lock(mu_);
    call->done = true;
    done_.NotifyAll();
  }
  // Waits until the function has returned or thrown for this call. There is no deadline, as in MapIterator::Next, which
  // calls the function itself. Every call is in the pool or done: the pool drops calls only after the destructor has
  // set `stopping_`, and then Next cannot be called any more.
  void Await(const Call& call) {
    MutexLock lock(mu_);
    while (!call.done) done_.Wait(mu_);
  }

  const ElementFunction& function_;  // the node's
  const size_t parallel_;
  const bool small_ = input_->HasSmallPosition();
  bool input_ended_ = false;
  std::deque<CallPtr> calls_;  // the consumer's
  Mutex mu_;
  CondVar done_;
  bool stopping_ COHORT_GUARDED_BY(mu_) = false;
  ThreadPool pool_;  // last: its threads end before what they use
};

class MapNode : public DatasetNode {
 public:
  MapNode(NodePtr input, FunctionPtr function, int num_parallel_calls)
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

NodePtr MakeMap(NodePtr input, std::shared_ptr<const ElementFunction> function, int num_parallel_calls) {
  CheckParameter(num_parallel_calls >= 1, "at least one parallel call of Map", num_parallel_calls);
  return std::make_shared<MapNode>(std::move(input), std::move(function), num_parallel_calls);
}

}  // namespace cohort::data
