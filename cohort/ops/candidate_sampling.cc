#include "cohort/ops/candidate_sampling.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/random.h"
#include "cohort/ops/register.h"

namespace cohort::ops {
namespace {

SampledCandidates Sample(const char* op, Output true_classes, int num_true, int num_sampled, bool unique,
                         int64_t range_max, int64_t seed, const NodeName& name) {
  const auto [first, second] = SeedPair(true_classes.graph(), seed);
  Node* node = Op(op, {true_classes}, name)
                   .Attr("num_true", num_true)
                   .Attr("num_sampled", num_sampled)
                   .Attr("unique", unique)
                   .Attr("range_max", range_max)
                   .Attr("seed", first)
                   .Attr("seed2", second)
                   .Finish();
  return {node->output(0), node->output(1), node->output(2)};
}

std::vector<Shape> SamplerShape(ShapeContext& c) {
  const int64_t sampled = c.attr<int64_t>("num_sampled"), range = c.attr<int64_t>("range_max");
  if (c.attr<bool>("unique") && sampled > range) {
    throw InvalidArgumentError(StrCat("cannot draw ", sampled, " different classes out of ", range));
  }
  const Shape expected({-1, c.attr<int64_t>("num_true")});
  return {Shape{sampled}, c.WithRank(0, 2).MergedWith(expected), Shape{sampled}};
}

OpDef SamplerOp(const char* name, const char* doc) {
  return OpDef(name)
      .Input("true_classes: int64")
      .Output("sampled_candidates: int64")
      .Output("true_expected_count: float")
      .Output("sampled_expected_count: float")
      .Attr("num_true: int >= 1")
      .Attr("num_sampled: int >= 1")
      .Attr("unique: bool")
      .Attr("range_max: int >= 1")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .ShapeRule(SamplerShape)
      .NotDifferentiable("classes that are drawn at random, and how often they are expected")
      .Stateful()
      .Doc(doc);
}

}  // namespace

SampledCandidates LogUniformCandidateSampler(Output true_classes, int num_true, int num_sampled, bool unique,
                                             int64_t range_max, int64_t seed, const NodeName& name) {
  return Sample("LogUniformCandidateSampler", true_classes, num_true, num_sampled, unique, range_max, seed, name);
}
SampledCandidates UniformCandidateSampler(Output true_classes, int num_true, int num_sampled, bool unique,
                                          int64_t range_max, int64_t seed, const NodeName& name) {
  return Sample("UniformCandidateSampler", true_classes, num_true, num_sampled, unique, range_max, seed, name);
}

}  // namespace cohort::ops

namespace cohort {

void RegisterCandidateSamplingOps(OpRegistry& registry) {
  registry.Register(ops::SamplerOp("LogUniformCandidateSampler",
                                   "Classes drawn with probabilities that fall as 1 / (class + 1), and how often the "
                                   "true and the drawn classes are expected."));
  registry.Register(ops::SamplerOp("UniformCandidateSampler",
                                   "Classes drawn with equal probabilities, and how often the true and the drawn "
                                   "classes are expected."));
}

}  // namespace cohort
