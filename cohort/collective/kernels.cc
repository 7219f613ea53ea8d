// The kernels of the collective ops. A kernel asks the KernelGroup of its task for the communicator of its device
// (CollectiveKernel). If the group has to form first, the kernel continues when it has formed or when the step is
// cancelled. Then the kernel begins its collective, and the step continues when that has ended.
//
// On a device with memory of its own, the input stays there if the communicator takes it. Otherwise the kernel copies
// it to host memory, and the result back. In both cases the collective begins only when it is known that no kernel
// before it has found bad data, because the members would spread it.
#include "cohort/collective/kernels.h"

#include <atomic>

#include "cohort/collective/kernel_group.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/backend.h"
#include "cohort/device/reduction.h"
#include "cohort/ops/collective.h"
#include "cohort/runtime/kernels/waiting_kernel.h"
#include "cohort/runtime/placement/memory_placement.h"

namespace cohort {
namespace {

using collective::GroupOptions;
using collective::KernelGroup;

// Returns the group that a node's attributes name.
GroupOptions GroupOf(const KernelConstruction& c) {
  const ops::CollectiveKeys keys = ops::KeysOf(c.node);
  GroupOptions options;
  options.key = keys.group_key;
  options.generation = keys.generation;
  options.timeout = keys.timeout;
  options.progress_limit = keys.progress_limit;
  options.algorithm = collective::AlgorithmByName(keys.communication_hint);
  for (const std::string& member : keys.members) {
    options.members.push_back(DeviceName::Parse(member).CompletedFrom(c.device.attributes().name));
  }
  return options;
}

class CollectiveKernel : public WaitingKernel<WaitKind::kCollective> {
 public:
  explicit CollectiveKernel(const KernelConstruction& c)
      : size_(c.attr<int64_t>("group_size")),
        options_(GroupOf(c)),
        group_(KernelGroup::Of(c.device.resources(), options_.key)),
        device_number_(group_->DeviceNumber(c.device.name())),
        has_streams_(c.device.backend().has_streams()),
        always_on_host_(has_streams_ && c.device.backend().collectives() == nullptr),
        id_{c.attr<int64_t>("instance_key"), c.node.name(), ScheduleFor(c), has_streams_ ? &c.device : nullptr} {}

  void ComputeAsync(KernelContext& ctx, Done done) final {
    if (size_ == 1 && group_->communicator(device_number_) == nullptr) return Alone(ctx, done);
    if (!always_on_host_ || ctx.num_inputs() == 0) return Begin(ctx, Tensor(), std::move(done));
    // Copies before it asks for the group, because the copy waits for all work that is on the stream by then.
    CopyToHostInStep(ctx, ctx.input(0), [this, &ctx, done = std::move(done)](const Status& status, Tensor copy) {
      if (!status.ok()) return done(status);
      Begin(ctx, std::move(copy), done);
    });
  }

 protected:
  // Begins the collective. `input` is the kernel's input in the memory in which the communicator takes it. It is
  // undefined if the kernel has no input.
  virtual void Call(Communicator& communicator, KernelContext& ctx, Tensor input, Communicator::Done done) = 0;
  // Computes the result of a group with one member.
  virtual void CallAlone(KernelContext& ctx) { ctx.SetOutput(0, PlacedAs(ctx, 0, ctx.input(0))); }
  const CollectiveId& id() const { return id_; }
  bool has_streams() const { return has_streams_; }
  // Returns whether the result of Call comes in device memory.
  bool RunsOnDevice(const Communicator& communicator, const KernelContext& ctx) const {
    return has_streams_ && communicator.TakesDeviceMemory(ctx.device());
  }

 private:
  // Returns the schedule of the node's graph: a partition, or the body of a function.
  std::shared_ptr<const collective::StepSchedule> ScheduleFor(const KernelConstruction& c) const {
    if (size_ == 1) return nullptr;
    return group_->Share(c.device.name(), collective::ScheduleOf(c.node.graph(), options_.key, options_.generation));
  }

  // `copy` is the input in host memory if the kernel has copied it already, else undefined.
  void Begin(KernelContext& ctx, Tensor copy, Done done) {
    std::shared_ptr<Communicator> communicator = group_->communicator(device_number_);
    if (!options_.members.empty() && (communicator == nullptr || !communicator->status().ok())) {
      return Ask(ctx, std::move(copy), done);
    }
    Run(std::move(communicator), ctx, std::move(copy), std::move(done));
  }

  void Alone(KernelContext& ctx, const Done& done) {
    try {
      CallAlone(ctx);
    } catch (...) {
      return done(Status::FromCurrentException());
    }
    done(Status());
  }

