// Kernels without a result of their own: barriers, assertions, prints.
#include <algorithm>
#include <atomic>
#include <cstdio>

#include "cohort/core/str_cat.h"
#include "cohort/runtime/kernels/runtime_kernels.h"

namespace cohort {
namespace {

void NoOp(KernelContext&) {}

// Returns "[1 2 3...][a b]": the first `summarize` elements of each of the inputs [first, end); all elements if it is
// negative.
std::string Summarize(const KernelContext& ctx, int first, int64_t summarize) {
  std::string text;
  for (int i = first; i < ctx.num_inputs(); ++i) {
    const Tensor& value = ctx.input(i);
    const int64_t count = summarize < 0 ? value.num_elements() : summarize;
    text += StrCat("[", value.ToString(static_cast<int>(std::min<int64_t>(count, value.num_elements()))), "]");
  }
  return text;
}

void WriteLine(std::FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

class AssertKernel final : public OpKernel {
 public:
  explicit AssertKernel(const KernelConstruction& c) : summarize_(c.attr<int64_t>("summarize")) {}
  void Compute(KernelContext& ctx) override {
    if (ctx.input(0).scalar<bool>()) return;
    throw InvalidArgumentError(StrCat("assertion failed: ", Summarize(ctx, 1, summarize_)));
  }

 private:
  const int64_t summarize_;
};

class PrintKernel final : public OpKernel {
 public:
  explicit PrintKernel(const KernelConstruction& c)
      : message_(c.attr<std::string>("message")),
        left_(c.attr<int64_t>("first_n")),
        limited_(left_ >= 0),
        summarize_(c.attr<int64_t>("summarize")) {}
  void Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, ctx.input(0));
    if (limited_ && left_.fetch_sub(1, std::memory_order_relaxed) <= 0) return;
    WriteLine(stderr, StrCat(message_, Summarize(ctx, 1, summarize_), "\n"));
  }

 private:
  const std::string message_;
  std::atomic<int64_t> left_;
  const bool limited_;
  const int64_t summarize_;
};

class PrintV2Kernel final : public OpKernel {
 public:
  explicit PrintV2Kernel(const KernelConstruction& c)
      : stream_(c.attr<std::string>("output_stream") == "stdout" ? stdout : stderr), end_(c.attr<std::string>("end")) {}
  void Compute(KernelContext& ctx) override { WriteLine(stream_, ctx.input(0).scalar<std::string>() + end_); }

 private:
  std::FILE* const stream_;
  const std::string end_;
};

}  // namespace

void RegisterControlKernels(KernelRegistry& registry) {
  registry.RegisterHostFn("NoOp", NoOp, KernelMemory::kEither);
  registry.RegisterHost<AssertKernel>("Assert");
  registry.RegisterHost<PrintKernel>("Print");
  registry.RegisterHost<PrintV2Kernel>("PrintV2");
}

}  // namespace cohort
