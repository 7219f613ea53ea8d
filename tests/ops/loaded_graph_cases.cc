// Cases of ops that only graphs of TensorFlow bring along: lists whose elements are set by number, and look-up tables.
#include <string>
#include <vector>

#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;
using Words = std::vector<std::string>;

Output Shape2(Graph& graph) { return ops::Const(graph, std::vector<int32_t>{2}); }

Output Reserve(Graph& graph, DType dtype, int32_t size) {
  return graph.Op("TensorListReserve")
      .Input(Shape2(graph))
      .Input(ops::Const(graph, size))
      .Attr("element_dtype", dtype)
      .Finish1();
}
Output FromTensor(Output rows) {
  return rows.graph().Op("TensorListFromTensor").Input(rows).Input(Shape2(rows.graph())).Finish1();
}
Output Set(Output list, int32_t index, Output item, bool grow = false) {
  return list.graph()
      .Op("TensorListSetItem")
      .Input(list)
      .Input(ops::Const(list.graph(), index))
      .Input(item)
      .Attr("resize_if_index_out_of_bounds", grow)
      .Finish1();
}
Output Get(Output list, int32_t index, DType dtype) {
  return list.graph()
      .Op("TensorListGetItem")
      .Input(list)
      .Input(ops::Const(list.graph(), index))
      .Input(Shape2(list.graph()))
      .Attr("element_dtype", dtype)
      .Finish1();
}
Output Stack(Output list, DType dtype, int64_t num_elements = -1) {
  return list.graph()
      .Op("TensorListStack")
      .Input(list)
      .Input(Shape2(list.graph()))
      .Attr("element_dtype", dtype)
      .Attr("num_elements", num_elements)
      .Finish1();
}
Output Length(Output list) { return list.graph().Op("TensorListLength").Input(list).Finish1(); }

void AddListCases(std::vector<OpCase>& cases) {
  const auto add = [&cases](const char* op, const char* label, std::vector<Tensor> inputs, OpCase::Build build) {
    cases.push_back({op, label, std::move(inputs), std::move(build)});
  };
  const Tensor row = Ramp({2});
  const Tensor words = Tensor::FromValues(Words{"a", "", "ccc", "d"}, Shape{2, 2});
  // Of three elements, the last one is never set. The first one is set in a list that is used again without it.
  const auto some_set = [](Graph& graph, const Outputs& in) {
    const DType dtype = in[0].dtype();
    const Output empty = Reserve(graph, dtype, 3);
    const Output second = Set(empty, 1, in[0]);
    const Output both = Set(second, 0, in[0]);
    return Outputs{Stack(both, dtype, 3), Stack(second, dtype), Get(both, 2, dtype), Get(both, 0, dtype)};
  };
  for (const char* op : {"TensorListReserve", "TensorListSetItem", "TensorListStack", "TensorListGetItem"}) {
    add(op, "some_set", {row}, some_set);
  }
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kBool}) {
    cases.push_back({"TensorListStack", std::string(DTypeName(dtype)), {AsType(row, dtype)}, some_set});
  }
  const auto rows_of = [](Graph&, const Outputs& in) {
    const Output list = FromTensor(in[0]);
    return Outputs{Get(list, 1, in[0].dtype()), Length(list),
                   Stack(Set(list, 0, Get(list, 1, in[0].dtype())), in[0].dtype())};
  };
  for (const char* op : {"TensorListFromTensor", "TensorListLength"}) add(op, "rows", {Ramp({3, 2})}, rows_of);
  add("TensorListFromTensor", "words", {words}, rows_of);
  add("TensorListSetItem", "grows", {row}, [](Graph& graph, const Outputs& in) {
    const Output list = Set(Reserve(graph, in[0].dtype(), 1), 2, in[0], true);
    return Outputs{Length(list), Get(list, 2, in[0].dtype())};
  });
  add("TensorListStack", "none", {row},
      [](Graph& graph, const Outputs& in) { return Outputs{Stack(Reserve(graph, in[0].dtype(), 0), in[0].dtype())}; });
  add("TensorListStack", "pushed", {row}, [](Graph& graph, const Outputs& in) {
    Output list = graph.Op("EmptyTensorList")
                      .Input(Shape2(graph))
                      .Input(ops::Const(graph, -1))
                      .Attr("element_dtype", in[0].dtype())
                      .Finish1();
    for (int i = 0; i < 2; ++i) list = graph.Op("TensorListPushBack").Input(list).Input(in[0]).Finish1();
    return Outputs{Stack(list, in[0].dtype()), Length(list), Get(list, 1, in[0].dtype())};
  });
}

