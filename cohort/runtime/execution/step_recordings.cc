// StepRecordings. A step takes its turn (TakeTurn), looks for the entry of its feeds' shapes (Find), and is enqueued
// from the entry's recording (Enqueue), which is made if this is the second step of the entry (Record). If any of this
// is not possible, the step is launched. While a step is recorded, its kernels run as in a launched step, one by one in
// the plan's order (EnqueueNodes), but on memory of the recording, and the device keeps what they enqueue.
#include "cohort/runtime/execution/step_recordings.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/logical_devices.h"
#include "cohort/runtime/placement/memory_placement.h"

namespace cohort {
namespace {

// A fed value that is read on the host is a part of a recording's key. Larger ones are not compared.
constexpr size_t kMostHostBytes = 4096;
// If there was too little memory to copy the next args, so many steps do not ask for it.
constexpr int kStepsWithoutCopies = 32;
// So often a recording may fail for a reason that may pass.
constexpr int kMostFailures = 3;
// If so many recordings did not serve twice as many steps, they were not worth their cost: steps then have to be
// launched twice as often before they are recorded.
constexpr int64_t kMostIdleRecordings = 16;
constexpr int64_t kMostPatience = 1024;
// How long the thread of a step in mode kInline waits for the stream itself, which is faster than to be woken by the
// compute thread. After that the thread has to be free, because it may watch a time limit.
constexpr std::chrono::milliseconds kInlineWait{20};
constexpr std::chrono::hours kLong{24};

bool IsArg(const PlanNode& node) { return node.node->op_name() == "_Arg"; }
bool IsRetval(const PlanNode& node) { return node.node->op_name() == "_Retval"; }
// Returns whether both are the same part of one buffer.
bool IsSame(const Tensor& a, const Tensor& b) {
  return a.buffer().get() == b.buffer().get() && a.raw_data() == b.raw_data() && a.dtype() == b.dtype() &&
         a.shape() == b.shape();
}
size_t IndexOf(const PlanNode& node) { return static_cast<size_t>(node.node->attr<int64_t>("index")); }

}  // namespace

// The steps whose feeds have certain dtypes and shapes.
struct StepRecordings::Entry {
  struct Feed {
    DType dtype;
    Shape shape;
    Tensor value;  // if it is read on the host
  };
  std::vector<Feed> feeds;  // of args_
  // How many steps have ended without an error, since the last recording. If it is not 0, what the kernels keep has
  // been made.
  int64_t launched = 0;
  std::unique_ptr<RecordedStep> recorded;
};

std::unique_ptr<StepRecordings> StepRecordings::For(const Plan& plan) {
  StepRecorder* const recorder = plan.device.step_recorder();
  if (recorder == nullptr) return nullptr;
  (void)config::StepRecordingEnabled();  // a wrong value in the environment is an error here, and not inside of a step
  return std::make_unique<StepRecordings>(plan, *recorder);
}

StepRecordings::StepRecordings(const Plan& plan, StepRecorder& recorder) : plan_(plan), recorder_(recorder) {
  for (const PlanNode& node : plan.nodes) {
    if (IsArg(node)) {
      const bool on_host = LiesInHostMemory(node.node->output(0));
      args_.push_back({IndexOf(node), on_host});
      if (DTypeSize(node.node->output_dtype(0)) != 0) continue;
      why_not_ = StrCat("the fed value ", node.node->name(), " has no numbers");
      return;
    } else if (!IsRetval(node)) {
      const std::string why = recorder.WhyNot(*node.node, *node.kernel);
      if (why.empty()) continue;
      why_not_ = StrCat(node.node->Describe(), " is there: ", why);
      // The program does not know the copies that the runtime has added; the reader of one tells more.
      if (node.node->name()[0] != '_') return;
    }
  }
}

StepRecordings::~StepRecordings() = default;

bool StepRecordings::Wants(const StepInfo& step) {
  if (refused_.load(std::memory_order_relaxed)) return false;
  if (!why_not_.empty()) {
    if (++steps_ == 2) Refuse(why_not_);  // a step that runs once, such as an initializer, would not be recorded anyway
    return false;
  }
  if (step.caller == nullptr && !step.closure.valid() && step.trace == nullptr && config::StepRecordingEnabled()) {
    return true;
  }
  ++copies_end_;
  return false;
}

void StepRecordings::Refuse(const std::string& why) {
  if (!refused_.exchange(true)) LogInfo("step", DescribeSteps(), " are not recorded, because ", why);
}

std::string StepRecordings::DescribeSteps() const {
  const Node* last = plan_.nodes.empty() ? nullptr : plan_.nodes.back().node;
  return StrCat("the steps of the ", plan_.nodes.size(), " nodes on ", plan_.device.name(), " that end with ",
                last == nullptr ? "nothing" : last->name());
}

bool StepRecordings::TakeTurn(bool direct, std::function<void()> go) {
  MutexLock lock(mu_);
  if (taken_) {
    waiting_.push_back({direct, std::move(go)});
    return false;
  }
  taken_ = true;
  return true;
}

void StepRecordings::EndTurn() {
  current_ = nullptr;
  with_copies_.clear();
  Waiting next;
  {
    MutexLock lock(mu_);
    if (waiting_.empty()) {
      taken_ = false;
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  next.direct ? next.go() : plan_.device.RunOnHost(std::move(next.go));
}

Status StepRecordings::Run(const StepInfo& step, const LaunchSync& launch, const NextArgs& next) {
  if (!Wants(step)) return launch();
  // The turn may end on the compute thread, which must not wait for it.
  if (plan_.device.compute_thread().IsOwnThread()) {
    ++copies_end_;
    return launch();
  }
  struct Turn {
    Mutex mu;
    CondVar changed;
    bool mine COHORT_GUARDED_BY(mu) = false;
  };
  const auto turn = std::make_shared<Turn>();
  const auto go = [turn] {
    MutexLock lock(turn->mu);
    turn->mine = true;
    turn->changed.NotifyAll();
  };
  if (!TakeTurn(true, go)) {
    MutexLock lock(turn->mu);
    while (!turn->mine) turn->changed.Wait(turn->mu);  // ends: no kernel of the steps before this one waits
  }
  Status status;
  try {
    if (Enqueue(step)) {
      const std::shared_ptr<StreamEvent> event = plan_.device.compute_stream()->Record();
      if (next) CopyAhead(step, next);
      status = Ended(step, event->Synchronize(std::chrono::steady_clock::now() + kLong));
    } else {
      status = launch();
      Launched(status);
    }
  } catch (...) {
    status = Status::FromCurrentException();
  }
  EndTurn();
  return status;
}

void StepRecordings::Start(const StepInfo& step, StepMode mode, Done done, LaunchAsync launch, const NextArgs* next) {
  if (!Wants(step)) return launch(mode, std::move(done));
  const bool here = mode == StepMode::kInline;
  auto later = [this, &step, done, launch] { Begin(step, StepMode::kDevice, done, launch, nullptr); };
  if (!TakeTurn(false, later)) return;
  here ? Begin(step, mode, std::move(done), launch, next) : plan_.device.RunOnHost(std::move(later));
}

void StepRecordings::Begin(const StepInfo& step, StepMode mode, Done done, const LaunchAsync& launch,
                           const NextArgs* next) {
  // The turn ends before `done` is called, which may free the executor.
  const auto end = [this, done = std::move(done)](const Status& status) {
    EndTurn();
    done(status);
  };
  bool enqueued = false;
  try {
    enqueued = Enqueue(step);
  } catch (...) {
    return end(Status::FromCurrentException());
  }
  if (!enqueued) {
    return launch(mode, [this, end](const Status& status) {
      Launched(status);
      end(status);
    });
  }
  const std::shared_ptr<StreamEvent> event = plan_.device.compute_stream()->Record();
  if (mode == StepMode::kInline) {
    if (next != nullptr) CopyAhead(step, *next);
    const Status status = event->Synchronize(std::chrono::steady_clock::now() + kInlineWait);
    if (status.code() != Code::kDeadlineExceeded) return end(Ended(step, status));
  }
  event->OnReady([this, &step, end](const Status& status) {
    plan_.device.RunOnHost([this, &step, end, status] { end(Ended(step, status)); });
  });
}

bool StepRecordings::Enqueue(const StepInfo& step) {
  current_ = &Find(step.args);
  const std::span<const Tensor> args = TakeCopies(step);
  if (current_->launched == 0 || refused_) return false;
  UpdateGate& gate = plan_.device.task().update_gate;
  const bool updates = plan_.update_nodes > 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (current_->recorded == nullptr && !Record(step)) return false;
    if (step.cancellation != nullptr && step.cancellation->cancelled()) return false;
    if (updates && !gate.TryEnterStep()) return false;
    auto outcome = RecordedStep::Outcome::kNotNow;
    try {
      if (!updates || !gate.observed()) outcome = current_->recorded->Enqueue(args);
    } catch (...) {
      if (updates) gate.LeaveStep();
      throw;
    }
    if (updates) gate.LeaveStep();  // all updates are enqueued
    if (outcome == RecordedStep::Outcome::kEnqueued) {
      ++replays_;
      return true;
    }
    if (outcome == RecordedStep::Outcome::kNotNow) return false;
    // The variables are where they are for all recordings.
    for (const auto& entry : entries_) entry->recorded.reset();
  }
  return false;
}

void StepRecordings::CopyAhead(const StepInfo& step, const NextArgs& next) {
  if (without_copies_ > 0) {
    --without_copies_;
    return;
  }
  std::vector<Tensor> args;
  ahead_begin_ = copies_end_;
  try {
    args = next();
  } catch (...) {
    LogDebug("step", "the next feeds are not known: ", Status::FromCurrentException().message());
    return;
  }
  try {
    const auto uses = [&](const auto& entry) { return entry->recorded != nullptr && Matches(*entry, args); };
    if (args.size() != step.args.size() || std::none_of(entries_.begin(), entries_.end(), uses)) return;
    for (const Arg& arg : args_) {
      const Tensor& value = args[arg.index];
      if (arg.on_host || !value.space().is_host() || value.bytes() == 0) continue;
      Tensor copy = recorder_.CopyAhead(value);
      if (!copy.defined()) {
        without_copies_ = kStepsWithoutCopies;
        if (std::exchange(told_no_room_, true)) return;
        LogInfo("step", "not all feeds of ", DescribeSteps(), " are copied ahead, because ", plan_.device.name(),
                " has no free memory for ", value.bytes(), " bytes");
        return;
      }
      ahead_.push_back({arg.index, value, std::move(copy)});
    }
  } catch (...) {
    // If the device has failed, this step says so.
    LogDebug("step", "feeds are not copied ahead: ", Status::FromCurrentException().message());
  }
}

void StepRecordings::DropNext() {
  ++copies_end_;
  {
    MutexLock lock(mu_);
    if (taken_) return;
    taken_ = true;
  }
  ahead_.clear();
  EndTurn();
}

std::span<const Tensor> StepRecordings::TakeCopies(const StepInfo& step) {
  if (ahead_.empty()) return step.args;
  with_copies_.assign(step.args.begin(), step.args.end());
  for (Ahead& ahead : ahead_) {
    Tensor& value = with_copies_[ahead.index];
    if (ahead_begin_ == copies_end_ && IsSame(ahead.value, value)) value = std::move(ahead.copy);
  }
  ahead_.clear();
  return with_copies_;
}

bool StepRecordings::Matches(const Entry& entry, std::span<const Tensor> args) const {
  for (size_t i = 0; i < args_.size(); ++i) {
    const Tensor& value = args[args_[i].index];
    const Entry::Feed& feed = entry.feeds[i];
    if (value.dtype() != feed.dtype || value.shape() != feed.shape) return false;
    if (!args_[i].on_host) continue;
    if (!feed.value.defined() || !value.space().is_host()) return false;
    if (std::memcmp(feed.value.raw_data(), value.raw_data(), value.bytes()) != 0) return false;
  }
  return true;
}

StepRecordings::Entry& StepRecordings::Find(std::span<const Tensor> args) {
  const auto found =
      std::find_if(entries_.rbegin(), entries_.rend(), [&](const auto& entry) { return Matches(*entry, args); });
  if (found != entries_.rend()) {
    std::rotate(std::prev(found.base()), found.base(), entries_.end());
    return *entries_.back();
  }
  if (entries_.size() == kMostShapes) entries_.erase(entries_.begin());
  auto entry = std::make_unique<Entry>();
  for (const Arg& arg : args_) {
    const Tensor& value = args[arg.index];
    const bool compares = arg.on_host && value.space().is_host() && value.bytes() <= kMostHostBytes;
    if (arg.on_host && !compares) Refuse(StrCat("kernels read a fed value of ", value.bytes(), " bytes on the host"));
    entry->feeds.push_back({value.dtype(), value.shape(), compares ? value.Clone() : Tensor()});
  }
  entries_.push_back(std::move(entry));
  return *entries_.back();
}

bool StepRecordings::Record(const StepInfo& step) {
  if (records_ >= kMostIdleRecordings && replays_ < 2 * records_ && patience_ < kMostPatience) {
    patience_ *= 2;
    LogInfo("step", DescribeSteps(), " are recorded from now on when ", patience_,
            " of the same shapes have been launched, because their variables move, or their feeds have new shapes, too "
            "often: ",
            records_, " recordings served only ", replays_, " steps");
    records_ = replays_ = 0;
  }
  if (current_->launched < patience_) return false;
  try {
    current_->recorded =
        recorder_.Record([&](StepRecorder::Recording& recording) { EnqueueNodes(recording, step.args); });
    ++records_;
    current_->launched = 1;
    failures_ = 0;
    return true;
  } catch (const Error& error) {
    const bool may_pass = error.code() != Code::kUnimplemented && error.code() != Code::kInternal;
    if (!may_pass || ++failures_ == kMostFailures) Refuse(StrCat("this failed: ", error.what()));
    return false;
  }
}

void StepRecordings::EnqueueNodes(StepRecorder::Recording& recording, std::span<const Tensor> args) const {
  std::vector<Tensor> slots(plan_.initial_uses.size());
  std::vector<int32_t> uses = plan_.initial_uses;
  for (const auto& [slot, value] : plan_.constants) slots[static_cast<size_t>(slot)] = value;
  StepError error;
  StepInfo step;
  step.error = &error;
  for (const PlanNode& node : plan_.nodes) {
    if (!IsArg(node)) continue;
    const Tensor& value = args[IndexOf(node)];
    const bool on_host = LiesInHostMemory(node.node->output(0));
    slots[static_cast<size_t>(node.output_begin)] = on_host ? value : recording.Feed(IndexOf(node), value);
  }
  for (const PlanNode& node : plan_.nodes) {
    if (IsArg(node)) {
      // Its value is there.
    } else if (IsRetval(node)) {
      recording.Fetch(IndexOf(node), slots[static_cast<size_t>(plan_.InputSlots(node)[0])]);
    } else {
      KernelContext context(*node.node, plan_.device, step, slots.data(), plan_.InputSlots(node),
                            slots.data() + node.output_begin, uses.data());
      context.set_allocator(recording.allocator());
      node.kernel->Compute(context);
    }
    for (const int32_t slot : plan_.InputSlots(node)) {
      if (--uses[static_cast<size_t>(slot)] == 0) slots[static_cast<size_t>(slot)].Reset();
    }
    for (int32_t slot = node.output_begin; slot < node.output_begin + node.num_outputs; ++slot) {
      if (uses[static_cast<size_t>(slot)] == 0) slots[static_cast<size_t>(slot)].Reset();
    }
  }
}

void StepRecordings::Launched(const Status& status) {
  if (status.ok()) ++current_->launched;
}

Status StepRecordings::Ended(const StepInfo& step, const Status& of_device) {
  if (!of_device.ok()) return of_device;
  try {
    return current_->recorded->Finish(step.rets);
  } catch (...) {
    return Status::FromCurrentException();
  }
}

}  // namespace cohort
