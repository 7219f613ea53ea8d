#include "cohort/ops/decode.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/operand.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::ops {
namespace {

constexpr const char* kFromText = "the numbers are read from bytes or text";

std::vector<Shape> RawShape(ShapeContext& c) {
  if (!c.input(0).has_rank()) return UnknownShapes(1);
  return {c.input(0).Concat(Shape{-1})};
}

void CheckDefault(const Shape& shape, int i) {
  if (!shape.has_rank()) return;
  if (shape.rank() <= 1 && (!shape.IsFullyDefined() || shape.num_elements() <= 1)) return;
  throw InvalidArgumentError(
      StrCat("expected a default with one element or none for column ", i, "; got one of shape ", shape));
}

std::vector<Shape> CsvShape(ShapeContext& c) {
  const auto& delimiter = c.attr<std::string>("field_delim");
  if (delimiter.size() != 1 || delimiter == "\"" || delimiter == "\n" || delimiter == "\r") {
    throw InvalidArgumentError(
        StrCat("expected a field_delim of one character that is no quote and no line end; got '", delimiter, "'"));
  }
  const int columns = c.num_inputs() - 1;
  for (int i = 0; i < columns; ++i) CheckDefault(c.input(i + 1), i);
  const auto& selected = c.attr<std::vector<int64_t>>("select_cols");
  bool ascending = selected.empty() || (static_cast<int>(selected.size()) == columns && selected.front() >= 0);
  for (size_t i = 1; i < selected.size(); ++i) ascending = ascending && selected[i - 1] < selected[i];
  if (!ascending) {
    throw InvalidArgumentError(
        StrCat("expected ascending numbers of ", columns, " columns in select_cols; got ", StrJoin(selected, ", ")));
  }
  return std::vector<Shape>(static_cast<size_t>(columns), c.input(0));
}

}  // namespace

Output DecodeRaw(Output bytes, DType out_type, bool little_endian, const NodeName& name) {
  return Op("DecodeRaw", {bytes}, name).Attr("out_type", out_type).Attr("little_endian", little_endian).Finish1();
}

std::vector<Output> DecodeCSV(Output records, const std::vector<Tensor>& record_defaults,
                              const DecodeCSVOptions& options, const NodeName& name) {
  if (record_defaults.empty()) throw InvalidArgumentError("[ops] DecodeCSV needs a default for each column; got none");
  std::vector<Output> defaults;
  for (const Tensor& value : record_defaults) defaults.push_back(Const(records.graph(), value));
  Node* node = Op("DecodeCSV", {records}, name)
                   .Inputs(defaults)
                   .Attr("field_delim", options.field_delim)
                   .Attr("use_quote_delim", options.use_quote_delim)
                   .Attr("na_value", options.na_value)
                   .Attr("select_cols", std::vector<int64_t>(options.select_cols.begin(), options.select_cols.end()))
                   .Finish();
  std::vector<Output> columns;
  for (int i = 0; i < node->num_outputs(); ++i) columns.push_back(node->output(i));
  return columns;
}

}  // namespace cohort::ops

namespace cohort {

void RegisterDecodeOps(OpRegistry& registry) {
  using namespace ops;
  registry.Register(OpDef("DecodeRaw")
                        .Input("bytes: string")
                        .Output("output: out_type")
                        .Attr("out_type: {float, double, int32, uint8, int64, bool}")
                        .Attr("little_endian: bool = true")
                        .ShapeRule(RawShape)
                        .DataDependentShape()
                        .NotDifferentiable(kFromText)
                        .Doc("The bytes of strings as numbers."));
  registry.Register(OpDef("DecodeCSV")
                        .Input("records: string")
                        .Input("record_defaults: OUT_TYPE")
                        .Output("output: OUT_TYPE")
                        .Attr("OUT_TYPE: list({float, double, int32, int64, string}) >= 1")
                        .Attr("field_delim: string = ','")
                        .Attr("use_quote_delim: bool = true")
                        .Attr("na_value: string = ''")
                        .Attr("select_cols: list(int) = []")
                        .ShapeRule(CsvShape)
                        .NotDifferentiable(kFromText)
                        .Doc("The columns of lines of a CSV file."));
}

}  // namespace cohort
