#include "cohort/ops/summary.h"

#include "cohort/graph/op_def.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {

void RegisterSummaryOps(OpRegistry& registry) {
  registry.Register(OpDef("ScalarSummary")
                        .HostInput("tags: string")
                        .HostInput("values: T")
                        .HostOutput("summary: string")
                        .Attr("T: realnumbertype")
                        .ShapeRule([](ShapeContext& c) {
                          c.input(0).MergedWith(c.input(1));
                          return std::vector<Shape>{Shape()};
                        })
                        .NotDifferentiable("a message")
                        .Doc("A Summary with one scalar a tag; tags and values have one shape."));
  registry.Register(OpDef("HistogramSummary")
                        .HostInput("tag: string")
                        .HostInput("values: T")
                        .HostOutput("summary: string")
                        .Attr("T: realnumbertype = float32")
                        .ShapeRule([](ShapeContext& c) {
                          c.WithRank(0, 0);
                          return std::vector<Shape>{Shape()};
                        })
                        .NotDifferentiable("a message")
                        .Doc("A Summary with the histogram of `values` under `tag`."));
  registry.Register(OpDef("ImageSummary")
                        .HostInput("tag: string")
                        .HostInput("tensor: T")
                        .HostOutput("summary: string")
                        .Attr("max_images: int >= 1 = 3")
                        .Attr("T: {uint8, float32, float64} = float32")
                        .Attr("bad_color: tensor = uint8[255, 0, 0, 255]")
                        .ShapeRule([](ShapeContext& c) {
                          c.WithRank(0, 0);
                          c.WithRank(1, 4);
                          return std::vector<Shape>{Shape()};
                        })
                        .NotDifferentiable("a message")
                        .Doc("A Summary with images of `tensor` [batch, rows, columns, channels] as PNG files."));
  registry.Register(OpDef("MergeSummary")
                        .HostInput("inputs: N * string")
                        .HostOutput("summary: string")
                        .Attr("N: int >= 1")
                        .ShapeRule(ops::ScalarShape)
                        .NotDifferentiable("a message")
                        .Doc("One Summary with the values of all inputs; no tag may occur twice."));
}

namespace ops {
namespace {

// `finish` adds the attributes and the node.
template <typename Finish>
Output TaggedSummary(const char* op, const std::string& tag, Output values, const NodeName& name, Finish finish) {
  Graph& graph = values.graph();
  const std::string full = graph.UniqueName(tag);
  const std::string node_name = name.empty() ? full : graph.UniqueName(name);
  const NameScope root(graph, "");
  const Output tag_const = Const(graph, full, node_name + "/tags");
  const Output summary = finish(graph.Op(op).At(name.site()).ExactName(node_name).Input(tag_const).Input(values));
  graph.AddToCollection(kSummariesCollection, summary);
  return summary;
}

}  // namespace

Output ScalarSummary(const std::string& tag, Output value, const NodeName& name) {
  return TaggedSummary("ScalarSummary", tag, value, name, [](auto&& op) { return op.Finish1(); });
}
Output HistogramSummary(const std::string& tag, Output values, const NodeName& name) {
  return TaggedSummary("HistogramSummary", tag, values, name, [](auto&& op) { return op.Finish1(); });
}
Output ImageSummary(const std::string& tag, Output images, int max_images, const NodeName& name) {
  return TaggedSummary("ImageSummary", tag, images, name,
                       [&](auto&& op) { return op.Attr("max_images", int64_t{max_images}).Finish1(); });
}

Output MergeSummary(const std::vector<Output>& summaries, const NodeName& name) {
  return summaries.at(0).graph().Op("MergeSummary").Name(name).Inputs(summaries).Finish1();
}

Output MergeAllSummaries(Graph& graph, const std::string& collection, const NodeName& name) {
  const std::vector<Output> summaries = graph.collection(collection);
  return summaries.empty() ? Output() : MergeSummary(summaries, name);
}

}  // namespace ops
}  // namespace cohort
