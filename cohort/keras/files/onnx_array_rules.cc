// ONNX rules for ops that move values (shapes, slices, joins, look-ups), and for matrix products, sums over axes and
// weights. Each rule adds ONNX nodes for one op; the table is at the end.
#include <algorithm>
#include <limits>
#include <numeric>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/onnx_rules.h"

namespace cohort::keras {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
constexpr int64_t kToTheBegin = std::numeric_limits<int64_t>::min();

// The arguments of a Slice, axis by axis.
struct SlicedAxes {
  Ints starts, ends, axes, steps;

  void Add(int64_t axis, int64_t start, int64_t end, int64_t step = 1) {
    starts.push_back(start);
    ends.push_back(end);
    axes.push_back(axis);
    steps.push_back(step);
  }
};

// The positions of a StridedSlice as ONNX takes them: first the slices, then axes that go away, then new ones.
struct StridedAxes {
  SlicedAxes slices;
  Ints dropped;  // axes of the input
  Ints added;    // axes of the result

  StridedAxes(OnnxTranslation& t, const Node& node) {
    const Ints begin = t.Integers(node.input(1)), end = t.Integers(node.input(2)), step = t.Integers(node.input(3));
    const auto has = [&node](const char* mask, size_t i) { return ((node.attr<int64_t>(mask) >> i) & 1) != 0; };
    int64_t named = 0;  // axes of the input that a position speaks of
    for (size_t i = 0; i < begin.size(); ++i) named += has("ellipsis_mask", i) || has("new_axis_mask", i) ? 0 : 1;
    int64_t axis = 0, result_axis = 0;
    for (size_t i = 0; i < begin.size(); ++i) {
      if (has("ellipsis_mask", i)) {
        const int64_t skipped = node.input(0).shape().rank() - named;
        axis += skipped;
        result_axis += skipped;
      } else if (has("new_axis_mask", i)) {
        added.push_back(result_axis++);
      } else if (has("shrink_axis_mask", i)) {
        slices.Add(axis, begin[i], begin[i] == -1 ? kToTheEnd : begin[i] + 1);
        dropped.push_back(axis++);
      } else {
        const bool forward = step[i] > 0;
        const int64_t from = has("begin_mask", i) ? (forward ? 0 : kToTheEnd) : begin[i];
        const int64_t to = has("end_mask", i) ? (forward ? kToTheEnd : kToTheBegin) : end[i];
        if (from != 0 || to != kToTheEnd || step[i] != 1) slices.Add(axis, from, to, step[i]);
        ++axis;
        ++result_axis;
      }
    }
  }
};

// If the node gives a constant or a weight another shape, adds the result as a constant and returns true.
bool AddedAsConstant(OnnxTranslation& t, const Node& node) {
  const Tensor value = t.Constant(node.output(0));
  if (!value.defined()) return false;
  t.SetPlain(node, t.onnx().AddConstant(t.Plain(node.input(0)) + "/shaped", value));
  return true;
}

struct ArrayRules {
  static std::string Axes(OnnxTranslation& t, const Node& node, const Ints& axes) {
    return t.onnx().AddConstant(node.name() + "/axes", axes);
  }

  // Returns the value of an input that is a shape, in ONNX's form. It may be constant or computed.
  static std::string Int64s(OnnxTranslation& t, const Node& node, const Output& input) {
    if (t.Constant(input).defined()) return t.onnx().AddConstant(node.name() + "/shape", t.Integers(input));
    if (input.dtype() == DType::kInt64) return t.Plain(input);
    const int64_t type = OnnxGraph::TypeNumber(DType::kInt64);
    return t.onnx().Add("Cast", node.name() + "/shape", {t.Plain(input)}, {{"to", type}});
  }

  static void Alias(OnnxTranslation& t, const Node& node) { t.SetAlias(node, node.input(0)); }

  static void Variable(OnnxTranslation& t, const Node& node) {
    const OnnxTranslation::NamedTensor* variable = t.Variable(node.input(0));
    if (variable == nullptr) {
      throw UnimplementedError(
          StrCat("[keras/onnx] expected a model that reads its weights alone; ", node.Describe(), " reads another"));
    }
    t.SetPlain(node, t.onnx().AddConstant(variable->name, variable->value));
  }

  static void ShapeOf(OnnxTranslation& t, const Node& node) {
    const bool wide = node.output_dtype(0) == DType::kInt64;
    std::string shape = t.onnx().Add("Shape", node.name(), {t.Plain(node.input(0))});
    if (!wide) {
      const int64_t type = OnnxGraph::TypeNumber(node.output_dtype(0));
      shape = t.onnx().Add("Cast", node.name() + "/cast", {shape}, {{"to", type}});
    }
    t.SetPlain(node, shape);
  }

