// Kernels of queues. A queue lies in host memory and is found in the task's ResourceManager
// (runtime/data_flow/queue.h). All kernels that may let another kernel go on are asynchronous, because the other
// kernel's step then continues on this thread.
#include <memory>
#include <utility>

#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/data_flow/queue.h"
#include "cohort/runtime/kernels/runtime_kernels.h"
#include "cohort/runtime/kernels/waiting_kernel.h"

namespace cohort {
namespace {

std::shared_ptr<QueueResource> QueueOf(const KernelContext& ctx) {
  return ResourceOf<QueueResource>(ctx.input(0)).shared_from_this();
}

QueueSpec QueueSpecOf(const KernelConstruction& c, bool shuffles) {
  QueueSpec spec;
  spec.name = c.attr<std::string>("shared_name");
  if (spec.name.empty()) spec.name = c.node.name();
  spec.component_types = c.attr<std::vector<DType>>("component_types");
  spec.shapes = c.attr<std::vector<Shape>>("shapes");
  spec.capacity = c.attr<int64_t>("capacity");
  if (spec.capacity == 0) {
    throw InvalidArgumentError(
        StrCat("[queue] expected a capacity of at least 1 for '", spec.name, "', or -1 for no limit; got 0"));
  }
  if (!spec.shapes.empty() && spec.shapes.size() != spec.component_types.size()) {
    throw InvalidArgumentError(
        StrCat("[queue] Different number of component types. Types: ", spec.component_types.size(),
               ", Shapes: ", spec.shapes.size(), " for '", spec.name, "'"));
  }
  for (const Shape& shape : spec.shapes) {
    if (shape.IsFullyDefined()) continue;
    throw InvalidArgumentError(
        StrCat("[queue] All shapes must be fully defined, but found ", shape, " for '", spec.name, "'"));
  }
  if (!shuffles) return spec;
  spec.min_after_dequeue = c.attr<int64_t>("min_after_dequeue");
  spec.seed = c.attr<int64_t>("seed");
  spec.seed2 = c.attr<int64_t>("seed2");
  if (spec.capacity > 0 && spec.min_after_dequeue >= spec.capacity) {
    throw InvalidArgumentError(StrCat("[queue] min_after_dequeue ", spec.min_after_dequeue, " must be < capacity ",
                                      spec.capacity, " for '", spec.name, "'"));
  }
  return spec;
}

// FIFOQueueV2, RandomShuffleQueueV2: outputs the handle of the queue (container, shared_name or the node's name). Makes
// the queue if there is none. Looks it up again only after a Clear of the ResourceManager.
template <typename Q>
class QueueHandleKernel final : public OpKernel {
 public:
  explicit QueueHandleKernel(const KernelConstruction& c)
      : container_(c.attr<std::string>("container")), spec_(QueueSpecOf(c, std::is_same_v<Q, ShuffleQueueResource>)) {}

  void Compute(KernelContext& ctx) override {
    ResourceManager& resources = ctx.device().resources();
    const int64_t epoch = resources.epoch();  // read before the look-up, so that a later Clear is seen the next time
    MutexLock lock(mu_);
    if (!handle_.defined() || epoch != epoch_) {
      const auto queue =
          resources.LookupOrCreate<Q>(container_, spec_.name, [&] { return std::make_shared<Q>(spec_); });
      queue->CheckIsAs(spec_);
      handle_ = MakeResourceHandle(queue);
      epoch_ = epoch;
    }
    ctx.SetOutput(0, handle_);
  }

 private:
  const std::string container_;
  const QueueSpec spec_;
  Mutex mu_;
  Tensor handle_ COHORT_GUARDED_BY(mu_);
  int64_t epoch_ COHORT_GUARDED_BY(mu_) = -1;
};

void CheckTimeout(const KernelConstruction& c) {
  const int64_t timeout = c.attr<int64_t>("timeout_ms");
  if (timeout == -1) return;
  throw InvalidArgumentError(StrCat("[queue] Timeout not supported yet: expected timeout_ms -1 of '", c.node.name(),
                                    "', got ", timeout, "; give the run a timeout (RunOptions::timeout)"));
}

template <bool kMany>
class EnqueueKernel final : public WaitingKernel<WaitKind::kOtherSteps> {
 public:
  explicit EnqueueKernel(const KernelConstruction& c) { CheckTimeout(c); }

  void ComputeAsync(KernelContext& ctx, Done done) override {
    const std::shared_ptr<QueueResource> queue = QueueOf(ctx);
    QueueResource::Element element;
    for (int i = 1; i < ctx.num_inputs(); ++i) element.push_back(ctx.input(i));
    queue->CheckElement(element, kMany);
    std::vector<QueueResource::Element> elements;
    if constexpr (kMany) {
      for (int64_t row = 0; row < element[0].shape().dim(0); ++row) elements.push_back(RowOf(element, row));
    } else {
      elements.push_back(std::move(element));
    }
    queue->Enqueue(PendingKernel(ctx, std::move(done)), std::move(elements));
  }

