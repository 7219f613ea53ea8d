// Kernels of look-up tables (ops/lookup_tables.cc). A table lies in host memory and is found in the task's
// ResourceManager.
#include <memory>
#include <utility>

#include "cohort/core/mutex.h"
#include "cohort/device/files/file_access.h"
#include "cohort/runtime/data_flow/lookup_table.h"
#include "cohort/runtime/kernels/runtime_kernels.h"

namespace cohort {
namespace {

// Outputs the handle of the table (container, shared_name or the node's name). Makes the table if there is none. Looks
// it up again only after a Clear of the ResourceManager.
template <bool kMutable>
class TableHandleKernel final : public OpKernel {
 public:
  explicit TableHandleKernel(const KernelConstruction& c)
      : container_(c.attr<std::string>("container")),
        name_(c.attr<std::string>("shared_name").empty() ? c.node.name() : c.attr<std::string>("shared_name")),
        key_dtype_(c.attr<DType>("key_dtype")),
        value_dtype_(c.attr<DType>("value_dtype")) {}

  void Compute(KernelContext& ctx) override {
    ResourceManager& resources = ctx.device().resources();
    const int64_t epoch = resources.epoch();  // read before the look-up, so that a later Clear is seen the next time
    MutexLock lock(mu_);
    if (!handle_.defined() || epoch != epoch_) {
      const auto table = resources.LookupOrCreate<LookupTable>(
          container_, name_, [&] { return std::make_shared<LookupTable>(name_, key_dtype_, value_dtype_, kMutable); });
      table->CheckDTypes(key_dtype_, value_dtype_);
      handle_ = MakeResourceHandle(table);
      epoch_ = epoch;
    }
    ctx.SetOutput(0, handle_);
  }

 private:
  const std::string container_;
  const std::string name_;
  const DType key_dtype_;
  const DType value_dtype_;
  Mutex mu_;
  Tensor handle_ COHORT_GUARDED_BY(mu_);
  int64_t epoch_ COHORT_GUARDED_BY(mu_) = -1;
};

void Fill(KernelContext& ctx) { ResourceOf<LookupTable>(ctx.input(0)).Initialize(ctx.input(1), ctx.input(2)); }
void Import(KernelContext& ctx) { ResourceOf<LookupTable>(ctx.input(0)).Replace(ctx.input(1), ctx.input(2)); }

void FillFromFile(KernelContext& ctx) {
  LookupTable& table = ResourceOf<LookupTable>(ctx.input(0));
  const Node& node = ctx.node();
  FileAccess::CheckPath(ctx.device().resources(), ctx.step().origin, ctx.input(1).scalar<std::string>());
  const auto [keys, values] = ReadTableFile({.path = ctx.input(1).scalar<std::string>(),
                                             .key_index = node.attr<int64_t>("key_index"),
                                             .value_index = node.attr<int64_t>("value_index"),
                                             .vocab_size = node.attr<int64_t>("vocab_size"),
                                             .delimiter = node.attr<std::string>("delimiter"),
                                             .offset = node.attr<int64_t>("offset")},
                                            table.key_dtype(), table.value_dtype());
  table.Initialize(keys, values);
}

void Find(KernelContext& ctx) {
  ctx.SetOutput(0, ResourceOf<LookupTable>(ctx.input(0)).Find(ctx.input(1), ctx.input(2)));
}

void Size(KernelContext& ctx) { ctx.SetOutput(0, Tensor::Scalar(ResourceOf<LookupTable>(ctx.input(0)).size())); }

}  // namespace

void RegisterLookupTableKernels(KernelRegistry& registry) {
  registry.RegisterHost<TableHandleKernel<false>>("HashTableV2");
  registry.RegisterHost<TableHandleKernel<true>>("MutableHashTableV2");
  registry.RegisterHostFn("InitializeTableV2", Fill);
  registry.RegisterHostFn("InitializeTableFromTextFileV2", FillFromFile);
  registry.RegisterHostFn("LookupTableImportV2", Import);
  registry.RegisterHostFn("LookupTableFindV2", Find);
  registry.RegisterHostFn("LookupTableSizeV2", Size);
}

}  // namespace cohort