  static void Reshape(OnnxTranslation& t, const Node& node) {
    if (AddedAsConstant(t, node)) return;
    t.SetPlain(node, t.onnx().Add("Reshape", node.name(), {t.Plain(node.input(0)), Int64s(t, node, node.input(1))}));
  }

  static void ExpandDims(OnnxTranslation& t, const Node& node) {
    if (AddedAsConstant(t, node)) return;
    const std::string axes = Axes(t, node, t.Integers(node.input(1)));
    t.SetPlain(node, t.onnx().Add("Unsqueeze", node.name(), {t.Plain(node.input(0)), axes}));
  }

  static void Squeeze(OnnxTranslation& t, const Node& node) {
    std::vector<std::string> inputs = {t.Plain(node.input(0))};
    const Ints axes = node.attr<Ints>("squeeze_dims");
    if (!axes.empty()) inputs.push_back(Axes(t, node, axes));
    t.SetPlain(node, t.onnx().Add("Squeeze", node.name(), inputs));
  }

  static void Transpose(OnnxTranslation& t, const Node& node) {
    t.SetPlain(node,
               t.onnx().Add("Transpose", node.name(), {t.Plain(node.input(0))}, {{"perm", t.Integers(node.input(1))}}));
  }

  static void BroadcastTo(OnnxTranslation& t, const Node& node) {
    t.SetPlain(node, t.onnx().Add("Expand", node.name(), {t.Plain(node.input(0)), Int64s(t, node, node.input(1))}));
  }

  static void Tile(OnnxTranslation& t, const Node& node) {
    t.SetPlain(node, t.onnx().Add("Tile", node.name(), {t.Plain(node.input(0)), Int64s(t, node, node.input(1))}));
  }

  static void Pad(OnnxTranslation& t, const Node& node) {
    const Ints pairs = t.Integers(node.input(1));
    Ints pads;
    for (const size_t side : {0, 1}) {
      for (size_t i = side; i < pairs.size(); i += 2) pads.push_back(pairs[i]);
    }
    std::vector<std::string> inputs = {t.Plain(node.input(0)), t.onnx().AddConstant(node.name() + "/pads", pads)};
    if (node.op_name() == "PadV2") inputs.push_back(t.Plain(node.input(2)));
    t.SetPlain(node, t.onnx().Add("Pad", node.name(), inputs));
  }

  static std::string Sliced(OnnxTranslation& t, const Node& node, const SlicedAxes& slices, const std::string& name) {
    const std::string x = t.Plain(node.input(0));
    if (slices.axes.empty()) return x;
    std::vector<std::string> inputs = {x};
    for (const auto& [suffix, values] : {std::pair<const char*, const Ints&>("/starts", slices.starts),
                                         {"/ends", slices.ends},
                                         {"/slice_axes", slices.axes},
                                         {"/steps", slices.steps}}) {
      inputs.push_back(t.onnx().AddConstant(node.name() + suffix, values));
    }
    return t.onnx().Add("Slice", name, inputs);
  }

  static void Slice(OnnxTranslation& t, const Node& node) {
    const Ints begin = t.Integers(node.input(1)), size = t.Integers(node.input(2));
    SlicedAxes slices;
    for (size_t i = 0; i < begin.size(); ++i) {
      slices.Add(static_cast<int64_t>(i), begin[i], size[i] == -1 ? kToTheEnd : begin[i] + size[i]);
    }
    t.SetPlain(node, Sliced(t, node, slices, node.name()));
  }

  static void StridedSlice(OnnxTranslation& t, const Node& node) {
    const StridedAxes axes(t, node);
    std::string value = Sliced(t, node, axes.slices, node.name() + "/slice");
    if (!axes.dropped.empty()) {
      const std::string dropped = t.onnx().AddConstant(node.name() + "/dropped", axes.dropped);
      value = t.onnx().Add("Squeeze", node.name() + "/squeeze", {value, dropped});
    }
    if (!axes.added.empty()) value = t.onnx().Add("Unsqueeze", node.name(), {value, Axes(t, node, axes.added)});
    t.SetPlain(node, value);
  }

