// Kernels of ops/strings.h that search with regular expressions. RE2 needs time in proportion to the length of a text,
// whatever the expression is, so expressions of strangers are safe.
#include <re2/re2.h>

#include <memory>
#include <string>

#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/strings.h"

namespace cohort {
namespace {

// Returns the expression, which is kept. Throws InvalidArgumentError if it is none.
std::unique_ptr<const RE2> Compiled(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_unique<const RE2>(pattern, options);
  if (regex->ok()) return regex;
  throw InvalidArgumentError(StrCat("expected a regular expression (RE2); got \"", pattern, "\": ", regex->error()));
}

void CheckRewrite(const RE2& regex, const std::string& rewrite) {
  std::string error;
  if (regex.CheckRewriteString(rewrite, &error)) return;
  throw InvalidArgumentError(
      StrCat("expected a rewrite for the pattern \"", regex.pattern(), "\"; got \"", rewrite, "\": ", error));
}

void Replace(KernelContext& ctx, const RE2& regex, const std::string& rewrite, bool all) {
  Tensor& out = ctx.ForwardInputOrAllocate(0, 0, ctx.input(0).shape());
  const std::string* from = ctx.input(0).data<std::string>();
  std::string* to = out.data<std::string>();
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    if (to != from) to[i] = from[i];
    if (all) {
      RE2::GlobalReplace(&to[i], regex, rewrite);
    } else {
      RE2::Replace(&to[i], regex, rewrite);
    }
  }
}

void Match(KernelContext& ctx, const RE2& regex) {
  const Tensor& x = ctx.input(0);
  bool* to = ctx.AllocateOutput(0, x.shape()).data<bool>();
  const std::string* from = x.data<std::string>();
  for (int64_t i = 0; i < x.num_elements(); ++i) to[i] = RE2::FullMatch(from[i], regex);
}

class StaticReplaceKernel final : public OpKernel {
 public:
  explicit StaticReplaceKernel(const KernelConstruction& c)
      : regex_(Compiled(c.attr<std::string>("pattern"))),
        rewrite_(c.attr<std::string>("rewrite")),
        all_(c.attr<bool>("replace_global")) {
    CheckRewrite(*regex_, rewrite_);
  }
  void Compute(KernelContext& ctx) override { Replace(ctx, *regex_, rewrite_, all_); }

 private:
  const std::unique_ptr<const RE2> regex_;  // thread-safe
  const std::string rewrite_;
  const bool all_;
};

class StaticMatchKernel final : public OpKernel {
 public:
  explicit StaticMatchKernel(const KernelConstruction& c) : regex_(Compiled(c.attr<std::string>("pattern"))) {}
  void Compute(KernelContext& ctx) override { Match(ctx, *regex_); }

 private:
  const std::unique_ptr<const RE2> regex_;  // thread-safe
};

void RegexReplace(KernelContext& ctx) {
  const auto regex = Compiled(ctx.input(1).scalar<std::string>());
  const std::string& rewrite = ctx.input(2).scalar<std::string>();
  CheckRewrite(*regex, rewrite);
  Replace(ctx, *regex, rewrite, ctx.node().attr<bool>("replace_global"));
}

void RegexFullMatch(KernelContext& ctx) { Match(ctx, *Compiled(ctx.input(1).scalar<std::string>())); }

}  // namespace

void RegisterRegexKernels(KernelRegistry& registry) {
  registry.Register<StaticReplaceKernel>("StaticRegexReplace", "CPU");
  registry.RegisterFn("RegexReplace", "CPU", RegexReplace);
  registry.Register<StaticMatchKernel>("StaticRegexFullMatch", "CPU");
  registry.RegisterFn("RegexFullMatch", "CPU", RegexFullMatch);
}

}  // namespace cohort
