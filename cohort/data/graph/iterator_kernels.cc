// Host kernels of iterators and optionals. The kernels that work on an iterator ask its IteratorResource and return.
// The answer continues the step. So no thread of a device waits for input.
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/data/graph/iterator_ops.h"
#include "cohort/data/graph/iterator_resource.h"
#include "cohort/device/files/file_access.h"
#include "cohort/device/kernel.h"
#include "cohort/device/variant.h"

namespace cohort {
namespace {

using data::Element;
using data::ElementSpec;
using data::IteratorResource;
using data::RunAnswer;
using data::SerializedDataset;
using data::SessionIterators;

// The name of the resource that knows the iterators without a shared name.
constexpr char kSessionIterators[] = "_session_iterators";

struct DatasetValue final : VariantValue {
  explicit DatasetValue(SerializedDataset dataset) : serialized(std::move(dataset)) {}
  std::string Describe() const override { return "a dataset"; }
  SerializedDataset serialized;
};

struct OptionalValue final : VariantValue {
  OptionalValue() = default;
  explicit OptionalValue(Element components) : has_value(true), element(std::move(components)) {}
  std::string Describe() const override { return has_value ? "an optional" : "an optional without a value"; }
  bool has_value = false;
  Element element;
};

const OptionalValue& OptionalOf(const Tensor& value) {
  return VariantOf<OptionalValue>(value, "[iterator] expected an optional");
}

ElementSpec SpecOfKernel(const KernelConstruction& c) {
  return data::SpecFromAttrs(c.attr<std::vector<DType>>("output_types"), c.attr<std::vector<Shape>>("output_shapes"));
}

void SetComponents(KernelContext& ctx, Element element) {
  for (size_t i = 0; i < element.size(); ++i) ctx.SetOutput(static_cast<int>(i), std::move(element[i]));
}

class DatasetKernel final : public OpKernel {
 public:
  explicit DatasetKernel(const KernelConstruction&) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& description = ctx.input(0);
    const Tensor& hashes = ctx.input(1);
    const int tensors = ctx.num_inputs() - 2;
    if (description.shape() != Shape() || hashes.shape() != Shape{tensors}) {
      throw InvalidArgumentError(StrCat("[iterator] expected a scalar description and one hash for each of ", tensors,
                                        " tensors; got shapes ", description.shape(), " and ", hashes.shape()));
    }
    SerializedDataset dataset{description.scalar<std::string>(), {}};
    for (int i = 0; i < tensors; ++i) {
      dataset.tensors.emplace(static_cast<uint64_t>(hashes.data<int64_t>()[i]), ctx.input(i + 2));
    }
    ctx.SetOutput(0, MakeVariant(DatasetValue(std::move(dataset))));
  }
};

// Keeps the handle, and looks up the iterator again only after a Clear of the ResourceManager.
class IteratorHandleKernel final : public OpKernel {
 public:
  explicit IteratorHandleKernel(const KernelConstruction& c)
      : container_(c.attr<std::string>("container")),
        shared_name_(c.attr<std::string>("shared_name")),
        name_(shared_name_.empty() ? c.node.name() : shared_name_),
        spec_(SpecOfKernel(c)) {}
  void Compute(KernelContext& ctx) override {
    ResourceManager& resources = ctx.device().resources();
    const int64_t epoch = resources.epoch();  // read before the look-up, so that a later Clear is seen the next time
    MutexLock lock(mu_);
    if (!handle_.defined() || epoch != epoch_) {
      handle_ = MakeResourceHandle(Find(resources, ctx.step().origin));
      epoch_ = epoch;
    }
    ctx.SetOutput(0, handle_);
  }

 private:
  std::shared_ptr<IteratorResource> Find(ResourceManager& resources, const StepOrigin* session) const {
    const auto make = [&] { return std::make_shared<IteratorResource>(name_, spec_); };
    auto iterator = shared_name_.empty()
                        ? resources
                              .LookupOrCreate<SessionIterators>(container_, kSessionIterators,
                                                                [] { return std::make_shared<SessionIterators>(); })
                              ->Find(session, name_, make)
                        : resources.LookupOrCreate<IteratorResource>(container_, shared_name_, make);
    if (!data::IsCompatible(iterator->spec(), spec_)) {
      throw InvalidArgumentError(StrCat("[iterator] expected iterator '", name_, "' with elements ",
                                        data::ToString(spec_), "; the task has one with elements ",
                                        data::ToString(iterator->spec()), "; give one of the two another shared_name"));
    }
    return iterator;
  }

  const std::string container_;
  const std::string shared_name_;
  const std::string name_;
  const ElementSpec spec_;
  Mutex mu_;
  Tensor handle_ COHORT_GUARDED_BY(mu_);
  int64_t epoch_ COHORT_GUARDED_BY(mu_) = -1;
};

class MakeIteratorKernel final : public AsyncOpKernel {
 public:
  explicit MakeIteratorKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    const auto& dataset = VariantOf<DatasetValue>(ctx.input(0), "[iterator] expected a dataset");
    data::FileCheck check;
    if (const auto access = FileAccess::For(ctx.device().resources(), ctx.step().origin)) {
      check = [access](const std::string& path) { access->Check(path); };
    }
    ResourceOf<IteratorResource>(ctx.input(1))
        .Initialize(dataset.serialized, std::move(check), ctx.step().cancellation,
                    [done = std::move(done)](const RunAnswer& answer) { done(answer.status); });
  }
};

class RestartKernel final : public AsyncOpKernel {
 public:
  explicit RestartKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    ResourceOf<IteratorResource>(ctx.input(0))
        .Restart(ctx.step().cancellation, [done = std::move(done)](const RunAnswer& answer) { done(answer.status); });
  }
};