  static void Split(OnnxTranslation& t, const Node& node) {
    const bool sizes_differ = node.op_name() == "SplitV";
    const Output& value = node.input(sizes_differ ? 0 : 1);
    const int64_t axis = t.Integers(node.input(sizes_differ ? 2 : 0)).at(0);
    std::vector<std::string> inputs = {t.Plain(value)};
    if (sizes_differ) {
      Ints sizes = t.Integers(node.input(1));
      const auto rest = std::find(sizes.begin(), sizes.end(), -1);
      if (rest != sizes.end()) {
        const int rank = value.shape().rank();
        const int64_t whole = value.shape().dim(static_cast<int>(axis < 0 ? axis + rank : axis));
        if (whole < 0)
          throw UnimplementedError(StrCat("[keras/onnx] expected sizes that are known; got ", node.Describe()));
        *rest = whole - (std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) + 1);
      }
      inputs.push_back(t.onnx().AddConstant(node.name() + "/sizes", sizes));
    }
    const std::vector<std::string> parts =
        t.onnx().AddWithOutputs(node.num_outputs(), "Split", node.name(), inputs, {{"axis", axis}});
    for (int i = 0; i < node.num_outputs(); ++i) t.SetPlain(node.output(i), parts[static_cast<size_t>(i)]);
  }

  // Each used part becomes a look-up of its own, which removes the axis.
  static void Unpack(OnnxTranslation& t, const Node& node) {
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (t.Uses(node.output(i)) == 0) continue;
      const std::string name = StrCat(node.name(), ":", i);
      const std::string place = t.onnx().AddConstant(name + "/place", Tensor::Scalar(int64_t{i}));
      t.SetPlain(node.output(i),
                 t.onnx().Add("Gather", name, {t.Plain(node.input(0)), place}, {{"axis", node.attr<int64_t>("axis")}}));
    }
  }

  static void Pack(OnnxTranslation& t, const Node& node) {
    const int64_t axis = node.attr<int64_t>("axis");
    const std::string axes = Axes(t, node, {axis});
    std::vector<std::string> parts;
    for (const Output& input : node.inputs()) {
      parts.push_back(t.onnx().Add("Unsqueeze", StrCat(node.name(), "/", parts.size()), {t.Plain(input), axes}));
    }
    t.SetPlain(node, t.onnx().Add("Concat", node.name(), parts, {{"axis", axis}}));
  }

  static void Concat(OnnxTranslation& t, const Node& node) {
    static const Ints kToNchw = {0, 3, 1, 2};
    const int last = node.num_inputs() - 1;
    int64_t axis = t.Integers(node.input(last)).at(0);
    bool nchw = true;
    for (int i = 0; i < last; ++i) nchw = nchw && t.OnlyNchw(node.input(i));
    if (nchw) axis = static_cast<int64_t>(std::find(kToNchw.begin(), kToNchw.end(), (axis + 4) % 4) - kToNchw.begin());
    std::vector<std::string> inputs;
    inputs.reserve(static_cast<size_t>(last));
    for (int i = 0; i < last; ++i) inputs.push_back(nchw ? t.Nchw(node.input(i)) : t.Plain(node.input(i)));
    const std::string result = t.onnx().Add("Concat", node.name(), inputs, {{"axis", axis}});
    nchw ? t.SetNchw(node, result) : t.SetPlain(node, result);
  }

  // ONNX has no Any and no All: they are the largest and the smallest of the bools as numbers.
  static void Reduce(OnnxTranslation& t, const Node& node) {
    Ints axes = t.Integers(node.input(1));
    const int64_t keep = node.attr<bool>("keep_dims") ? 1 : 0;
    const Output& x = node.input(0);
    for (int64_t& axis : axes) axis = axis < 0 ? axis + x.shape().rank() : axis;
    std::sort(axes.begin(), axes.end());
    // The layout does not matter for a sum over rows and columns.
    const bool nchw = t.OnlyNchw(x) && axes == Ints{1, 2};
    if (nchw) axes = {2, 3};
    std::string value = nchw ? t.Nchw(x) : t.Plain(x);
    const bool bools = x.dtype() == DType::kBool;
    const auto cast = [&](const char* suffix, const std::string& from, DType to) {
      return t.onnx().Add("Cast", node.name() + suffix, {from}, {{"to", int64_t{OnnxGraph::TypeNumber(to)}}});
    };
    if (bools) value = cast("/numbers", value, DType::kInt32);
    const std::string op = node.op_name() == "Any" ? "Max" : node.op_name() == "All" ? "Min" : node.op_name();
    std::string result;
    if (node.op_name() == "Sum") {  // the one that takes them as an input in this opset
      const std::string input = t.onnx().AddConstant(node.name() + "/axes", axes);
      result = t.onnx().Add("ReduceSum", node.name(), {value, input}, {{"keepdims", keep}});
    } else {
      result = t.onnx().Add(("Reduce" + op).c_str(), node.name(), {value}, {{"axes", axes}, {"keepdims", keep}});
    }
    if (bools) result = cast("/bools", result, DType::kBool);
    nchw&& keep == 1 ? t.SetNchw(node, result) : t.SetPlain(node, result);
  }

  static void ResourceGather(OnnxTranslation& t, const Node& node) {
    const OnnxTranslation::NamedTensor* variable = t.Variable(node.input(0));
    if (variable == nullptr) {
      throw UnimplementedError(StrCat("[keras/onnx] expected rows of a weight; got ", node.Describe()));
    }
    const std::string rows = t.onnx().AddConstant(variable->name, variable->value);
    t.SetPlain(node, t.onnx().Add("Gather", node.name(), {rows, t.Plain(node.input(1))}, {{"axis", int64_t{0}}}));
  }

  static void Gather(OnnxTranslation& t, const Node& node) {
    int64_t axis = t.Integers(node.input(2)).at(0), batch_dims = node.attr<int64_t>("batch_dims");
    const std::string params = t.Plain(node.input(0)), indices = t.Plain(node.input(1));
    if (batch_dims == 0) {
      t.SetPlain(node, t.onnx().Add("Gather", node.name(), {params, indices}, {{"axis", axis}}));
      return;
    }
    if (axis < 0) axis += node.input(0).shape().rank();
    if (batch_dims < 0) batch_dims += node.input(1).shape().rank();
    if (axis != batch_dims) {
      throw UnimplementedError(
          StrCat("[keras/onnx] expected a Gather along the first axis behind its batch_dims; got ", node.Describe()));
    }
    std::string wide = indices;
    if (node.input(1).dtype() != DType::kInt64) {
      const int64_t type = OnnxGraph::TypeNumber(DType::kInt64);
      wide = t.onnx().Add("Cast", node.name() + "/indices", {indices}, {{"to", type}});
    }
    const std::string places = t.onnx().Add("Unsqueeze", node.name() + "/places", {wide, Axes(t, node, {-1})});
    t.SetPlain(node, t.onnx().Add("GatherND", node.name(), {params, places}, {{"batch_dims", batch_dims}}));
  }

  // Matrices or stacks of matrices. If the attribute says so, an operand's last two axes are exchanged.
  static void Product(OnnxTranslation& t, const Node& node, const char* turn_a, const char* turn_b) {
    std::vector<std::string> inputs;
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(t.Plain(node.input(i)));
      if (!node.attr<bool>(i == 0 ? turn_a : turn_b)) continue;
      Ints perm(static_cast<size_t>(node.input(i).shape().rank()));
      std::iota(perm.begin(), perm.end(), int64_t{0});
      std::swap(perm.at(perm.size() - 2), perm.at(perm.size() - 1));
      inputs.back() = t.onnx().Add("Transpose", inputs.back() + "/turned", {inputs.back()}, {{"perm", perm}});
    }
    t.SetPlain(node, t.onnx().Add("MatMul", node.name(), inputs));
  }
  static void MatMul(OnnxTranslation& t, const Node& node) { Product(t, node, "transpose_a", "transpose_b"); }
  static void BatchMatMul(OnnxTranslation& t, const Node& node) { Product(t, node, "adj_x", "adj_y"); }
};

}  // namespace

