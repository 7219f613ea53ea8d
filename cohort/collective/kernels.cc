// The kernels of the collective ops. A kernel asks the KernelGroup of its task for the communicator of its device
// (CollectiveKernel). If the group has to form first, the kernel continues when it has formed or when the step is
// cancelled. Then the kernel begins its collective, and the step continues when that has ended.
#include "cohort/collective/kernels.h"

#include <atomic>

#include "cohort/collective/kernel_group.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/reduction.h"
#include "cohort/ops/collective.h"
#include "cohort/runtime/kernels/waiting_kernel.h"

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
        id_{c.attr<int64_t>("instance_key"), c.node.name(), ScheduleFor(c)} {}

  void ComputeAsync(KernelContext& ctx, Done done) final {
    std::shared_ptr<Communicator> communicator = group_->communicator(device_number_);
    if (communicator == nullptr && size_ == 1) return Alone(ctx, done);
    if (!options_.members.empty() && (communicator == nullptr || !communicator->status().ok())) {
      return Ask(ctx, done);
    }
    Run(std::move(communicator), ctx, std::move(done));
  }

 protected:
  virtual void Call(Communicator& communicator, KernelContext& ctx, Communicator::Done done) = 0;
  // Computes the result of a group with one member.
  virtual void CallAlone(KernelContext& ctx) { ctx.SetOutput(0, ctx.input(0)); }
  const CollectiveId& id() const { return id_; }

 private:
  // Returns the schedule of the node's graph: a partition, or the body of a function.
  std::shared_ptr<const collective::StepSchedule> ScheduleFor(const KernelConstruction& c) const {
    if (size_ == 1) return nullptr;
    return group_->Share(c.device.name(), collective::ScheduleOf(c.node.graph(), options_.key, options_.generation));
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
  void Ask(KernelContext& ctx, const Done& done) {
    CancellationManager* manager = ctx.step().cancellation;
    const auto token = std::make_shared<CancellationManager::Token>(CancellationManager::kAlreadyCancelled);
    const auto on_answer = [this, &ctx, manager, token, done, answered = std::make_shared<std::atomic<bool>>(false)](
                               const Status& status, std::shared_ptr<Communicator> communicator) {
      if (answered->exchange(true)) return;  // either the group's answer or the cancellation, whichever is first
      // The cancellation has removed the callback. It may happen before `token` is set.
      if (manager != nullptr && !manager->cancelled()) manager->Deregister(*token);
      if (!status.ok()) {
        return done(Status(status.code(),
                           StrCat("[collective] '", id_.name, "' (instance ", id_.instance, "): ", status.message())));
      }
      Run(std::move(communicator), ctx, done);
    };
    if (manager != nullptr) {
      *token = manager->Register([on_answer](const Status& why) { on_answer(why, nullptr); });
      if (*token == CancellationManager::kAlreadyCancelled) return done(manager->status());
    }
    group_->Ask(options_, ctx.device().name(), on_answer);
  }

  void Run(std::shared_ptr<Communicator> communicator, KernelContext& ctx, Done done) {
    const Status usable = Check(communicator.get(), ctx);
    if (!usable.ok()) return done(usable);
    CancellationManager* cancellation = ctx.step().cancellation;
    CancellationManager::Token token = CancellationManager::kAlreadyCancelled;
    if (cancellation != nullptr) {
      token = cancellation->Register([communicator](const Status& why) { communicator->Abort(why); });
      if (token == CancellationManager::kAlreadyCancelled) return done(cancellation->status());
    }
    Call(*communicator, ctx, [&ctx, cancellation, token, done = std::move(done)](const Status& status, Tensor value) {
      if (cancellation != nullptr) cancellation->Deregister(token);
      if (status.ok() && ctx.num_outputs() > 0) ctx.SetOutput(0, std::move(value));
      done(status);
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
  const CollectiveId id_;
};

class ReduceKernel final : public CollectiveKernel {
 public:
  explicit ReduceKernel(const KernelConstruction& c) : CollectiveKernel(c), op_(collective::ReduceOpOf(c.node)) {}

 private:
  void Call(Communicator& communicator, KernelContext& ctx, Communicator::Done done) override {
    communicator.AllReduceAsync(id(), ctx.input(0), op_, std::move(done));
  }
  const ReduceOp op_;
};

class ReduceScatterKernel final : public CollectiveKernel {
 public:
  explicit ReduceScatterKernel(const KernelConstruction& c)
      : CollectiveKernel(c), op_(collective::ReduceOpOf(c.node)) {}

 private:
  void Call(Communicator& communicator, KernelContext& ctx, Communicator::Done done) override {
    communicator.ReduceScatterAsync(id(), ctx.input(0), op_, std::move(done));
  }
  const ReduceOp op_;
};

class GatherKernel final : public CollectiveKernel {
 public:
  using CollectiveKernel::CollectiveKernel;

 private:
  void Call(Communicator& communicator, KernelContext& ctx, Communicator::Done done) override {
    communicator.AllGatherAsync(id(), ctx.input(0), std::move(done));
  }
  void CallAlone(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    ctx.SetOutput(0, input.shape().rank() == 0 ? input.Reshaped(Shape{1}) : input);
  }
};

class BcastSendKernel final : public CollectiveKernel {
 public:
  using CollectiveKernel::CollectiveKernel;

 private:
  void Call(Communicator& communicator, KernelContext& ctx, Communicator::Done done) override {
    if (communicator.rank() != 0) {
      return done(Status(Code::kInvalidArgument,
                         StrCat("[collective] expected CollectiveBcastSend at rank 0; got rank ", communicator.rank())),
                  Tensor());
    }
    communicator.BroadcastAsync(id(), ctx.input(0), 0, std::move(done));
  }
};

class BcastRecvKernel final : public CollectiveKernel {
 public:
  explicit BcastRecvKernel(const KernelConstruction& c)
      : CollectiveKernel(c), dtype_(c.attr<DType>("T")), shape_(c.attr<Shape>("shape")) {}

 private:
  void Call(Communicator& communicator, KernelContext& ctx, Communicator::Done done) override {
    if (communicator.rank() == 0) {
      return done(Status(Code::kInvalidArgument, "[collective] rank 0 sends; got CollectiveBcastRecv there"), Tensor());
    }
    communicator.BroadcastAsync(id(), ctx.AllocateTemp(dtype_, shape_), 0, std::move(done));
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
  void Call(Communicator& communicator, KernelContext&, Communicator::Done done) override {
    communicator.BarrierAsync(id(), std::move(done));
  }
  void CallAlone(KernelContext&) override {}
};

}  // namespace

void RegisterCollectiveKernels(KernelRegistry& registry) {
  registry.RegisterHost<ReduceKernel>("CollectiveReduce");
  registry.RegisterHost<ReduceScatterKernel>("CollectiveReduceScatter");
  registry.RegisterHost<GatherKernel>("CollectiveGather");
  registry.RegisterHost<BcastSendKernel>("CollectiveBcastSend");
  registry.RegisterHost<BcastRecvKernel>("CollectiveBcastRecv");
  registry.RegisterHost<BarrierKernel>("CollectiveBarrier");
}

}  // namespace cohort