// IteratorGetNext, IteratorGetNextAsOptional and _IteratorGetAt, which has an index.
class GetNextKernel : public AsyncOpKernel {
 public:
  explicit GetNextKernel(const KernelConstruction& c) : spec_(SpecOfKernel(c)) {}
  void ComputeAsync(KernelContext& ctx, Done done) final {
    auto& iterator = ResourceOf<IteratorResource>(ctx.input(0));
    if (!data::IsCompatible(iterator.spec(), spec_)) {
      throw InvalidArgumentError(StrCat("[iterator] expected elements ", data::ToString(spec_), "; those of iterator '",
                                        iterator.name(), "' are ", data::ToString(iterator.spec())));
    }
    const auto answer_with = [this, &ctx, done = std::move(done)](RunAnswer answer) {
      if (answer.status.ok()) answer.status = CheckedAnswer(answer);
      const Status status = answer.status;
      if (status.ok()) Set(ctx, std::move(answer));
      done(status);
    };
    if (ctx.num_inputs() == 1) return iterator.GetNext(ctx.step().cancellation, answer_with);
    const int64_t index = ctx.input(1).scalar<int64_t>();
    if (index < 0) {
      throw InvalidArgumentError(StrCat("[iterator] expected the number of an element of iterator '", iterator.name(),
                                        "', from 0; got ", index));
    }
    iterator.GetAt(index, ctx.step().cancellation, answer_with);
  }

 protected:
  // Returns OK or the error with which the step fails.
  virtual Status CheckedAnswer(const RunAnswer& answer) const {
    if (!answer.has_element) return {};
    try {
      data::CheckElement(answer.element, spec_);  // the node may know more of the shapes than the iterator
    } catch (...) {
      return Status::FromCurrentException();
    }
    return {};
  }

 private:
  virtual void Set(KernelContext& ctx, RunAnswer answer) const = 0;

  const ElementSpec spec_;
};

class ComponentsKernel final : public GetNextKernel {
 public:
  using GetNextKernel::GetNextKernel;

 private:
  Status CheckedAnswer(const RunAnswer& answer) const override {
    if (!answer.has_element) return {Code::kOutOfRange, "End of sequence"};
    return GetNextKernel::CheckedAnswer(answer);
  }
  void Set(KernelContext& ctx, RunAnswer answer) const override { SetComponents(ctx, std::move(answer.element)); }
};

class AsOptionalKernel final : public GetNextKernel {
 public:
  using GetNextKernel::GetNextKernel;

 private:
  void Set(KernelContext& ctx, RunAnswer answer) const override {
    ctx.SetOutput(0, MakeVariant(answer.has_element ? OptionalValue(std::move(answer.element)) : OptionalValue()));
  }
};

class SaveKernel final : public AsyncOpKernel {
 public:
  explicit SaveKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    ResourceOf<IteratorResource>(ctx.input(0))
        .Save(ctx.step().cancellation, [&ctx, done = std::move(done)](RunAnswer answer) {
          if (answer.status.ok()) ctx.SetOutput(0, Tensor::Scalar(std::move(answer.position)));
          done(answer.status);
        });
  }
};

class RestoreKernel final : public AsyncOpKernel {
 public:
  explicit RestoreKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    ResourceOf<IteratorResource>(ctx.input(0))
        .Restore(ctx.input(1).scalar<std::string>(), ctx.step().cancellation,
                 [done = std::move(done)](const RunAnswer& answer) { done(answer.status); });
  }
};

class OptionalGetValueKernel final : public OpKernel {
 public:
  explicit OptionalGetValueKernel(const KernelConstruction& c) : spec_(SpecOfKernel(c)) {}
  void Compute(KernelContext& ctx) override {
    const OptionalValue& optional = OptionalOf(ctx.input(0));
    if (!optional.has_value) {
      throw InvalidArgumentError(
          "[iterator] expected an optional that has a value; got one that has none. Ask OptionalHasValue before");
    }
    data::CheckElement(optional.element, spec_);
    SetComponents(ctx, optional.element);
  }

 private:
  const ElementSpec spec_;
};

void MakeOptional(KernelContext& ctx) {
  Element element;
  for (int i = 0; i < ctx.num_inputs(); ++i) element.push_back(ctx.input(i));
  ctx.SetOutput(0, MakeVariant(OptionalValue(std::move(element))));
}

void MakeNone(KernelContext& ctx) { ctx.SetOutput(0, MakeVariant(OptionalValue())); }

void HasValue(KernelContext& ctx) {
  ctx.AllocateOutput(0, Shape()).data<bool>()[0] = OptionalOf(ctx.input(0)).has_value;
}

}  // namespace

void RegisterDatasetKernels(KernelRegistry& registry) {
  registry.RegisterHost<DatasetKernel>("DatasetFromDescription");
  registry.RegisterHost<IteratorHandleKernel>("IteratorV2");
  registry.RegisterHost<MakeIteratorKernel>("MakeIterator");
  registry.RegisterHost<ComponentsKernel>("IteratorGetNext");
  registry.RegisterHost<AsOptionalKernel>("IteratorGetNextAsOptional");
  registry.RegisterHost<ComponentsKernel>("_IteratorGetAt");
  registry.RegisterHost<RestartKernel>("_IteratorRestart");
  registry.RegisterHost<SaveKernel>("_IteratorSave");
  registry.RegisterHost<RestoreKernel>("_IteratorRestore");
  registry.RegisterHostFn("OptionalFromValue", MakeOptional);
  registry.RegisterHostFn("OptionalNone", MakeNone);
  registry.RegisterHostFn("OptionalHasValue", HasValue);
  registry.RegisterHost<OptionalGetValueKernel>("OptionalGetValue");
}

}  // namespace cohort
