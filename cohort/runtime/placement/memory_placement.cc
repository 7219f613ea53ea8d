#include "cohort/runtime/placement/memory_placement.h"

#include <map>
#include <utility>
#include <vector>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr const char* kHostMemory = "_host_memory";

struct Use {
  Node* node;
  int input;
};
struct Uses {
  std::vector<Use> host;
  std::vector<Use> device;
};

bool HoldsObjects(DType dtype) { return DTypeSize(dtype) == 0; }

// Returns whether output 0 can lie in either memory.
bool IsMovable(const Node& node) {
  const std::string& op = node.op_name();
  return op == "_Arg" || op == "_Recv" || (op == "Const" && node.control_inputs().empty());
}

Node* CopyOfConst(Graph& graph, const Node& node) {
  return graph.Op("Const").Name(StrCat(node.name(), "/host")).Attrs(node.attrs()).IgnoreScopes().Finish();
}

// Makes `uses` read output 0 of `node` instead.
void Redirect(const std::vector<Use>& uses, Node* node) {
  for (const Use& use : uses) use.node->ReplaceInput(use.input, node->output(0));
}

void AddCopy(Graph& graph, const Output& value, const char* op, const std::vector<Use>& uses) {
  Redirect(uses, graph.Op(op).Name(StrCat(op, "/", value.node->name())).Input(value).IgnoreScopes().Finish());
}

void PlaceValue(Graph& graph, const Output& value, const Uses& uses) {
  if (IsMovable(*value.node) && uses.device.empty()) {
    value.node->SetAttr(kHostMemory, true);
  } else if (IsMovable(*value.node) && !uses.host.empty() && value.node->op_name() == "Const") {
    Node* copy = CopyOfConst(graph, *value.node);
    copy->SetAttr(kHostMemory, true);
    Redirect(uses.host, copy);
  } else if (IsMovable(*value.node) && !uses.host.empty()) {
    value.node->SetAttr(kHostMemory, true);
    AddCopy(graph, value, "_ToDevice", uses.device);
  } else if (LiesInHostMemory(value) && !uses.device.empty()) {
    AddCopy(graph, value, "_ToDevice", uses.device);
  } else if (!LiesInHostMemory(value) && !uses.host.empty()) {
    AddCopy(graph, value, "_ToHost", uses.host);
  }
}

}  // namespace

bool LiesInHostMemory(const Output& value) {
  const Node& node = *value.node;
  return node.output_arg(value.index).host_memory || HoldsObjects(value.dtype()) || node.has_attr(kHostMemory);
}

Tensor PlacedAs(const KernelContext& ctx, int output, Tensor value) {
  const MemorySpace of_device = ctx.device().allocator().space();
  if (of_device.is_host() && value.space().is_host()) return value;
  if (LiesInHostMemory(ctx.node().output(output))) {
    return value.space().is_host() ? std::move(value) : ctx.device().CopyToHost(value);
  }
  return value.space() == of_device ? std::move(value) : ctx.device().CopyFromHostAsync(value);
}

bool MustComeToHost(const KernelContext& ctx, int output, const Tensor& value) {
  return !value.space().is_host() && LiesInHostMemory(ctx.node().output(output));
}

void CopyToHostInStep(const KernelContext& ctx, const Tensor& value, Device::CopyDone done) {
  if (value.space().is_host()) return done(Status(), value);
  ctx.device().CopyToHostAsync(value,
                               [error = ctx.step().error, done = std::move(done)](const Status& status, Tensor copy) {
                                 const bool failed = status.ok() && error != nullptr && error->set();
                                 done(failed ? error->status() : status, std::move(copy));
                               });
}

void PlaceInMemory(Graph& graph, const std::string& device_type) {
  const std::vector<Node*> nodes = graph.nodes();
  std::map<std::pair<int, int>, Uses> uses;  // by node id and output
  for (Node* node : nodes) {
    const KernelMemory memory = KernelRegistry::Global().MemoryOf(node->op_name(), device_type);
    if (memory == KernelMemory::kHost) node->SetAttr(kHostMemory, true);
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Output& value = node->input(i);
      if (HoldsObjects(value.dtype())) continue;
      Uses& here = uses[{value.node->id(), value.index}];
      const bool wants_host = node->input_arg(i).host_memory || memory == KernelMemory::kHost;
      if (!wants_host && memory == KernelMemory::kEither) continue;
      (wants_host ? here.host : here.device).push_back({node, i});
    }
  }
  for (Node* node : nodes) {
    for (int i = 0; i < node->num_outputs(); ++i) {
      const auto found = uses.find({node->id(), i});
      if (found != uses.end()) PlaceValue(graph, node->output(i), found->second);
    }
  }
}

}  // namespace cohort
