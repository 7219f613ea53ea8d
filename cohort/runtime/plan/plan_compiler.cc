// A partition becomes a plan in four stages. Each node that is not a constant becomes a draft with its kernel
// (AddDraft). Drafts that the backend can run as one kernel are joined into chains (FindChains, JoinChains). Drafts
// become plan nodes with slots for their values (AddPlanNode). Each node learns which nodes run after it
// (LinkSuccessors).
#include "cohort/runtime/plan/plan_compiler.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "cohort/device/backend.h"
#include "cohort/runtime/execution/function_library.h"
#include "cohort/runtime/placement/memory_placement.h"
#include "cohort/runtime/plan/run_order.h"

namespace cohort {
namespace {

// One node of the graph, or a chain of nodes, that will become a node of the plan.
struct Draft {
  ChainLink link;               // of a chain: its last node, with the kernel of the whole chain
  std::vector<Output> inputs;   // of a chain: the values from outside, without constants
  std::vector<int32_t> before;  // drafts that run earlier, each once
  int32_t follows = -1;         // the draft before it in a chain
  bool followed = false;        // is inside a chain that ends later
};

class PlanCompiler {
 public:
  PlanCompiler(Plan& plan, FunctionLibrary& functions) : plan_(plan), functions_(functions) {}

  void Run() {
    for (Node* node : RunOrder(*plan_.graph)) AddDraft(*node);
    FindChains();
    JoinChains();
    for (size_t i = 0; i < drafts_.size(); ++i) {
      if (!drafts_[i].followed) AddPlanNode(static_cast<int32_t>(i));
    }
    CountUses();
    LinkSuccessors();
    MarkLeaves();
  }

 private:
  void AddDraft(Node& node);
  // Decides which draft follows which in a chain.
  void FindChains();
  bool CanFollow(Draft& consumer, int input, const std::vector<int32_t>& consumers) const;
  void JoinChains();
  void JoinChain(Draft& last);
  void AddPlanNode(int32_t index);
  int32_t SlotOf(const Output& value);
  void CountUses();
  void LinkSuccessors();
  void MarkLeaves();

