#include "cohort/ops/strings.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/gather_nd.h"
#include "cohort/ops/join.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

constexpr const char* kText = "it reads texts";
constexpr int64_t kMostWidth = int64_t{1} << 20;  // of n-grams
constexpr const char* kUnitAttr = "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'";

const char* NameOf(StringUnit unit) { return unit == StringUnit::kByte ? "BYTE" : "UTF8_CHAR"; }

std::vector<Shape> CaseShape(ShapeContext& c) {
  const auto& encoding = c.attr<std::string>("encoding");
  if (encoding.empty()) return {c.input(0)};
  throw UnimplementedError(
      StrCat("expected the encoding \"\", which changes the letters of ASCII; got \"", encoding, "\""));
}

std::vector<Shape> JoinShape(ShapeContext& c) {
  Shape joined;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Shape& shape = c.input(i);
    if (!shape.has_rank()) return {Shape::UnknownRank()};
    if (shape.rank() == 0) continue;
    if (joined.rank() == 0) joined = shape;
    if (!joined.IsCompatibleWith(shape)) {
      throw InvalidArgumentError(
          StrCat("expected inputs of one shape, or scalars; got shapes ", joined, " and ", shape));
    }
    if (!joined.IsFullyDefined()) joined = shape;
  }
  return {joined};
}

std::vector<Shape> SubstrShape(ShapeContext& c) {
  if (!c.input(1).IsCompatibleWith(c.input(2))) {
    throw InvalidArgumentError(StrCat("expected pos and len of one shape; got ", c.input(1), " and ", c.input(2)));
  }
  return {BroadcastShapes(c.input(0), c.input(1))};
}

std::vector<Shape> ScalarPatternShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) c.WithRank(i, 0);
  return {c.input(0)};
}

std::vector<Shape> SplitShape(ShapeContext& c) {
  c.WithRank(0, 1);
  c.WithRank(1, 0);
  return {Shape{-1, 2}, Shape{-1}, Shape{2}};
}

// The number of row splits: one more than rows.
Shape SplitsOf(const Shape& rows) {
  const int64_t count = rows.has_rank() ? rows.num_elements() : -1;
  return Shape{count < 0 ? -1 : count + 1};
}

void CheckUtf8(const std::string& encoding) {
  if (encoding == "UTF-8" || encoding == "utf-8") return;
  throw UnimplementedError(StrCat("expected the encoding \"UTF-8\"; got \"", encoding, "\""));
}

std::vector<Shape> DecodeShape(ShapeContext& c) {
  CheckUtf8(c.attr<std::string>("input_encoding"));
  return {SplitsOf(c.input(0)), Shape{-1}};
}

std::vector<Shape> EncodeShape(ShapeContext& c) {
  CheckUtf8(c.attr<std::string>("output_encoding"));
  const int64_t splits = c.WithRank(1, 1).dim(0);
  return {Shape{splits < 0 ? -1 : splits - 1}};
}

std::vector<Shape> NGramsShape(ShapeContext& c) {
  c.WithRank(0, 1);
  for (const int64_t width : c.attr<std::vector<int64_t>>("ngram_widths")) {
    if (width < 1 || width > kMostWidth) {
      throw InvalidArgumentError(StrCat("expected ngram_widths in [1, ", kMostWidth, "]; got ", width));
    }
  }
  const auto pad_width = c.attr<int64_t>("pad_width");
  if (pad_width > kMostWidth) {
    throw InvalidArgumentError(StrCat("expected a pad_width of at most ", kMostWidth, "; got ", pad_width));
  }
  return {Shape{-1}, c.WithRank(1, 1)};
}

OpDef OneToOne(const char* name, const char* doc) {
  return OpDef(name).Input("input: string").ShapeRule(UnchangedShape).NotDifferentiable(kText).Doc(doc);
}

OpDef WithErrors(OpDef&& op) {
  return std::move(op)
      .Attr("errors: {'strict', 'replace', 'ignore'} = 'replace'")
      .Attr("replacement_char: int = 65533")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .NotDifferentiable(kText);
}

}  // namespace

Output StringLower(Output input, const NodeName& name) { return Op("StringLower", {input}, name).Finish1(); }
Output StringUpper(Output input, const NodeName& name) { return Op("StringUpper", {input}, name).Finish1(); }
Output StringStrip(Output input, const NodeName& name) { return Op("StringStrip", {input}, name).Finish1(); }
Output StringLength(Output input, StringUnit unit, const NodeName& name) {
  return Op("StringLength", {input}, name).Attr("unit", NameOf(unit)).Finish1();
}

