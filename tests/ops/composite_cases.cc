// Cases of functions that add several nodes: Einsum and the losses of sampled classes. A case is about one of the ops
// that the function adds. tests/interop/test_composite_ops.py compares the functions with those of TensorFlow. Also the
// samplers, whose numbers are not TensorFlow's.
#include <string>

#include "cohort/ops/candidate_sampling.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/einsum.h"
#include "cohort/ops/rearrange.h"
#include "cohort/ops/sampled_losses.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

void AddEinsumCases(std::vector<OpCase>& cases) {
  struct Row {
    const char* op;  // that the equation needs
    const char* label;
    const char* equation;
    std::vector<Shape> shapes;
  };
  const Row rows[] = {
      {"BatchMatMulV2", "matrices", "ij,jk->ik", {{2, 3}, {3, 4}}},
      {"BatchMatMulV2", "transposed", "ji,kj->ki", {{3, 2}, {4, 3}}},
      {"BatchMatMulV2", "implicit", "b i j, b j k", {{2, 2, 3}, {2, 3, 2}}},
      {"BatchMatMulV2", "batch_in_the_middle", "ibj,jbk->bik", {{2, 3, 2}, {2, 3, 4}}},
      {"BatchMatMulV2", "attention", "bthd,bshd->bhts", {{2, 3, 2, 2}, {2, 4, 2, 2}}},
      {"BatchMatMulV2", "several_sums", "abcd,cbe->ade", {{2, 3, 2, 2}, {2, 3, 2}}},
      {"BatchMatMulV2", "dots", "...ij,...jk->...ik", {{2, 1, 2, 3}, {3, 3, 2}}},
      {"BatchMatMulV2", "dots_implicit", "...ij,jk", {{2, 2, 3}, {3, 2}}},
      {"BatchMatMulV2", "three", "ij,jk,kl->il", {{2, 3}, {3, 2}, {2, 4}}},
      {"BatchMatMulV2", "to_scalar", "ij,ij->", {{2, 3}, {2, 3}}},
      {"Mul", "einsum_outer", "i,j->ij", {{2}, {3}}},
      {"Mul", "einsum_elements", "ij,ji->ij", {{2, 3}, {3, 2}}},
      {"Mul", "einsum_scalar", ",ij->ji", {{}, {2, 3}}},
      {"Mul", "einsum_dots", "...,...->...", {{3, 1}, {2, 1, 4}}},
      {"Sum", "einsum_all", "ij->", {{2, 3}}},
      {"Sum", "einsum_trace", "ii", {{3, 3}}},
      {"Sum", "einsum_unshared", "ij,kl->jl", {{2, 3}, {4, 2}}},
      {"Transpose", "einsum", "bij->jbi", {{2, 3, 4}}},
      {"Transpose", "einsum_alphabetical", "ba", {{2, 3}}},
      {"GatherV2", "einsum_diagonal", "bii->bi", {{2, 3, 3}}},
      {"GatherV2", "einsum_diagonal_product", "iij,ij->i", {{2, 2, 3}, {2, 3}}},
      {"GatherV2", "einsum_triple", "iii->i", {{3, 3, 3}}},
  };
  for (const Row& row : rows) {
    OpCase op_case{row.op, row.label, {}, nullptr};
    if (op_case.op == "BatchMatMulV2") op_case.label = "einsum_" + op_case.label;
    for (size_t i = 0; i < row.shapes.size(); ++i) {
      op_case.inputs.push_back(Scatter(row.shapes[i], -1, 1, static_cast<int>(i) + 1));
      op_case.differentiable.push_back(static_cast<int>(i));
    }
    op_case.build = [equation = std::string(row.equation)](Graph&, const Outputs& in) {
      return Outputs{ops::Einsum(equation, in)};
    };
    cases.push_back(std::move(op_case));
  }
}