Output Table(Graph& graph, const char* op, DType keys, DType values, const std::string& name) {
  return graph.Op(op).Attr("key_dtype", keys).Attr("value_dtype", values).Attr("shared_name", name).Finish1();
}

// Fills a table with the keys in[0] and the values in[1], and looks up in[2] with the default in[3].
OpCase::Build LookUp(const char* table_op, const char* fill_op, const std::string& name) {
  return [table_op, fill_op, name](Graph& graph, const Outputs& in) {
    const Output table = Table(graph, table_op, in[0].dtype(), in[1].dtype(), name);
    Node* fill = graph.Op(fill_op).Input(table).Input(in[0]).Input(in[1]).Finish();
    const ControlDependencies after(graph, {fill});
    return Outputs{graph.Op("LookupTableFindV2").Input(table).Input(in[2]).Input(in[3]).Finish1(),
                   graph.Op("LookupTableSizeV2").Input(table).Finish1()};
  };
}

void AddTableCases(std::vector<OpCase>& cases) {
  const std::vector<Tensor> words = {Tensor::Vector(Words{"b", "a", ""}), Tensor::Vector(std::vector<int64_t>{7, 8, 9}),
                                     Tensor::FromValues(Words{"a", "zz", "", "b"}, Shape{2, 2}),
                                     Tensor::Scalar(int64_t{-1})};
  const std::vector<Tensor> numbers = {Tensor::Vector(std::vector<int64_t>{5, -3}),
                                       Tensor::Vector(std::vector<float>{0.5f, 1.5f}),
                                       Tensor::Vector(std::vector<int64_t>{-3, 4}), Tensor::Scalar(9.0f)};
  const std::vector<Tensor> names = {Tensor::Vector(std::vector<int32_t>{5, -3}), Tensor::Vector(Words{"x", "y"}),
                                     Tensor::Scalar(int32_t{5}), Tensor::Scalar("none")};
  for (const char* op : {"HashTableV2", "InitializeTableV2", "LookupTableFindV2", "LookupTableSizeV2"}) {
    cases.push_back({op, "words", words, LookUp("HashTableV2", "InitializeTableV2", StrCat(op, "_words"))});
  }
  for (const char* op : {"MutableHashTableV2", "LookupTableImportV2"}) {
    cases.push_back({op, "numbers", numbers, LookUp("MutableHashTableV2", "LookupTableImportV2", StrCat(op, "_n"))});
  }
  cases.push_back({"LookupTableFindV2", "names", names, LookUp("HashTableV2", "LookupTableImportV2", "names")});
  cases.push_back({"MutableHashTableV2", "empty", {words[2], words[3]}, [](Graph& graph, const Outputs& in) {
                     const Output table = Table(graph, "MutableHashTableV2", in[0].dtype(), in[1].dtype(), "nothing");
                     return Outputs{graph.Op("LookupTableFindV2").Input(table).Input(in[0]).Input(in[1]).Finish1()};
                   }});
  // The file is not read: the results do not need it. cohort/runtime/lookup_table_test.cc reads files.
  cases.push_back({"InitializeTableFromTextFileV2",
                   "unused",
                   {Tensor::Scalar("nowhere"), words[3]},
                   [](Graph& graph, const Outputs& in) {
                     const Output table = Table(graph, "HashTableV2", DType::kString, DType::kInt64, "file");
                     graph.Op("InitializeTableFromTextFileV2")
                         .Input(table)
                         .Input(in[0])
                         .Attr("key_index", -2)
                         .Attr("value_index", -1)
                         .Finish();
                     return Outputs{ops::Identity(in[1])};
                   }});
}

}  // namespace

void AddLoadedGraphCases(std::vector<OpCase>& cases) {
  AddListCases(cases);
  AddTableCases(cases);
}

}  // namespace cohort::testing