  Plan& plan_;
  FunctionLibrary& functions_;
  std::vector<Draft> drafts_;
  std::unordered_map<const Node*, int32_t> draft_of_;
  std::unordered_map<const Node*, Tensor> constants_;  // in the memory in which their readers need them
  std::unordered_map<const Node*, int32_t> first_slot_;
  std::unordered_map<int32_t, int32_t> node_of_draft_;
  std::vector<std::vector<int32_t>> predecessors_;  // for each node of the plan
  int32_t num_slots_ = 0;
};

void PlanCompiler::AddDraft(Node& node) {
  Device& device = plan_.device;
  if (node.op_name() == "Const" && node.control_inputs().empty()) {
    const Tensor& value = node.attr<Tensor>("value");
    constants_[&node] = LiesInHostMemory(node.output(0)) ? value : device.CopyFromHost(value);
    return;
  }
  Draft draft;
  draft.link.node = &node;
  draft.link.kernel = KernelRegistry::Global().Create({node, device, &functions_});
  draft.inputs = node.inputs();
  const auto add_before = [&](const Node* producer) {
    const auto found = draft_of_.find(producer);
    if (found != draft_of_.end()) draft.before.push_back(found->second);
  };
  for (const Output& input : node.inputs()) {
    const auto constant = constants_.find(input.node);
    draft.link.constants.push_back(constant == constants_.end() ? Tensor() : constant->second);
    add_before(input.node);
  }
  for (const Node* control : node.control_inputs()) add_before(control);
  std::sort(draft.before.begin(), draft.before.end());
  draft.before.erase(std::unique(draft.before.begin(), draft.before.end()), draft.before.end());
  draft_of_[&node] = static_cast<int32_t>(drafts_.size());
  drafts_.push_back(std::move(draft));
}

void PlanCompiler::FindChains() {
  std::vector<int32_t> consumers(drafts_.size(), 0);  // inputs and control edges
  for (const Draft& draft : drafts_) {
    for (const int32_t producer : draft.before) ++consumers[static_cast<size_t>(producer)];
  }
  for (Draft& draft : drafts_) {
    for (int k = 0; k < draft.link.node->num_inputs() && draft.follows < 0; ++k) {
      if (!CanFollow(draft, k, consumers)) continue;
      draft.follows = draft_of_.at(draft.link.node->input(k).node);
      drafts_[static_cast<size_t>(draft.follows)].followed = true;
    }
  }
}

bool PlanCompiler::CanFollow(Draft& consumer, int input, const std::vector<int32_t>& consumers) const {
  const Node& node = *consumer.link.node;
  const Output& value = node.input(input);
  const auto found = draft_of_.find(value.node);
  if (found == draft_of_.end() || consumers[static_cast<size_t>(found->second)] != 1) return false;
  const Draft& producer = drafts_[static_cast<size_t>(found->second)];
  if (value.node->num_outputs() != 1 || node.num_outputs() != 1 || !node.control_inputs().empty()) return false;
  if (std::count(node.inputs().begin(), node.inputs().end(), value) != 1) return false;
  if (producer.link.kernel->AsAsync() != nullptr || consumer.link.kernel->AsAsync() != nullptr) return false;
  consumer.link.value_input = input;
  if (plan_.device.backend().CanChain(producer.link, consumer.link)) return true;
  consumer.link.value_input = -1;
  return false;
}

void PlanCompiler::JoinChains() {
  for (Draft& draft : drafts_) {
    if (draft.follows >= 0 && !draft.followed) JoinChain(draft);
  }
}

// A chain runs at the place of its last node, so that the inputs of all its links are there.
void PlanCompiler::JoinChain(Draft& last) {
  std::vector<Draft*> members = {&last};
  while (members.back()->follows >= 0) members.push_back(&drafts_[static_cast<size_t>(members.back()->follows)]);
  std::reverse(members.begin(), members.end());
  const Node* node = last.link.node;
  std::vector<ChainLink> links;
  std::vector<Output> inputs;
  std::vector<int32_t> before;
  for (Draft* member : members) {
    for (size_t k = 0; k < member->inputs.size(); ++k) {
      const bool constant = member->link.constants[k].defined();
      if (!constant && static_cast<int>(k) != member->link.value_input) inputs.push_back(member->inputs[k]);
    }
    for (const int32_t producer : member->before) {
      if (!drafts_[static_cast<size_t>(producer)].followed) before.push_back(producer);
    }
    links.push_back(std::move(member->link));
  }
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  last.link = {};
  last.link.node = node;
  last.link.kernel = plan_.device.backend().MakeChain(std::move(links));
  last.inputs = std::move(inputs);
  last.before = std::move(before);
}

int32_t PlanCompiler::SlotOf(const Output& value) {
  const auto [at, is_new] = first_slot_.try_emplace(value.node, num_slots_);
  if (is_new) {  // it is a constant; all other values get their slots before they are read
    plan_.constants.emplace_back(num_slots_++, constants_.at(value.node));
  }
  return at->second + value.index;
}

void PlanCompiler::AddPlanNode(int32_t index) {
  Draft& draft = drafts_[static_cast<size_t>(index)];
  const Node& node = *draft.link.node;
  PlanNode made;
  made.node = &node;
  made.kernel = draft.link.kernel.get();
  made.async = made.kernel->AsAsync();
  made.updates = functions_.UpdatesVariable(node);
  made.sends = node.op_name() == "_Send";
  made.on_host = !plan_.has_host_memory &&
                 KernelRegistry::Global().MemoryOf(node.op_name(), plan_.device.type()) == KernelMemory::kHost;
  made.input_begin = static_cast<int32_t>(plan_.input_slots.size());
  made.num_inputs = static_cast<int32_t>(draft.inputs.size());
  for (const Output& input : draft.inputs) plan_.input_slots.push_back(SlotOf(input));
  made.output_begin = num_slots_;
  made.num_outputs = node.num_outputs();
  first_slot_[&node] = num_slots_;
  num_slots_ += node.num_outputs();
  if (made.async != nullptr) made.async_index = plan_.async_nodes++;
  plan_.update_nodes += made.updates ? 1 : 0;
  plan_.has_sends = plan_.has_sends || made.sends;
  node_of_draft_[index] = static_cast<int32_t>(plan_.nodes.size());
  std::vector<int32_t> before;
  for (const int32_t producer : draft.before) before.push_back(node_of_draft_.at(producer));
  predecessors_.push_back(std::move(before));
  plan_.kernels.push_back(std::move(draft.link.kernel));
  plan_.nodes.push_back(made);
}

void PlanCompiler::CountUses() {
  plan_.initial_uses.assign(static_cast<size_t>(num_slots_), 0);
  for (const int32_t slot : plan_.input_slots) ++plan_.initial_uses[static_cast<size_t>(slot)];
  for (const auto& [slot, value] : plan_.constants) plan_.initial_uses[static_cast<size_t>(slot)] = Plan::kForEver;
}

void PlanCompiler::LinkSuccessors() {
  std::vector<std::vector<int32_t>> successors(plan_.nodes.size());
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    plan_.initial_pending.push_back(static_cast<int32_t>(predecessors_[i].size()));
    if (predecessors_[i].empty()) plan_.sources.push_back(static_cast<int32_t>(i));
    for (const int32_t producer : predecessors_[i]) {
      successors[static_cast<size_t>(producer)].push_back(static_cast<int32_t>(i));
    }
  }
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    plan_.nodes[i].successor_begin = static_cast<int32_t>(plan_.successors.size());
    plan_.nodes[i].num_successors = static_cast<int32_t>(successors[i].size());
    plan_.successors.insert(plan_.successors.end(), successors[i].begin(), successors[i].end());
  }
}

