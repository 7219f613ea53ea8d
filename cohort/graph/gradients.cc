// Reverse-mode differentiation. First all nodes are ordered that the ys depend on, and the nodes between xs and ys are
// marked. Then the nodes are visited from the ys back. A visit sums the gradients that have arrived at the node's
// outputs, calls the gradient function of its op, and passes the results on to the node's inputs. At the end the sums
// that have arrived at the xs are returned.
#include "cohort/graph/gradients.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"
#include "cohort/graph/gradient_sum.h"

namespace cohort {
namespace {

struct OutputHash {
  size_t operator()(const Output& value) const {
    return std::hash<const void*>()(value.node) * 31 + static_cast<size_t>(value.index);
  }
};
using OutputSet = std::unordered_set<Output, OutputHash>;

bool CarriesGradient(DType dtype) { return IsFloating(dtype) || IsHandle(dtype); }

void CheckArguments(const std::vector<Output>& ys, const std::vector<Output>& xs, const std::vector<Output>& grad_ys,
                    const std::vector<Output>& stop) {
  if (ys.empty()) throw InvalidArgumentError("[graph] Gradients: expected at least one y, got none");
  if (!grad_ys.empty() && grad_ys.size() != ys.size()) {
    throw InvalidArgumentError(
        StrCat("[graph] Gradients: expected one grad_y for each of the ", ys.size(), " ys, got ", grad_ys.size()));
  }
  const auto check = [&ys](const std::vector<Output>& values, const char* what) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i].valid()) throw InvalidArgumentError(StrCat("[graph] Gradients: ", what, "[", i, "] is no value"));
      if (&values[i].graph() != &ys[0].graph()) {
        throw InvalidArgumentError(StrCat("[graph] Gradients: ", what, "[", i, "], ", values[i].name(),
                                          ", is of another graph than ", ys[0].name()));
      }
    }
  };
  check(ys, "ys");
  check(xs, "xs");
  check(stop, "stop");
  for (const Output& y : ys) {
    if (!IsFloating(y.dtype())) {
      throw InvalidArgumentError(StrCat("[graph] Gradients: expected ys of a floating dtype, got ", y.dtype(),
                                        y.shape(), " of ", y.node->Describe(), "; cast it"));
    }
  }
  for (size_t i = 0; i < grad_ys.size(); ++i) {
    const Output& grad = grad_ys[i];
    if (!grad.valid()) continue;
    if (grad.dtype() != ys[i].dtype() || !grad.shape().IsCompatibleWith(ys[i].shape())) {
      throw InvalidArgumentError(StrCat("[graph] Gradients: expected for grad_ys[", i, "] ", ys[i].dtype(),
                                        ys[i].shape(), " as ", ys[i].name(), " has, got ", grad.dtype(), grad.shape(),
                                        " of ", grad.name()));
    }
  }
}

// For an x that no y depends on.
std::string WhyNone(const std::vector<Output>& ys, const Output& x) {
  std::string what = StrCat("'", x.name(), "'");
  for (const VariableInfo* variable : x.graph().variables()) {
    if (variable->handle == x || variable->value == x) what = StrCat("variable '", variable->name, "'");
  }
  std::vector<std::string> names;
  names.reserve(ys.size());
  for (const Output& y : ys) names.push_back(y.name());
  return StrCat("the loss '", StrJoin(names, "' + '"), "' does not depend on ", what);
}

// One call of Gradients: what lies between xs and ys, and the gradients that have arrived at each value.
class Backprop {
 public:
  Backprop(const std::vector<Output>& ys, const std::vector<Output>& xs, const std::vector<Output>& stop)
      : graph_(ys[0].graph()), xs_(xs.begin(), xs.end()), stop_(stop.begin(), stop.end()) {
    for (const Output& y : ys) Order(y.node);
    for (Node* node : order_) {
      for (const Output& input : node->inputs()) {
        if (CarriesGradient(input.dtype()) && LeadsToX(input)) {
          on_the_way_.insert(node);
          break;
        }
      }
    }
  }

  void Add(const Output& value, Gradient gradient) { arrived_[value].push_back(std::move(gradient)); }