const OnnxRules& OnnxArrayRules() {
  static const OnnxRules rules = {{"ReadVariableOp", ArrayRules::Variable},
                                  {"Identity", ArrayRules::Alias},
                                  {"StopGradient", ArrayRules::Alias},
                                  {"Shape", ArrayRules::ShapeOf},
                                  {"Reshape", ArrayRules::Reshape},
                                  {"ExpandDims", ArrayRules::ExpandDims},
                                  {"Squeeze", ArrayRules::Squeeze},
                                  {"Transpose", ArrayRules::Transpose},
                                  {"BroadcastTo", ArrayRules::BroadcastTo},
                                  {"Tile", ArrayRules::Tile},
                                  {"Pad", ArrayRules::Pad},
                                  {"PadV2", ArrayRules::Pad},
                                  {"Slice", ArrayRules::Slice},
                                  {"StridedSlice", ArrayRules::StridedSlice},
                                  {"Split", ArrayRules::Split},
                                  {"SplitV", ArrayRules::Split},
                                  {"Unpack", ArrayRules::Unpack},
                                  {"Pack", ArrayRules::Pack},
                                  {"ConcatV2", ArrayRules::Concat},
                                  {"Mean", ArrayRules::Reduce},
                                  {"Sum", ArrayRules::Reduce},
                                  {"Max", ArrayRules::Reduce},
                                  {"Min", ArrayRules::Reduce},
                                  {"Any", ArrayRules::Reduce},
                                  {"All", ArrayRules::Reduce},
                                  {"ResourceGather", ArrayRules::ResourceGather},
                                  {"GatherV2", ArrayRules::Gather},
                                  {"MatMul", ArrayRules::MatMul},
                                  {"BatchMatMulV2", ArrayRules::BatchMatMul}};
  return rules;
}

}  // namespace cohort::keras