 private:
  static QueueResource::Element RowOf(const QueueResource::Element& batch, int64_t row) {
    QueueResource::Element element;
    for (const Tensor& component : batch) {
      const Shape shape = component.shape().Sub(1, component.shape().rank());
      element.push_back(component.Slice(row, row + 1).Reshaped(shape));
    }
    return element;
  }
};

// The attribute of a dequeue that makes the queue remember the element for the session (QueueResource::Request).
constexpr char kHeldBySession[] = "_held_by_session";

class DequeueKernel : public WaitingKernel<WaitKind::kOtherSteps> {
 public:
  explicit DequeueKernel(const KernelConstruction& c) {
    CheckTimeout(c);
    request_.held_by_session = c.node.has_attr(kHeldBySession) && c.attr<bool>(kHeldBySession);
  }

  void ComputeAsync(KernelContext& ctx, Done done) override {
    const std::shared_ptr<QueueResource> queue = QueueOf(ctx);
    const std::vector<DType>& types = queue->spec().component_types;
    bool fits = static_cast<int>(types.size()) == ctx.num_outputs();
    for (int i = 0; fits && i < ctx.num_outputs(); ++i) {
      fits = types[static_cast<size_t>(i)] == ctx.node().output_dtype(i);
    }
    if (!fits) {
      throw InvalidArgumentError(StrCat("[queue] expected component_types [", StrJoin(types, ", "), "], which ",
                                        queue->Describe(), " has; got [",
                                        StrJoin(ctx.node().attr<std::vector<DType>>("component_types"), ", "), "]"));
    }
    queue->Dequeue(PendingKernel(ctx, std::move(done)), RequestOf(ctx));
  }

 protected:
  virtual QueueResource::Request RequestOf(const KernelContext&) const { return request_; }

 private:
  QueueResource::Request request_;
};

template <bool kUpTo>
class DequeueBatchKernel final : public DequeueKernel {
 public:
  using DequeueKernel::DequeueKernel;

 private:
  QueueResource::Request RequestOf(const KernelContext& ctx) const override {
    return {.count = ctx.input(1).scalar<int32_t>(), .batched = true, .allow_fewer = kUpTo};
  }
};

class CloseKernel final : public WaitingKernel<WaitKind::kOtherSteps> {
 public:
  explicit CloseKernel(const KernelConstruction& c) : cancel_(c.attr<bool>("cancel_pending_enqueues")) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    QueueOf(ctx)->Close(PendingKernel(ctx, std::move(done)), cancel_);
  }

 private:
  const bool cancel_;
};

class ResetKernel final : public WaitingKernel<WaitKind::kOtherSteps> {
 public:
  explicit ResetKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    QueueOf(ctx)->Reset(PendingKernel(ctx, std::move(done)));
  }
};

class FailSessionKernel final : public WaitingKernel<WaitKind::kOtherSteps> {
 public:
  explicit FailSessionKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    const int32_t code = ctx.input(1).scalar<int32_t>();
    if (code < static_cast<int32_t>(Code::kCancelled) || code > static_cast<int32_t>(Code::kUnauthenticated)) {
      throw InvalidArgumentError(StrCat("[queue] expected the number of an error code, 1 to ",
                                        static_cast<int32_t>(Code::kUnauthenticated), "; got ", code));
    }
    QueueOf(ctx)->FailSession(PendingKernel(ctx, std::move(done)),
                              Status(static_cast<Code>(code), ctx.input(2).scalar<std::string>()));
  }
};

void QueueSize(KernelContext& ctx) { ctx.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(QueueOf(ctx)->size()))); }

void QueueIsClosed(KernelContext& ctx) { ctx.SetOutput(0, Tensor::Scalar(QueueOf(ctx)->is_closed())); }

}  // namespace

void RegisterQueueKernels(KernelRegistry& registry) {
  registry.RegisterHost<QueueHandleKernel<FifoQueueResource>>("FIFOQueueV2");
  registry.RegisterHost<QueueHandleKernel<ShuffleQueueResource>>("RandomShuffleQueueV2");
  registry.RegisterHost<EnqueueKernel<false>>("QueueEnqueueV2");
  registry.RegisterHost<EnqueueKernel<true>>("QueueEnqueueManyV2");
  registry.RegisterHost<DequeueKernel>("QueueDequeueV2");
  registry.RegisterHost<DequeueBatchKernel<false>>("QueueDequeueManyV2");
  registry.RegisterHost<DequeueBatchKernel<true>>("QueueDequeueUpToV2");
  registry.RegisterHost<CloseKernel>("QueueCloseV2");
  registry.RegisterHost<ResetKernel>("QueueReset");
  registry.RegisterHost<FailSessionKernel>("QueueFailSession");
  registry.RegisterHostFn("QueueSizeV2", QueueSize);
  registry.RegisterHostFn("QueueIsClosedV2", QueueIsClosed);
}

}  // namespace cohort
