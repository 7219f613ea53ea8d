// The kernels of checkpoint/ops.h. A kernel that may take long runs on the task's checkpoint threads (AsideKernel).
// _SnapshotTake closes the update gate, keeps references to the values, and opens the gate. The other snapshot kernels
// find the snapshot by its number in the SnapshotStore.
#include <optional>
#include <span>

#include "cohort/checkpoint/ops.h"
#include "cohort/checkpoint/snapshot_store.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/files/file_access.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

// How long a snapshot waits for steps that have begun their updates and not ended them.
constexpr std::chrono::seconds kCutTimeout{30};

// A kernel that may take long: it runs on the task's checkpoint threads.
class AsideKernel : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) final {
    if (RunAtOnce(ctx)) return done(Status());
    SnapshotStore::Of(ctx.device())->Schedule([this, &ctx, done = std::move(done)] {
      Status status;
      try {
        RunAside(ctx);
      } catch (...) {
        status = Status::FromCurrentException();
      }
      done(status);
    });
  }

 protected:
  // Returns true if it did not have to wait and everything is done.
  virtual bool RunAtOnce(KernelContext&) { return false; }
  virtual void RunAside(KernelContext& ctx) = 0;
};

// Checks that the graph may use the files of a checkpoint with this prefix: any of them may be a link.
void CheckPrefix(const KernelContext& ctx, const std::string& prefix) {
  const auto access = FileAccess::For(ctx.device().resources(), ctx.step().origin);
  if (access == nullptr) return;
  for (const char* suffix : {"", ".index", ".data-00000-of-00001"}) access->Check(prefix + suffix);
}

class GateClosed {
 public:
  GateClosed(UpdateGate& gate, std::chrono::milliseconds timeout) : gate_(gate) { gate_.Close(timeout); }
  ~GateClosed() { gate_.Open(); }
  GateClosed(const GateClosed&) = delete;
  GateClosed& operator=(const GateClosed&) = delete;

 private:
  UpdateGate& gate_;
};

class SnapshotTakeKernel final : public AsideKernel {
 public:
  explicit SnapshotTakeKernel(const KernelConstruction& c)
      : names_(c.attr<std::vector<std::string>>("names")),
        slices_(c.attr<std::vector<std::string>>("shape_and_slices")) {
    const auto variables = static_cast<size_t>(c.node.num_inputs());
    if (names_.size() != variables || slices_.size() != variables) {
      throw InvalidArgumentError(StrCat("[checkpoint] expected one name and one slice a variable; got ", names_.size(),
                                        " names and ", slices_.size(), " slices for ", variables, " variables"));
    }
  }

 private:
  bool RunAtOnce(KernelContext& ctx) override {
    std::optional<GateClosed> closed;
    try {
      closed.emplace(ctx.device().task().update_gate, std::chrono::milliseconds(0));
    } catch (const DeadlineExceededError&) {
      return false;  // steps are inside: wait for them on another thread, which they cannot need
    }
    const std::vector<Tensor> values = ValuesOf(ctx);
    closed.reset();
    Keep(ctx, values);
    return true;
  }

  void RunAside(KernelContext& ctx) override {
    std::vector<Tensor> values;
    {
      const GateClosed closed(ctx.device().task().update_gate, kCutTimeout);
      values = ValuesOf(ctx);
    }
    Keep(ctx, values);
  }

  // Returns references to the values. Requires: the gate is closed.
  static std::vector<Tensor> ValuesOf(KernelContext& ctx) {
    std::vector<Tensor> values;
    for (int i = 0; i < ctx.num_inputs(); ++i) values.push_back(ResourceOf<VariableResource>(ctx.input(i)).Read());
    return values;
  }

