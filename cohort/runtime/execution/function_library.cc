// Makes the body of a function a graph for an executor (GraphOfBody), compiles each function once (Compile), and runs
// calls (Body::CallAsync). A call is a step of the body's executor within the step of the caller.
#include "cohort/runtime/execution/function_library.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/device_name.h"
#include "cohort/graph/topological_order.h"

namespace cohort {
namespace {

std::unordered_set<const Node*> NeededNodes(const Function& function) {
  std::unordered_set<const Node*> needed;
  std::vector<const Node*> stack;
  const auto need = [&](const Node* node) {
    if (needed.insert(node).second) stack.push_back(node);
  };
  for (const Output& result : function.results()) need(result.node);
  for (const Node* node : function.graph().nodes()) {
    if (node->op().is_stateful() && node->op_name() != "Placeholder") need(node);
  }
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const Output& input : node->inputs()) need(input.node);
    for (const Node* control : node->control_inputs()) need(control);
  }
  return needed;
}

void CheckDevice(const Function& function, const Node& node, const Device& device) {
  if (node.device().empty() || DeviceName::Parse(node.device()).Matches(device.attributes().name)) return;
  throw InvalidArgumentError(StrCat("[function] '", function.name(), "' is called on ", device.name(),
                                    " and runs there; its ", node.Describe(), " asks for ", node.device(),
                                    "; call the function where it is to run"));
}

Node* AddArg(Graph& graph, const Node& placeholder, size_t index) {
  NodeBuilder builder = graph.Op("_Arg");
  for (const auto& [name, value] : placeholder.attrs()) {
    if (name.rfind("_handle_", 0) == 0) builder.Attr(name, value);
  }
  return builder.ExactName(placeholder.name())
      .Attr("T", placeholder.output_dtype(0))
      .Attr("index", static_cast<int64_t>(index))
      .Attr("shape", placeholder.output_shape(0))
      .Attr("_of_function", true)
      .IgnoreScopes()
      .Finish();
}

}  // namespace

std::unique_ptr<Graph> GraphOfBody(const Function& function, const Device& device) {
  const std::unordered_set<const Node*> needed = NeededNodes(function);
  std::unordered_map<const Node*, size_t> args;
  for (size_t i = 0; i < function.args().size(); ++i) args.emplace(function.args()[i].node, i);
  auto graph = std::make_unique<Graph>();
  std::unordered_map<const Node*, Node*> copies;
  for (const Node* node : TopologicalOrder(function.graph())) {
    if (needed.count(node) == 0) continue;
    if (const auto arg = args.find(node); arg != args.end()) {
      copies[node] = AddArg(*graph, *node, arg->second);
      continue;
    }
    CheckDevice(function, *node, device);
    std::vector<Output> inputs;
    for (const Output& input : node->inputs()) inputs.push_back({copies.at(input.node), input.index});
    std::vector<Node*> controls;
    for (const Node* control : node->control_inputs()) controls.push_back(copies.at(control));
    copies[node] = CopyNode(*graph, *node, inputs, controls);
  }
  for (size_t i = 0; i < function.results().size(); ++i) {
    const Output& result = function.results()[i];
    graph->Op("_Retval")
        .Name(StrCat("_retval_", i))
        .Input({copies.at(result.node), result.index})
        .Attr("index", static_cast<int64_t>(i))
        .Attr("_of_function", true)
        .IgnoreScopes()
        .Finish();
  }
  return graph;
}

class FunctionLibrary::Body final : public CompiledFunction {
 public:
  Body(std::shared_ptr<const Function> function, Device& device, FunctionLibrary& library)
      : function_(std::move(function)), executor_(GraphOfBody(*function_, device), device, &library) {}

  const std::string& name() const override { return function_->name(); }
  Executor& executor() { return executor_; }

  void CallAsync(const KernelContext& ctx, StepMode mode, std::vector<Tensor> args, Done done) override {
    if (args.size() != function_->args().size()) {
      return done(Status(Code::kInvalidArgument,
                         StrCat("[function] ", args.size(), " arguments were given to ", function_->Signature())),
                  {});
    }
    auto* call = new Call{{name(), ctx.node(), ctx.step().caller}, std::move(args), {}, {}, std::move(done)};
    call->results.resize(function_->results().size());
    call->step = ctx.step();
    call->step.args = call->args;
    call->step.rets = call->results;
    call->step.caller = &call->frame;
    call->step.in_update_gate = ctx.in_update_gate();
    executor_.RunAsync(call->step, mode, [call](const Status& status) {
      const std::unique_ptr<Call> ended(call);
      ended->args.clear();
      if (!status.ok()) ended->results.clear();
      ended->done(status, std::move(ended->results));
    });
  }

 private:
  struct Call {
    CallFrame frame;
    std::vector<Tensor> args;
    std::vector<Tensor> results;
    StepInfo step;
    Done done;
  };

  const std::shared_ptr<const Function> function_;
  Executor executor_;
};

FunctionLibrary::FunctionLibrary(const Graph& graph, Device& device) : graph_(graph), device_(device) {}
FunctionLibrary::~FunctionLibrary() = default;

CompiledFunction& FunctionLibrary::Compile(const Node& caller, const std::string& name) {
  const auto known = bodies_.find(name);
  if (known != bodies_.end()) return *known->second;
  std::shared_ptr<const Function> function = graph_.FindFunction(name);
  if (function == nullptr) {
    throw NotFoundError(
        StrCat("[function] ", caller.Describe(), " calls the function '", name, "', which the library lacks"));
  }
  if (std::find(compiling_.begin(), compiling_.end(), name) != compiling_.end()) {
    throw InvalidArgumentError(
        StrCat("[function] '", name, "' calls itself, by way of ", StrJoin(compiling_, " -> "), "; use a While loop"));
  }
  compiling_.push_back(name);
  try {
    auto body = std::make_unique<Body>(std::move(function), device_, *this);
    compiling_.pop_back();
    return *bodies_.emplace(name, std::move(body)).first->second;
  } catch (const Error& error) {
    compiling_.pop_back();
    ThrowError(error.code(), StrCat(error.what(), "\n  in function '", name, "', called by ", caller.Describe()));
  }
}

void FunctionLibrary::LookAt(std::vector<RunLook>* looks) {
  for (const auto& [name, body] : bodies_) body->executor().LookAt(looks);
}

bool FunctionLibrary::UpdatesVariable(const Node& node) const {
  if (node.op().updates_variable()) return true;
  for (const std::string& name : CalledFunctions(node)) {
    const std::shared_ptr<const Function> function = graph_.FindFunction(name);
    if (function == nullptr) continue;
    const std::vector<Node*> nodes = function->graph().nodes();
    if (std::any_of(nodes.begin(), nodes.end(), [this](const Node* inner) { return UpdatesVariable(*inner); })) {
      return true;
    }
  }
  return false;
}

}  // namespace cohort
