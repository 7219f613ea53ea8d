#include "cohort/ops/random.h"

#include "cohort/graph/op_def.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

std::vector<Shape> ShapeOfInput0(ShapeContext& c) {
  c.WithRank(0, 1);
  return {c.input_as_shape(0)};
}

std::vector<Shape> StatelessShape(ShapeContext& c) {
  Shape{2}.MergedWith(c.WithRank(1, 1));
  for (int i = 2; i < c.num_inputs(); ++i) c.WithRank(i, 0);
  return ShapeOfInput0(c);
}

std::vector<Shape> UniformIntShape(ShapeContext& c) {
  c.WithRank(1, 0);
  c.WithRank(2, 0);
  return ShapeOfInput0(c);
}

std::vector<Shape> MultinomialShape(ShapeContext& c) {
  c.WithRank(1, 0);
  const auto samples = ops::KnownInteger(c, 1, "num_samples");
  return {Shape{c.WithRank(0, 2).dim(0), samples.value_or(-1)}};
}

constexpr char kReason[] = "random numbers do not depend on a shape or a seed in a way that has a slope";

void RegisterStateful(OpRegistry& registry, const char* name, const char* doc) {
  registry.Register(OpDef(name)
                        .HostInput("shape: T")
                        .Output("output: dtype")
                        .Attr("seed: int = 0")
                        .Attr("seed2: int = 0")
                        .Attr("dtype: {float32, float64, bfloat16}")
                        .Attr("T: {int32, int64}")
                        .ShapeRule(ShapeOfInput0)
                        .NotDifferentiable(kReason)
                        .Stateful()
                        .Doc(doc));
}

void RegisterMultinomial(OpRegistry& registry) {
  registry.Register(OpDef("Multinomial")
                        .Input("logits: T")
                        .HostInput("num_samples: int32")
                        .Output("output: output_dtype")
                        .Attr("seed: int = 0")
                        .Attr("seed2: int = 0")
                        .Attr("T: {float, double, int32, int64, bfloat16}")
                        .Attr("output_dtype: {int32, int64} = DT_INT64")
                        .ShapeRule(MultinomialShape)
                        .NotDifferentiable("integers")
                        .Stateful()
                        .Doc("Classes that are drawn with the probabilities of the softmax of each row."));
}

void RegisterStateless(OpRegistry& registry, const char* name, const char* dtypes, const char* doc) {
  registry.Register(OpDef(name)
                        .HostInput("shape: T")
                        .HostInput("seed: Tseed")
                        .Output("output: dtype")
                        .Attr(dtypes)
                        .Attr("T: {int32, int64} = int32")
                        .Attr("Tseed: {int32, int64} = int64")
                        .ShapeRule(StatelessShape)
                        .NotDifferentiable(kReason)
                        .Doc(doc));
}

}  // namespace

void RegisterRandomOps(OpRegistry& registry) {
  RegisterStateful(registry, "RandomUniform", "Uniform numbers in [0, 1).");
  RegisterStateful(registry, "RandomStandardNormal", "Normal numbers of mean 0 and standard deviation 1.");
  RegisterStateful(registry, "TruncatedNormal", "Standard normal numbers, those beyond 2 drawn again.");
  registry.Register(OpDef("RandomUniformInt")
                        .HostInput("shape: T")
                        .HostInput("minval: Tout")
                        .HostInput("maxval: Tout")
                        .Output("output: Tout")
                        .Attr("seed: int = 0")
                        .Attr("seed2: int = 0")
                        .Attr("Tout: {int32, int64}")
                        .Attr("T: {int32, int64}")
                        .ShapeRule(UniformIntShape)
                        .NotDifferentiable("integers")
                        .Stateful()
                        .Doc("Uniform integers in [minval, maxval)."));
  RegisterMultinomial(registry);
  registry.Register(OpDef("RandomShuffle")
                        .Input("value: T")
                        .Output("output: T")
                        .Attr("seed: int = 0")
                        .Attr("seed2: int = 0")
                        .Attr("T: type")
                        .ShapeRule([](ShapeContext& c) { return std::vector<Shape>{c.input(0)}; })
                        .NotDifferentiable("the order is drawn anew for each run, as in TensorFlow")
                        .Stateful()
                        .Doc("The rows of `value` in random order."));
  constexpr char kFloats[] = "dtype: {float32, float64, bfloat16} = float32";
  RegisterStateless(registry, "StatelessRandomUniform", kFloats, "Uniform numbers in [0, 1) that follow from `seed`.");
  RegisterStateless(registry, "StatelessRandomNormal", kFloats, "Standard normal numbers that follow from `seed`.");
  RegisterStateless(registry, "StatelessTruncatedNormal", kFloats,
                    "Standard normal numbers that follow from `seed`, those beyond 2 drawn again.");
  RegisterStateless(registry, "StatelessRandomUniformFullInt", "dtype: {int32, int64} = int64",
                    "Integers over the whole range of the dtype that follow from `seed`.");
  // For backends with a memory of their own: the seed need not come to the host.
  registry.Register(OpDef("_StatelessRandomOnDevice")
                        .HostInput("shape: T")
                        .Input("seed: Tseed")
                        .Output("output: dtype")
                        .Attr("distribution: {'uniform', 'normal', 'truncated'}")
                        .Attr(kFloats)
                        .Attr("T: {int32, int64} = int32")
                        .Attr("Tseed: {int32, int64} = int64")
                        .ShapeRule(StatelessShape)
                        .NotDifferentiable(kReason)
                        .Doc("The numbers of the stateless op of this distribution."));
  registry.Register(OpDef("StatelessRandomUniformInt")
                        .HostInput("shape: T")
                        .HostInput("seed: Tseed")
                        .HostInput("minval: dtype")
                        .HostInput("maxval: dtype")
                        .Output("output: dtype")
                        .Attr("dtype: {int32, int64}")
                        .Attr("T: {int32, int64}")
                        .Attr("Tseed: {int32, int64} = int64")
                        .ShapeRule(StatelessShape)
                        .NotDifferentiable("integers")
                        .Doc("Uniform integers in [minval, maxval) that follow from `seed`."));
}