void AddSampledLossCases(std::vector<OpCase>& cases) {
  const auto build = [](bool softmax, int num_true, std::optional<bool> remove) -> OpCase::Build {
    return [=](Graph&, const Outputs& in) {
      ops::SampledLossOptions options;
      options.num_true = num_true;
      options.sampled_values = {in[4], in[5], in[6]};
      options.remove_accidental_hits = remove;
      const auto loss = softmax ? ops::SampledSoftmaxLoss : ops::NceLoss;
      return Outputs{loss(in[0], in[1], in[2], in[3], 4, 9, options, "")};
    };
  };
  const auto inputs = [](int64_t num_true) {
    // Class 5 is drawn, and is a true class of the first example.
    const std::vector<int64_t> labels =
        num_true == 1 ? std::vector<int64_t>{5, 0, 8} : std::vector<int64_t>{5, 1, 0, 2, 8, 3};
    return std::vector<Tensor>{Scatter({9, 2}),
                               Scatter({9}, -0.5, 0.5),
                               Tensor::FromValues(labels, Shape{3, num_true}),
                               Scatter({3, 2}, -2, 2, 4),
                               Tensor::Vector(std::vector<int64_t>{5, 1, 0, 7}),
                               AsType(Scatter({3, num_true}, 0.1, 0.9), DType::kFloat32),
                               AsType(Scatter({4}, 0.2, 0.8), DType::kFloat32)};
  };
  const char* softmax = "SoftmaxCrossEntropyWithLogits";
  cases.push_back({softmax, "sampled", inputs(1), build(true, 1, std::nullopt), {0, 1, 3}});
  cases.push_back({softmax, "sampled_two_true", inputs(2), build(true, 2, std::nullopt), {0, 1, 3}});
  cases.push_back({softmax, "sampled_with_hits", inputs(1), build(true, 1, false), {0, 1, 3}});
  cases.push_back({"Softplus", "nce", inputs(1), build(false, 1, std::nullopt), {0, 1, 3}});
  cases.push_back({"Softplus", "nce_two_true", inputs(2), build(false, 2, std::nullopt), {0, 1, 3}});
  cases.push_back({"Softplus", "nce_without_hits", inputs(1), build(false, 1, true), {0, 1, 3}});
}

void AddSamplerCases(std::vector<OpCase>& cases) {
  for (const bool unique : {true, false}) {
    for (const bool log_uniform : {true, false}) {
      const OpCase::Build build = [=](Graph&, const Outputs& in) {
        const auto sample = log_uniform ? ops::LogUniformCandidateSampler : ops::UniformCandidateSampler;
        const ops::SampledCandidates drawn = sample(in[0], 2, 6, unique, 20, 3, "");
        return Outputs{drawn.sampled_candidates, drawn.true_expected_count, drawn.sampled_expected_count};
      };
      cases.push_back({log_uniform ? "LogUniformCandidateSampler" : "UniformCandidateSampler",
                       unique ? "unique" : "repeated",
                       {Tensor::FromValues(std::vector<int64_t>{0, 19, 7, 7}, Shape{2, 2})},
                       build,
                       {},
                       1e-5,
                       1e-6,
                       /*compare_values=*/false});
    }
  }
}

void AddRearrangingCases(std::vector<OpCase>& cases) {
  const auto roll = [](std::vector<int64_t> shifts, std::vector<int64_t> axes) -> OpCase::Build {
    return [=](Graph&, const Outputs& in) { return Outputs{ops::Roll(in[0], shifts, axes)}; };
  };
  cases.push_back({"GatherV2", "roll", {Ramp({5})}, roll({2}, {0}), {0}});
  cases.push_back({"GatherV2", "roll_two_axes", {Ramp({3, 4})}, roll({-1, 6}, {0, -1}), {0}});
  cases.push_back({"GatherV2", "roll_empty", {Ramp({0, 4})}, roll({1}, {0}), {0}});
  const auto band = [](int64_t lower, int64_t upper) -> OpCase::Build {
    return [=](Graph&, const Outputs& in) { return Outputs{ops::MatrixBandPart(in[0], lower, upper)}; };
  };
  cases.push_back({"SelectV2", "band_part", {Ramp({4, 5}, 1, 2)}, band(1, 2), {0}});
  cases.push_back({"SelectV2", "band_part_lower", {Ramp({2, 3, 3}, 1, 2)}, band(-1, 0), {0}});
  cases.push_back({"SelectV2", "band_part_upper", {Ramp({3, 2}, 1, 2)}, band(0, -1), {0}});
}

}  // namespace

void AddCompositeCases(std::vector<OpCase>& cases) {
  AddRearrangingCases(cases);
  AddEinsumCases(cases);
  AddSampledLossCases(cases);
  AddSamplerCases(cases);
}

}  // namespace cohort::testing