  // Called when the group has formed, unless the step is cancelled before.
  void Ask(KernelContext& ctx, Tensor copy, const Done& done) {
    CancellationManager* manager = ctx.step().cancellation;
    const auto token = std::make_shared<CancellationManager::Token>(CancellationManager::kAlreadyCancelled);
    const auto on_answer = [this, &ctx, copy = std::move(copy), manager, token, done,
                            answered = std::make_shared<std::atomic<bool>>(false)](
                               const Status& status, std::shared_ptr<Communicator> communicator) {
      if (answered->exchange(true)) return;  // either the group's answer or the cancellation, whichever is first
      // The cancellation has removed the callback. It may happen before `token` is set.
      if (manager != nullptr && !manager->cancelled()) manager->Deregister(*token);
      if (!status.ok()) {
        return done(Status(status.code(),
                           StrCat("[collective] '", id_.name, "' (instance ", id_.instance, "): ", status.message())));
      }
      Run(std::move(communicator), ctx, copy, done);
    };
    if (manager != nullptr) {
      *token = manager->Register([on_answer](const Status& why) { on_answer(why, nullptr); });
      if (*token == CancellationManager::kAlreadyCancelled) return done(manager->status());
    }
    group_->Ask(options_, ctx.device().name(), on_answer);
  }

  void Run(std::shared_ptr<Communicator> communicator, KernelContext& ctx, Tensor copy, Done done) {
    const Status usable = Check(communicator.get(), ctx);
    if (!usable.ok()) return done(usable);
    CancellationManager* cancellation = ctx.step().cancellation;
    CancellationManager::Token token = CancellationManager::kAlreadyCancelled;
    if (cancellation != nullptr) {
      token = cancellation->Register([communicator](const Status& why) { communicator->Abort(why); });
      if (token == CancellationManager::kAlreadyCancelled) return done(cancellation->status());
    }
    const auto on_end = [&ctx, cancellation, token, done = std::move(done)](Status status, Tensor value) {
      if (cancellation != nullptr) cancellation->Deregister(token);
      try {
        if (status.ok() && ctx.num_outputs() > 0) ctx.SetOutput(0, PlacedAs(ctx, 0, std::move(value)));
      } catch (...) {
        status = Status::FromCurrentException();
      }
      done(status);
    };
    if (copy.defined()) return Call(*communicator, ctx, std::move(copy), on_end);
    if (!has_streams_) return Call(*communicator, ctx, ctx.num_inputs() > 0 ? ctx.input(0) : Tensor(), on_end);
    Bring(*communicator, ctx, [this, communicator, &ctx, on_end](const Status& status, Tensor input) {
      if (!status.ok()) return on_end(status, Tensor());
      Call(*communicator, ctx, std::move(input), on_end);
    });
  }

  // Calls `begin` once, with the input in the memory in which the communicator takes it, when no kernel before this one
  // can report bad data any more. If one has, `begin` gets its error.
  static void Bring(const Communicator& communicator, KernelContext& ctx, Device::CopyDone begin) {
    Tensor input;
    try {
      if (ctx.num_inputs() > 0) input = ctx.input(0);
      if (input.defined() && !communicator.TakesDeviceMemory(ctx.device())) {
        return CopyToHostInStep(ctx, input, std::move(begin));
      }
      if (input.defined() && input.space().is_host()) input = ctx.device().CopyFromHostAsync(input);
      const DeviceCollectives* collectives = ctx.device().backend().collectives();
      if (collectives != nullptr && collectives->MayStillFail(ctx)) return AwaitChecks(ctx, input, std::move(begin));
    } catch (...) {
      return begin(Status::FromCurrentException(), Tensor());
    }
    begin(Status(), std::move(input));
  }
  static void AwaitChecks(KernelContext& ctx, const Tensor& input, Device::CopyDone begin) {
    ctx.device().compute_stream()->Record()->OnReady([&ctx, input, begin = std::move(begin)](const Status& reached) {
      ctx.device().RunOnHost([&ctx, input, begin, reached] {
        const StepError* const error = ctx.step().error;
        begin(reached.ok() && error != nullptr ? error->status() : reached, input);
      });
    });
  }

  Status Check(const Communicator* communicator, const KernelContext& ctx) const {
    if (communicator == nullptr) {
      return Status(Code::kFailedPrecondition,
                    StrCat("[collective] expected a group ", options_.key, " with a member on ", ctx.device().name(),
                           "; none was joined and published here: name the members in the graph, or join the group "
                           "(JoinGroup, Publish) before the step"));
    }
    if (communicator->size() != size_) {
      return Status(Code::kInvalidArgument, StrCat("[collective] expected ", size_, " members (group_size) of group ",
                                                   options_.key, "; it has ", communicator->size()));
    }
    return {};
  }