  void Keep(KernelContext& ctx, const std::vector<Tensor>& values) const {
    Snapshot snapshot{names_, slices_, {}};
    std::vector<int64_t> shapes;
    for (const Tensor& value : values) {
      snapshot.values.push_back(ctx.device().CopyToHost(value));
      const Shape& shape = snapshot.values.back().shape();
      shapes.push_back(shape.rank());
      shapes.insert(shapes.end(), shape.dims().begin(), shape.dims().end());
    }
    ctx.SetOutput(1, Tensor::Vector(shapes));
    ctx.SetOutput(0, Tensor::Scalar(SnapshotStore::Of(ctx.device())->Put(std::move(snapshot))));
  }

  const std::vector<std::string> names_;
  const std::vector<std::string> slices_;
};

// Writes a tensor, or the part of one that the text says.
void Add(BundleWriter& writer, const std::string& name, const std::string& shape_and_slice, const Tensor& value) {
  const auto [full, slice] = ParseShapeAndSlice(shape_and_slice);
  full.has_rank() ? writer.AddSlice(name, full, slice, value) : writer.Add(name, value);
}

// Returns the value that a request asks for. A request has `parts` numbers: [snapshot, variable, ...].
Tensor ValueAsked(KernelContext& ctx, int64_t parts) {
  const Tensor& request = ctx.input(0);
  if (request.num_elements() != parts) {
    throw InvalidArgumentError(
        StrCat("[checkpoint] expected a request of ", parts, " numbers; got ", request.ToString()));
  }
  const std::shared_ptr<const Snapshot> snapshot = SnapshotStore::Of(ctx.device())->Find(request.data<int64_t>()[0]);
  const int64_t index = request.data<int64_t>()[1];
  if (index < 0 || static_cast<size_t>(index) >= snapshot->values.size()) {
    throw InvalidArgumentError(
        StrCat("[checkpoint] expected a variable below ", snapshot->values.size(), "; got ", index));
  }
  return snapshot->values[static_cast<size_t>(index)];
}

void SnapshotRead(KernelContext& ctx) {
  const Tensor value = ValueAsked(ctx, 4);
  const int64_t offset = ctx.input(0).data<int64_t>()[2];
  const int64_t bytes = ctx.input(0).data<int64_t>()[3];
  const auto size = static_cast<int64_t>(value.bytes());
  if (offset < 0 || bytes < 0 || offset > size || bytes > size - offset) {
    throw InvalidArgumentError(
        StrCat("[checkpoint] expected a part of ", size, " bytes; got [", offset, ", ", offset, " + ", bytes, ")"));
  }
  const auto start = static_cast<const char*>(value.raw_data()) - static_cast<const char*>(value.buffer()->data());
  ctx.SetOutput(0, Tensor(DType::kUint8, Shape{bytes}, value.buffer(), static_cast<size_t>(start + offset)));
}

void SnapshotReadStrings(KernelContext& ctx) { ctx.SetOutput(0, ValueAsked(ctx, 2)); }

void SnapshotDrop(KernelContext& ctx) { SnapshotStore::Of(ctx.device())->Drop(ctx.input(0).scalar<int64_t>()); }

class SnapshotWriteKernel final : public AsideKernel {
 public:
  explicit SnapshotWriteKernel(const KernelConstruction&) {}

 private:
  void RunAside(KernelContext& ctx) override {
    const auto snapshot = SnapshotStore::Of(ctx.device())->Find(ctx.input(0).scalar<int64_t>());
    const auto& prefix = ctx.input(1).scalar<std::string>();
    CheckPrefix(ctx, prefix);
    BundleWriter writer(prefix);
    for (size_t i = 0; i < snapshot->values.size(); ++i) {
      Add(writer, snapshot->names[i], snapshot->slices[i], snapshot->values[i]);
    }
    writer.Finish();
  }
};

class ProbeKernel final : public AsideKernel {
 public:
  explicit ProbeKernel(const KernelConstruction&) {}