// Values that are sent, fetched, assigned or put into a list may be kept by others for any time. Another way to be
// kept, as a part of a view or by work in place, is noticed at the end of a run.
void PlanCompiler::MarkLeaves() {
  std::vector<int32_t> producer_of_slot(static_cast<size_t>(num_slots_), -1);
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    for (int32_t k = 0; k < plan_.nodes[i].num_outputs; ++k) {
      producer_of_slot[static_cast<size_t>(plan_.nodes[i].output_begin + k)] = static_cast<int32_t>(i);
    }
  }
  plan_.leaves.assign(plan_.nodes.size(), false);
  for (const PlanNode& node : plan_.nodes) {
    if (!node.node->op().keeps_last_input()) continue;
    const int32_t producer = producer_of_slot[static_cast<size_t>(plan_.InputSlots(node).back())];
    if (producer >= 0) plan_.leaves[static_cast<size_t>(producer)] = true;
  }
}

}  // namespace

Plan::Plan(std::unique_ptr<Graph> graph, Device& device)
    : graph(std::move(graph)),
      device(device),
      on_streams(device.backend().has_streams()),
      has_host_memory(&device.allocator() == &HostAllocator()) {}

Plan::~Plan() = default;

std::unique_ptr<const Plan> CompilePlan(std::unique_ptr<Graph> graph, Device& device, FunctionLibrary* functions) {
  auto plan = std::make_unique<Plan>(device.backend().Improve(std::move(graph)), device);
  if (!device.allocator().space().is_host()) PlaceInMemory(*plan->graph, device.type());
  if (functions == nullptr) {
    plan->own_functions = std::make_unique<FunctionLibrary>(*plan->graph, device);
    functions = plan->own_functions.get();
  }
  PlanCompiler(*plan, *functions).Run();
  return plan;
}

}  // namespace cohort