Output StringJoin(const std::vector<Output>& inputs, const std::string& separator, const NodeName& name) {
  if (inputs.empty()) throw InvalidArgumentError("[ops] StringJoin needs at least one input");
  return inputs[0].graph().Op("StringJoin").Name(name).Inputs(inputs).Attr("separator", separator).Finish1();
}

Output Substr(Output input, const Operand& pos, const Operand& len, StringUnit unit, const NodeName& name) {
  return Op("Substr", {input, pos, len}, name).Attr("unit", NameOf(unit)).Finish1();
}

Output RegexReplace(Output input, const std::string& pattern, const std::string& rewrite, bool replace_global,
                    const NodeName& name) {
  return Op("StaticRegexReplace", {input}, name)
      .Attr("pattern", pattern)
      .Attr("rewrite", rewrite)
      .Attr("replace_global", replace_global)
      .Finish1();
}
Output RegexReplace(Output input, Output pattern, Output rewrite, bool replace_global, const NodeName& name) {
  return Op("RegexReplace", {input, pattern, rewrite}, name).Attr("replace_global", replace_global).Finish1();
}
Output RegexFullMatch(Output input, const std::string& pattern, const NodeName& name) {
  return Op("StaticRegexFullMatch", {input}, name).Attr("pattern", pattern).Finish1();
}
Output RegexFullMatch(Output input, Output pattern, const NodeName& name) {
  return Op("RegexFullMatch", {input, pattern}, name).Finish1();
}

Output StringToNumber(Output input, DType out_type, const NodeName& name) {
  return Op("StringToNumber", {input}, name).Attr("out_type", out_type).Finish1();
}

SparseStrings StringSplitV2(Output input, const std::string& sep, int64_t maxsplit, const NodeName& name) {
  Node* node = Op("StringSplitV2", {input, Const(input.graph(), sep)}, name).Attr("maxsplit", maxsplit).Finish();
  return {node->output(0), node->output(1), node->output(2)};
}

Output StringSplit(Output input, const std::string& sep, const std::string& default_value, int64_t maxsplit,
                   const NodeName& name) {
  Graph& graph = input.graph();
  const SparseStrings parts = StringSplitV2(input, sep, maxsplit, name);
  // Where each part lies among the parts of all rows; the default value lies behind them.
  const Output count = Size(parts.values, DType::kInt64);
  const Output places =
      TensorScatterUpdate(Fill(parts.dense_shape, count), parts.indices, Range(int64_t{0}, count, int64_t{1}));
  return Gather(Concat({parts.values, Const(graph, std::vector<std::string>{default_value})}, 0), places);
}

RowSplits UnicodeDecode(Output input, const NodeName& name) {
  Node* node = Op("UnicodeDecode", {input}, name).Attr("input_encoding", "UTF-8").Finish();
  return {node->output(1), node->output(0)};
}
Output UnicodeEncode(const RowSplits& characters, const NodeName& name) {
  return Op("UnicodeEncode", {characters.values, characters.row_splits}, name)
      .Attr("output_encoding", "UTF-8")
      .Finish1();
}

RowSplits StringNGrams(const RowSplits& data, const std::vector<int64_t>& ngram_widths,
                       const StringNGramsOptions& options, const NodeName& name) {
  Node* node = Op("StringNGrams", {data.values, data.row_splits}, name)
                   .Attr("separator", options.separator)
                   .Attr("ngram_widths", ngram_widths)
                   .Attr("left_pad", options.left_pad)
                   .Attr("right_pad", options.right_pad)
                   .Attr("pad_width", options.pad_width)
                   .Attr("preserve_short_sequences", options.preserve_short_sequences)
                   .Finish();
  return {node->output(0), node->output(1)};
}

}  // namespace cohort::ops