 private:
  void RunAside(KernelContext& ctx) override {
    const auto& path = ctx.input(0).scalar<std::string>();
    FileAccess::CheckPath(ctx.device().resources(), ctx.step().origin, path);
    std::string found;
    try {
      if (ReadFile(path) == ctx.input(1).scalar<std::string>()) return;
      found = "another content";
    } catch (const Error& e) {
      found = e.what();
    }
    throw FailedPreconditionError(
        StrCat("[checkpoint] expected that ", ctx.device().name(), " sees the file ", path,
               ", which the chief has just written; got: ", found,
               "; a sharded save needs a folder that all tasks share: give one, or save without "
               "`sharded`"));
  }
};

struct Named {
  const std::string& prefix;
  std::span<const std::string> names;
  std::span<const std::string> slices;
};

Named NamesOf(const KernelContext& ctx, size_t tensors) {
  const Named named{ctx.input(0).scalar<std::string>(), ctx.input(1).values<std::string>(),
                    ctx.input(2).values<std::string>()};
  if (named.names.size() != tensors || named.slices.size() != tensors) {
    throw InvalidArgumentError(StrCat("[checkpoint] expected ", tensors, " names and slices, one a tensor; got ",
                                      named.names.size(), " and ", named.slices.size()));
  }
  return named;
}

class SaveKernel final : public AsideKernel {
 public:
  explicit SaveKernel(const KernelConstruction&) {}

 private:
  void RunAside(KernelContext& ctx) override {
    const Named named = NamesOf(ctx, static_cast<size_t>(ctx.num_inputs() - 3));
    CheckPrefix(ctx, named.prefix);
    BundleWriter writer(named.prefix);
    for (size_t i = 0; i < named.names.size(); ++i) {
      Add(writer, named.names[i], named.slices[i], ctx.input(static_cast<int>(i) + 3));
    }
    writer.Finish();
  }
};

class RestoreKernel final : public AsideKernel {
 public:
  explicit RestoreKernel(const KernelConstruction&) {}

 private:
  void RunAside(KernelContext& ctx) override {
    const Named named = NamesOf(ctx, static_cast<size_t>(ctx.num_outputs()));
    CheckPrefix(ctx, named.prefix);
    const BundleReader reader(named.prefix);
    for (size_t i = 0; i < named.names.size(); ++i) {
      const std::string& name = named.names[i];
      const DType expected = ctx.node().output_dtype(static_cast<int>(i));
      const BundleEntry& entry = reader.Find(name);
      if (entry.dtype() != expected) {
        throw InvalidArgumentError(StrCat("[checkpoint] tensor_name = ", name, "; expected dtype ", expected, "; got ",
                                          entry.dtype_name(), " in ", named.prefix));
      }
      const auto [full, slice] = ParseShapeAndSlice(named.slices[i]);
      if (full.has_rank() && full != entry.shape) {
        throw InvalidArgumentError(StrCat("[checkpoint] tensor_name = ", name, "; expected full shape ", full, "; got ",
                                          entry.shape, " in ", named.prefix));
      }
      ctx.SetOutput(static_cast<int>(i), full.has_rank() ? reader.ReadSlice(name, slice) : reader.Read(name));
    }
  }
};

}  // namespace

void RegisterCheckpointKernels(KernelRegistry& registry) {
  registry.RegisterHost<SaveKernel>("SaveV2");
  registry.RegisterHost<RestoreKernel>("RestoreV2");
  registry.RegisterHost<SnapshotTakeKernel>("_SnapshotTake");
  registry.RegisterHostFn("_SnapshotRead", SnapshotRead);
  registry.RegisterHostFn("_SnapshotReadStrings", SnapshotReadStrings);
  registry.RegisterHost<SnapshotWriteKernel>("_SnapshotWrite");
  registry.RegisterHostFn("_SnapshotDrop", SnapshotDrop);
  registry.RegisterHost<ProbeKernel>("_CheckpointProbe");
}

}  // namespace cohort