namespace ops {

namespace {

thread_local SeedScope* seed_scope = nullptr;  // the innermost one of this thread

}  // namespace

SeedScope::SeedScope(int64_t otherwise, int64_t first) : otherwise_(otherwise), next_(first), outer_(seed_scope) {
  seed_scope = this;
}

SeedScope::~SeedScope() { seed_scope = outer_; }

std::pair<int64_t, int64_t> SeedPair(const Graph& graph, int64_t seed) {
  constexpr int64_t kDefaultGraphSeed = 87654321;
  constexpr int64_t kMaxInt32 = 0x7fffffff;
  int64_t of_graph = graph.seed();
  int64_t own = seed;
  if (seed_scope != nullptr && seed == 0) {
    if (of_graph == 0) of_graph = seed_scope->otherwise_;
    own = seed_scope->next_++;
  }
  if (of_graph == 0 && own == 0) return {0, 0};
  const int64_t first = of_graph != 0 ? of_graph : kDefaultGraphSeed;
  const int64_t second = own != 0 ? own : graph.num_nodes();
  const std::pair<int64_t, int64_t> pair(first % kMaxInt32, second % kMaxInt32);
  // (0, 0) would mean "random".
  return pair == std::pair<int64_t, int64_t>(0, 0) ? std::pair<int64_t, int64_t>(0, kMaxInt32) : pair;
}

namespace {

Output Stateful(const char* op, Output shape, DType dtype, int64_t seed, const NodeName& name) {
  const auto [first, second] = SeedPair(shape.graph(), seed);
  return Op(op, {shape}).Name(name).Attr("dtype", dtype).Attr("seed", first).Attr("seed2", second).Finish1();
}

Output Stateless(const char* op, Output shape, Output seed, DType dtype, const NodeName& name) {
  return Op(op, {shape, seed}).Name(name).Attr("dtype", dtype).Finish1();
}

}  // namespace

Output RandomUniform(Output shape, DType dtype, int64_t seed, const NodeName& name) {
  return Stateful("RandomUniform", shape, dtype, seed, name);
}
Output RandomStandardNormal(Output shape, DType dtype, int64_t seed, const NodeName& name) {
  return Stateful("RandomStandardNormal", shape, dtype, seed, name);
}
Output TruncatedNormal(Output shape, DType dtype, int64_t seed, const NodeName& name) {
  return Stateful("TruncatedNormal", shape, dtype, seed, name);
}

Output RandomUniformInt(Output shape, const Operand& minval, const Operand& maxval, int64_t seed,
                        const NodeName& name) {
  const auto [first, second] = SeedPair(shape.graph(), seed);
  return Op("RandomUniformInt", {shape, minval, maxval}).Name(name).Attr("seed", first).Attr("seed2", second).Finish1();
}

Output Multinomial(Output logits, const Operand& num_samples, int64_t seed, DType output_dtype, const NodeName& name) {
  const auto [first, second] = SeedPair(logits.graph(), seed);
  return Op("Multinomial", {logits, num_samples}, name)
      .Attr("seed", first)
      .Attr("seed2", second)
      .Attr("output_dtype", output_dtype)
      .Finish1();
}

Output RandomShuffle(Output value, int64_t seed, const NodeName& name) {
  const auto [first, second] = SeedPair(value.graph(), seed);
  return Op("RandomShuffle", {value}).Name(name).Attr("seed", first).Attr("seed2", second).Finish1();
}

Output StatelessRandomUniform(Output shape, Output seed, DType dtype, const NodeName& name) {
  return Stateless("StatelessRandomUniform", shape, seed, dtype, name);
}
Output StatelessRandomNormal(Output shape, Output seed, DType dtype, const NodeName& name) {
  return Stateless("StatelessRandomNormal", shape, seed, dtype, name);
}
Output StatelessTruncatedNormal(Output shape, Output seed, DType dtype, const NodeName& name) {
  return Stateless("StatelessTruncatedNormal", shape, seed, dtype, name);
}
Output StatelessRandomUniformInt(Output shape, Output seed, const Operand& minval, const Operand& maxval,
                                 const NodeName& name) {
  return Op("StatelessRandomUniformInt", {shape, seed, minval, maxval}).Name(name).Finish1();
}
Output StatelessRandomUniformFullInt(Output shape, Output seed, DType dtype, const NodeName& name) {
  return Stateless("StatelessRandomUniformFullInt", shape, seed, dtype, name);
}

}  // namespace ops
}  // namespace cohort