namespace cohort {
namespace {

void RegisterRegexOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(
      OpDef("StaticRegexReplace")
          .Input("input: string")
          .Output("output: string")
          .Attr("pattern: string")
          .Attr("rewrite: string")
          .Attr("replace_global: bool = true")
          .ShapeRule(UnchangedShape)
          .NotDifferentiable(kText)
          .Doc("Each string with the matches of a pattern replaced. Pattern and rewrite are attributes."));
  registry.Register(OpDef("RegexReplace")
                        .Input("input: string")
                        .Input("pattern: string")
                        .Input("rewrite: string")
                        .Output("output: string")
                        .Attr("replace_global: bool = true")
                        .ShapeRule(ScalarPatternShape)
                        .NotDifferentiable(kText)
                        .Doc("Each string with the matches of a pattern replaced."));
  registry.Register(OpDef("StaticRegexFullMatch")
                        .Input("input: string")
                        .Output("output: bool")
                        .Attr("pattern: string")
                        .ShapeRule(UnchangedShape)
                        .NotDifferentiable(kText)
                        .Doc("Whether each whole string matches a pattern, which is an attribute."));
  registry.Register(OpDef("RegexFullMatch")
                        .Input("input: string")
                        .Input("pattern: string")
                        .Output("output: bool")
                        .ShapeRule(ScalarPatternShape)
                        .NotDifferentiable(kText)
                        .Doc("Whether each whole string matches a pattern."));
}

void RegisterRowOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(OpDef("StringSplitV2")
                        .Input("input: string")
                        .Input("sep: string")
                        .Output("indices: int64")
                        .Output("values: string")
                        .Output("shape: int64")
                        .Attr("maxsplit: int = -1")
                        .ShapeRule(SplitShape)
                        .DataDependentShape()
                        .NotDifferentiable(kText)
                        .Doc("The parts of each string between separators, as a sparse matrix."));
  registry.Register(WithErrors(OpDef("UnicodeDecode")
                                   .Input("input: string")
                                   .Output("row_splits: Tsplits")
                                   .Output("char_values: int32")
                                   .Attr("input_encoding: string")
                                   .Attr("replace_control_characters: bool = false")
                                   .ShapeRule(DecodeShape)
                                   .DataDependentShape()
                                   .Doc("The characters of each string, as ragged rows.")));
  registry.Register(WithErrors(OpDef("UnicodeEncode")
                                   .Input("input_values: int32")
                                   .Input("input_splits: Tsplits")
                                   .Output("output: string")
                                   .Attr("output_encoding: string")
                                   .ShapeRule(EncodeShape)
                                   .Doc("The string of each ragged row of characters.")));
  registry.Register(OpDef("StringNGrams")
                        .Input("data: string")
                        .Input("data_splits: Tsplits")
                        .Output("ngrams: string")
                        .Output("ngrams_splits: Tsplits")
                        .Attr("separator: string")
                        .Attr("ngram_widths: list(int) >= 0")
                        .Attr("left_pad: string")
                        .Attr("right_pad: string")
                        .Attr("pad_width: int")
                        .Attr("preserve_short_sequences: bool")
                        .Attr("Tsplits: {int32, int64} = DT_INT64")
                        .ShapeRule(NGramsShape)
                        .DataDependentShape()
                        .NotDifferentiable(kText)
                        .Doc("The joined sequences of neighbours in each ragged row of strings."));
}

}  // namespace

void RegisterStringOps(OpRegistry& registry) {
  using namespace ops;
  for (const auto& [name, doc] : {std::pair("StringLower", "Each string with the letters of ASCII in lower case."),
                                  std::pair("StringUpper", "Each string with the letters of ASCII in upper case.")}) {
    registry.Register(OneToOne(name, doc).Output("output: string").Attr("encoding: string = ''").ShapeRule(CaseShape));
  }
  registry.Register(OneToOne("StringStrip", "Each string without white space at its ends.").Output("output: string"));
  registry.Register(OneToOne("StringLength", "The length of each string.").Output("output: int32").Attr(kUnitAttr));
  registry.Register(OpDef("StringJoin")
                        .Input("inputs: N * string")
                        .Output("output: string")
                        .Attr("N: int >= 1")
                        .Attr("separator: string = ''")
                        .ShapeRule(JoinShape)
                        .NotDifferentiable(kText)
                        .Doc("The inputs joined elementwise. Scalars are broadcast."));
  registry.Register(OpDef("Substr")
                        .Input("input: string")
                        .Input("pos: T")
                        .Input("len: T")
                        .Output("output: string")
                        .Attr("T: {int32, int64}")
                        .Attr(kUnitAttr)
                        .ShapeRule(SubstrShape)
                        .NotDifferentiable(kText)
                        .Doc("A part of each string, by position and length."));
  registry.Register(OpDef("StringToNumber")
                        .Input("string_tensor: string")
                        .Output("output: out_type")
                        .Attr("out_type: {float, double, int32, int64} = DT_FLOAT")
                        .ShapeRule(UnchangedShape)
                        .NotDifferentiable(kText)
                        .Doc("Each string as a number."));
  RegisterRegexOps(registry);
  RegisterRowOps(registry);
}

}  // namespace cohort
