#include "cohort/summary/kernels.h"

#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/summary/summary.h"

namespace cohort {
namespace {

float NumberAt(const Tensor& values, int64_t i) {
  switch (values.dtype()) {
    case DType::kFloat32: return values.data<float>()[i];
    case DType::kFloat64: return static_cast<float>(values.data<double>()[i]);
    case DType::kBfloat16: return static_cast<float>(values.data<bfloat16>()[i]);
    case DType::kInt32: return static_cast<float>(values.data<int32_t>()[i]);
    case DType::kInt64: return static_cast<float>(values.data<int64_t>()[i]);
    case DType::kUint8: return values.data<uint8_t>()[i];
    default: break;
  }
  throw InvalidArgumentError(StrCat("[summary] expected numbers; got ", values.dtype()));
}

void SetText(KernelContext& ctx, std::string text) {
  *ctx.AllocateOutput(0, Shape()).data<std::string>() = std::move(text);
}

void Scalar(KernelContext& ctx) {
  const Tensor& tags = ctx.input(0);
  const Tensor& values = ctx.input(1);
  if (tags.shape() != values.shape()) {
    throw InvalidArgumentError(StrCat("[summary] tags and values are not the same shape: ", tags.shape(),
                                      " != ", values.shape(), " (", tags.ToString(), ")"));
  }
  if (tags.num_elements() == 1) return SetText(ctx, ScalarSummary(tags.data<std::string>()[0], NumberAt(values, 0)));
  std::vector<std::string> parts;
  for (int64_t i = 0; i < tags.num_elements(); ++i) {
    parts.push_back(ScalarSummary(tags.data<std::string>()[i], NumberAt(values, i)));
  }
  SetText(ctx, MergeSummaries(parts));
}

void OfHistogram(KernelContext& ctx) {
  SetText(ctx, HistogramSummary(ctx.input(0).scalar<std::string>(), ctx.input(1)));
}

void OfImages(KernelContext& ctx) {
  const auto& colour = ctx.node().attr<Tensor>("bad_color");
  if (colour.dtype() != DType::kUint8) {
    throw InvalidArgumentError(StrCat("[summary] expected a bad_color of uint8; got ", colour.dtype()));
  }
  SetText(ctx, ImageSummary(ctx.input(0).scalar<std::string>(), ctx.input(1), ctx.node().attr<int64_t>("max_images"),
                            colour.ToVector<uint8_t>()));
}

void Merge(KernelContext& ctx) {
  std::vector<std::string> parts;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    for (const std::string& text : ctx.input(i).values<std::string>()) parts.push_back(text);
  }
  SetText(ctx, MergeSummaries(parts));
}

}  // namespace

void RegisterSummaryKernels(KernelRegistry& registry) {
  registry.RegisterHostFn("ScalarSummary", Scalar);
  registry.RegisterHostFn("HistogramSummary", OfHistogram);
  registry.RegisterHostFn("ImageSummary", OfImages);
  registry.RegisterHostFn("MergeSummary", Merge);
}

}  // namespace cohort