  const int64_t size_;
  const GroupOptions options_;  // without members if the program joins the group
  const std::shared_ptr<KernelGroup> group_;
  const size_t device_number_;
  const bool has_streams_;
  const bool always_on_host_;  // no communicator takes the device's memory
  const CollectiveId id_;
};

class ReduceKernel final : public CollectiveKernel {
 public:
  explicit ReduceKernel(const KernelConstruction& c) : CollectiveKernel(c), op_(collective::ReduceOpOf(c.node)) {}

 private:
  void Call(Communicator& communicator, KernelContext&, Tensor input, Communicator::Done done) override {
    communicator.AllReduceAsync(id(), std::move(input), op_, std::move(done));
  }
  const ReduceOp op_;
};

class ReduceScatterKernel final : public CollectiveKernel {
 public:
  explicit ReduceScatterKernel(const KernelConstruction& c)
      : CollectiveKernel(c), op_(collective::ReduceOpOf(c.node)) {}

 private:
  void Call(Communicator& communicator, KernelContext&, Tensor input, Communicator::Done done) override {
    communicator.ReduceScatterAsync(id(), std::move(input), op_, std::move(done));
  }
  const ReduceOp op_;
};

class GatherKernel final : public CollectiveKernel {
 public:
  using CollectiveKernel::CollectiveKernel;

 private:
  void Call(Communicator& communicator, KernelContext&, Tensor input, Communicator::Done done) override {
    communicator.AllGatherAsync(id(), std::move(input), std::move(done));
  }
  void CallAlone(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ctx.SetOutput(0, PlacedAs(ctx, 0, input.shape().rank() == 0 ? input.Reshaped(Shape{1}) : input));
  }
};

class BcastSendKernel final : public CollectiveKernel {
 public:
  using CollectiveKernel::CollectiveKernel;

 private:
  void Call(Communicator& communicator, KernelContext&, Tensor input, Communicator::Done done) override {
    if (communicator.rank() != 0) {
      return done(Status(Code::kInvalidArgument,
                         StrCat("[collective] expected CollectiveBcastSend at rank 0; got rank ", communicator.rank())),
                  Tensor());
    }
    communicator.BroadcastAsync(id(), std::move(input), 0, std::move(done));
  }
};

class BcastRecvKernel final : public CollectiveKernel {
 public:
  explicit BcastRecvKernel(const KernelConstruction& c)
      : CollectiveKernel(c), dtype_(c.attr<DType>("T")), shape_(c.attr<Shape>("shape")) {}

 private:
  void Call(Communicator& communicator, KernelContext& ctx, Tensor, Communicator::Done done) override {
    if (communicator.rank() == 0) {
      return done(Status(Code::kInvalidArgument, "[collective] rank 0 sends; got CollectiveBcastRecv there"), Tensor());
    }
    // Its elements do not matter; the memory says where the result comes.
    Tensor place = RunsOnDevice(communicator, ctx) ? Tensor(dtype_, shape_, ctx.device().allocator())
                   : has_streams()                 ? Tensor(dtype_, shape_)
                                                   : ctx.AllocateTemp(dtype_, shape_);
    communicator.BroadcastAsync(id(), std::move(place), 0, std::move(done));
  }
  void CallAlone(KernelContext&) override {
    throw InvalidArgumentError("[collective] a group of one has nobody who sends to CollectiveBcastRecv");
  }
  const DType dtype_;
  const Shape shape_;
};

class BarrierKernel final : public CollectiveKernel {
 public:
  using CollectiveKernel::CollectiveKernel;

 private:
  void Call(Communicator& communicator, KernelContext&, Tensor, Communicator::Done done) override {
    communicator.BarrierAsync(id(), std::move(done));
  }
  void CallAlone(KernelContext&) override {}
};

}  // namespace

void RegisterCollectiveKernels(KernelRegistry& registry) {
  registry.RegisterHost<ReduceKernel>("CollectiveReduce", KernelMemory::kEither);
  registry.RegisterHost<ReduceScatterKernel>("CollectiveReduceScatter", KernelMemory::kEither);
  registry.RegisterHost<GatherKernel>("CollectiveGather", KernelMemory::kEither);
  registry.RegisterHost<BcastSendKernel>("CollectiveBcastSend", KernelMemory::kEither);
  registry.RegisterHost<BcastRecvKernel>("CollectiveBcastRecv", KernelMemory::kEither);
  registry.RegisterHost<BarrierKernel>("CollectiveBarrier", KernelMemory::kEither);
}

}  // namespace cohort
