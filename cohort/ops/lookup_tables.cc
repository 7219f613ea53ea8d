// Ops of look-up tables: maps from keys to values that outlive a step, as TensorFlow's SavedModels have them. Programs
// use ops::VocabularyLookup (ops/lookup.h), whose vocabulary is a part of its node.
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/register.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

constexpr char kKeys[] = "key_dtype: {int32, int64, string}";
constexpr char kNoGradient[] = "a table has no gradient";

std::vector<Shape> FindShape(ShapeContext& c) {
  c.WithRank(2, 0);
  return {c.input(1)};
}

std::vector<Shape> ImportShape(ShapeContext& c) {
  const Shape keys = c.WithRank(1, 1);
  if (!keys.IsCompatibleWith(c.WithRank(2, 1))) {
    throw InvalidArgumentError(StrCat("expected one value for each key; got keys ", keys, " and values ", c.input(2)));
  }
  return {};
}

OpDef TableOp(const char* name, const char* doc) {
  return OpDef(name)
      .Output("table_handle: resource")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Attr("use_node_name_sharing: bool = false")
      .Attr(kKeys)
      .Attr("value_dtype: type")
      .ShapeRule(ops::ScalarShape)
      .Stateful()
      .NotDifferentiable(kNoGradient)
      .Doc(doc);
}

OpDef FillOp(const char* name, const char* keys, const char* values, const char* doc) {
  return OpDef(name)
      .Input("table_handle: resource")
      .Input(std::string("keys: ") + keys)
      .Input(std::string("values: ") + values)
      .Attr(std::string(keys) + ": {int32, int64, string}")
      .Attr(std::string(values) + ": type")
      .ShapeRule(ImportShape)
      .Stateful()
      .NotDifferentiable(kNoGradient)
      .Doc(doc);
}

}  // namespace

void RegisterLookupTableOps(OpRegistry& registry) {
  registry.Register(TableOp("HashTableV2", "The handle of a table that gets its keys and values once."));
  registry.Register(TableOp("MutableHashTableV2", "The handle of a table that is empty at first."));
  registry.Register(FillOp("InitializeTableV2", "Tkey", "Tval", "Gives the table its keys and values."));
  registry.Register(FillOp("LookupTableImportV2", "Tin", "Tout", "Replaces the contents of the table."));
  registry.Register(OpDef("LookupTableFindV2")
                        .Input("table_handle: resource")
                        .Input("keys: Tin")
                        .Input("default_value: Tout")
                        .Output("values: Tout")
                        .Attr("Tin: {int32, int64, string}")
                        .Attr("Tout: type")
                        .ShapeRule(FindShape)
                        .Stateful()
                        .NotDifferentiable(kNoGradient)
                        .Doc("The value of each key, or `default_value` if the table lacks the key."));
  registry.Register(OpDef("LookupTableSizeV2")
                        .Input("table_handle: resource")
                        .Output("size: int64")
                        .ShapeRule(ops::ScalarShape)
                        .Stateful()
                        .NotDifferentiable(kNoGradient)
                        .Doc("How many keys the table has."));
  registry.Register(OpDef("InitializeTableFromTextFileV2")
                        .Input("table_handle: resource")
                        .Input("filename: string")
                        .Attr("key_index: int >= -2")
                        .Attr("value_index: int >= -2")
                        .Attr("vocab_size: int >= -1 = -1")
                        .Attr("delimiter: string = '\\t'")
                        .Attr("offset: int >= 0 = 0")
                        .ShapeRule([](ShapeContext& c) {
                          c.WithRank(1, 0);
                          return std::vector<Shape>();
                        })
                        .Stateful()
                        .NotDifferentiable(kNoGradient)
                        .Doc("Gives the table keys and values from the lines of a text file. An index is a column of "
                             "the line, -2 the whole line, or -1 the number of the line."));
}

}  // namespace cohort