  void Run() {
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      if (on_the_way_.count(*node) != 0) Visit(**node);
    }
  }

  // The sum of what has arrived at `value`, added up once.
  Gradient Sum(const Output& value) {
    const auto it = arrived_.find(value);
    if (it == arrived_.end()) return Gradient();
    std::vector<Gradient>& parts = it->second;
    if (parts.size() > 1) parts = {SumGradients(parts)};
    return parts[0];
  }

 private:
  // Whether `value` is an x or is computed from one.
  bool LeadsToX(const Output& value) const {
    if (xs_.count(value) != 0) return true;
    return stop_.count(value) == 0 && on_the_way_.count(value.node) != 0;
  }

  // Appends the ancestors of `root` and itself to order_, inputs first.
  void Order(Node* root) {
    std::vector<std::pair<Node*, int>> stack;
    if (seen_.insert(root).second) stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == node->num_inputs()) {
        order_.push_back(node);
        stack.pop_back();
        continue;
      }
      const Output& input = node->input(next++);
      if (CarriesGradient(input.dtype()) && seen_.insert(input.node).second) stack.emplace_back(input.node, 0);
    }
  }

  void Visit(const Node& node) {
    std::vector<Gradient> grads;
    bool any = false;
    for (int i = 0; i < node.num_outputs(); ++i) {
      const bool stopped = stop_.count(node.output(i)) != 0;
      grads.push_back(stopped ? Gradient() : Sum(node.output(i)));
      any |= grads.back().exists();
    }
    if (!any || !node.op().not_differentiable_reason().empty()) return;
    const std::vector<Gradient> result = Differentiate(node, std::move(grads));
    // A gradient function may have given the node more inputs, which are none of ours.
    for (int i = 0; i < static_cast<int>(result.size()); ++i) {
      const Gradient& gradient = result[static_cast<size_t>(i)];
      const Output& input = node.input(i);
      if (!gradient.exists() || !CarriesGradient(input.dtype()) || !LeadsToX(input)) continue;
      Check(node, i, gradient);
      Add(input, gradient);
    }
  }

  std::vector<Gradient> Differentiate(const Node& node, std::vector<Gradient> grads) {
    // A handle's gradient belongs to the variable behind it, whatever names the handle has in between.
    if (node.op_name() == "Identity" && node.output_dtype(0) == DType::kResource) return grads;
    if (!node.op().gradient_fn()) {
      throw InvalidArgumentError(StrCat("[graph] Gradients: op ", node.op_name(),
                                        " has no gradient and is not declared to have none; it is used by ",
                                        node.Describe(), " between ys and xs; register one, or stop there"));
    }
    NameScope name(graph_, node.name() + "_grad");
    const CallSiteScope site(graph_, node.site());
    std::optional<ColocateWith> colocate;
    std::optional<DeviceScope> device;
    if (node.colocate_with().empty()) {
      device.emplace(graph_, node.device());
    } else {
      colocate.emplace(graph_, node);
    }
    GradientContext context(node, std::move(grads));
    node.op().gradient_fn()(context);
    return context.TakeResult();
  }

  static void Check(const Node& node, int i, const Gradient& gradient) {
    const Output& input = node.input(i);
    const bool handle = input.dtype() == DType::kResource;
    const DType dtype = handle ? HandleDType(input) : input.dtype();
    const Shape shape = handle ? HandleShape(input) : input.shape();
    const Output& values = gradient.values;
    const bool fits_dtype = dtype == DType::kInvalid || values.dtype() == dtype;
    if (!fits_dtype || (!gradient.is_sparse() && !values.shape().IsCompatibleWith(shape))) {
      throw InternalError(StrCat("[graph] the gradient function of ", node.op_name(), " gave ", values.dtype(),
                                 values.shape(), " for input ", i, ", expected ", dtype, shape, "; at ",
                                 node.Describe()));
    }
  }

  Graph& graph_;
  OutputSet xs_;
  OutputSet stop_;
  std::vector<Node*> order_;
  std::unordered_set<const Node*> seen_;
  std::unordered_set<const Node*> on_the_way_;
  std::unordered_map<Output, std::vector<Gradient>, OutputHash> arrived_;
};

// Adds up the rows where they are computed. If the node whose gradient is asked for has another device, the sum travels
// there, which is as large as the node's output, and not all of the rows.
Output ToDenseBesideRows(const Gradient& gradient) {
  const std::string device = gradient.values.node->device();
  if (device.empty()) return ToDense(gradient);
  Graph& graph = gradient.values.graph();
  const ColocateWith no_colocation(graph, nullptr);
  const DeviceScope no_device(graph, nullptr);
  const DeviceScope beside_rows(graph, device);
  return ToDense(gradient);
}

}  // namespace

GradientContext::GradientContext(const Node& node, std::vector<Gradient> output_gradients)
    : node_(node), grads_(std::move(output_gradients)), result_(static_cast<size_t>(node.num_inputs())) {}

Output GradientContext::grad(int i) {
  Gradient& gradient = grads_.at(static_cast<size_t>(i));
  if (!gradient.exists()) {
    gradient = Gradient(graph().Op("ZerosLike").Input(output(i)).Finish1());
  } else if (gradient.is_sparse()) {
    gradient = Gradient(ToDenseBesideRows(gradient));
  }
  return gradient.values;
}

std::vector<Gradient> Gradients(const std::vector<Output>& ys, const std::vector<Output>& xs,
                                const std::vector<Output>& grad_ys, const std::vector<Output>& stop) {
  CheckArguments(ys, xs, grad_ys, stop);
  Graph& graph = ys[0].graph();
  NameScope name(graph, "gradients");
  ControlDependencies no_controls(graph, nullptr);
  ColocateWith no_colocation(graph, nullptr);
  DeviceScope no_device(graph, nullptr);

  Backprop backprop(ys, xs, stop);
  for (size_t i = 0; i < ys.size(); ++i) {
    if (!grad_ys.empty() && grad_ys[i].valid()) {
      backprop.Add(ys[i], Gradient(grad_ys[i]));
      continue;
    }
    DeviceScope device(graph, ys[i].node->device());
    backprop.Add(ys[i], Gradient(graph.Op("OnesLike").Input(ys[i]).Name("grad_ys").Finish1()));
  }
  backprop.Run();

  std::vector<Gradient> result;
  for (const Output& x : xs) {
    result.push_back(backprop.Sum(x));
    if (!result.back().exists()) result.back().why_none = WhyNone(ys, x);
  }
  return result;
}

}  // namespace cohort
