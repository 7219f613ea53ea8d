// How an executor makes its plan: kernels, slots, chains and who waits for whom.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "cohort/runtime/executor.h"
#include "cohort/runtime/function_library.h"
#include "cohort/runtime/memory_placement.h"
#include "cohort/runtime/run_order.h"

namespace cohort {

void Executor::Compile() {
  const std::vector<Node*> order = RunOrder(*graph_);
  std::unordered_map<const Node*, int32_t> first_slot;
  std::unordered_map<const Node*, int32_t> index_of;  // constants have none
  std::vector<std::vector<int32_t>> predecessors;
  for (Node* node : order) {
    first_slot[node] = num_slots_;
    num_slots_ += node->num_outputs();
    if (node->op_name() == "Const" && node->control_inputs().empty()) {
      const Tensor& value = node->attr<Tensor>("value");
      constants_.emplace_back(first_slot[node],
                              LiesInHostMemory(node->output(0)) ? value : device_.CopyFromHost(value));
      continue;
    }
    PlanNode plan;
    plan.node = node;
    kernels_.push_back(KernelRegistry::Global().Create({*node, device_, &functions_}));
    plan.kernel = kernels_.back().get();
    plan.async = plan.kernel->AsAsync();
    plan.updates = functions_.UpdatesVariable(*node);
    plan.input_begin = static_cast<int32_t>(input_slots_.size());
    plan.num_inputs = node->num_inputs();
    plan.output_begin = first_slot[node];
    plan.num_outputs = node->num_outputs();
    std::vector<int32_t> before;
    const auto add_before = [&](const Node* producer) {
      const auto it = index_of.find(producer);
      if (it != index_of.end()) before.push_back(it->second);
    };
    for (const Output& input : node->inputs()) {
      input_slots_.push_back(first_slot.at(input.node) + input.index);
      add_before(input.node);
    }
    for (const Node* control : node->control_inputs()) add_before(control);
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    index_of[node] = static_cast<int32_t>(nodes_.size());
    predecessors.push_back(std::move(before));
    has_sends_ = has_sends_ || node->op_name() == "_Send";
    async_nodes_ += plan.async != nullptr ? 1 : 0;
    update_nodes_ += plan.updates ? 1 : 0;
    nodes_.push_back(plan);
  }
  initial_uses_.assign(static_cast<size_t>(num_slots_), 0);
  for (const int32_t slot : input_slots_) ++initial_uses_[static_cast<size_t>(slot)];
  FuseChains(predecessors);
  LinkSuccessors(predecessors);
}

// A chain takes the place of its last node, so that all that its members need stands before it.
void Executor::FuseChains(std::vector<std::vector<int32_t>>& predecessors) {
  const size_t count = nodes_.size();
  std::vector<int32_t> consumers(count, 0);  // of any kind, control edges included
  for (const auto& before : predecessors) {
    for (const int32_t producer : before) ++consumers[static_cast<size_t>(producer)];
  }
  std::vector<int32_t> producer_of_slot(static_cast<size_t>(num_slots_), -1);
  for (size_t i = 0; i < count; ++i) {
    for (int32_t k = 0; k < nodes_[i].num_outputs; ++k) {
      producer_of_slot[static_cast<size_t>(nodes_[i].output_begin + k)] = static_cast<int32_t>(i);
    }
  }
  // before[i]: the node that i follows in a chain; each node is followed by at most one.
  std::vector<int32_t> follows(count, -1);
  std::vector<bool> followed(count, false);
  for (size_t i = 0; i < count; ++i) {
    for (int32_t k = 0; k < nodes_[i].num_inputs && follows[i] < 0; ++k) {
      const int32_t slot = input_slots_[static_cast<size_t>(nodes_[i].input_begin + k)];
      const int32_t producer = producer_of_slot[static_cast<size_t>(slot)];
      if (producer < 0 || consumers[static_cast<size_t>(producer)] != 1) continue;
      const PlanNode& before = nodes_[static_cast<size_t>(producer)];
      if (!CanChain(*before.node, *before.kernel, *nodes_[i].node, *nodes_[i].kernel,
                    initial_uses_[static_cast<size_t>(slot)])) {
        continue;
      }
      follows[i] = producer;
      followed[static_cast<size_t>(producer)] = true;
    }
  }
  std::vector<int32_t> new_index(count, -1);
  std::vector<PlanNode> kept;
  std::vector<std::vector<int32_t>> kept_predecessors;
  for (size_t i = 0; i < count; ++i) {
    if (followed[i]) continue;  // inside a chain that ends later
    PlanNode plan = nodes_[i];
    std::vector<int32_t> before = predecessors[i];
    if (follows[i] >= 0) {
      std::vector<ChainStage> stages;
      std::vector<PlanNode> members;
      for (int32_t at = static_cast<int32_t>(i); at >= 0; at = follows[static_cast<size_t>(at)]) {
        const PlanNode& member = nodes_[static_cast<size_t>(at)];
        members.insert(members.begin(), member);
        const int32_t value = follows[static_cast<size_t>(at)] < 0
                                  ? -1
                                  : nodes_[static_cast<size_t>(follows[static_cast<size_t>(at)])].output_begin;
        const auto operand = [&](int32_t k) {
          const int32_t slot = input_slots_[static_cast<size_t>(member.input_begin + k)];
          return slot == value ? -1 : slot;
        };
        stages.insert(stages.begin(),
                      {member.kernel->AsElementwise(), operand(0), member.num_inputs > 1 ? operand(1) : -1});
        const auto& more = predecessors[static_cast<size_t>(at)];
        before.insert(before.end(), more.begin(), more.end());
      }
      Chain chain{ElementwiseChain(std::move(stages), plan.node->output_dtype(0)), std::move(members), {}};
      for (const ChainStage& stage : chain.fused.stages()) {
        for (const int32_t slot : {stage.left, stage.right}) {
          const bool unary = stage.loops->unary != nullptr;
          if (slot >= 0 && !(unary && slot == stage.right)) chain.inputs.push_back(slot);
        }
      }
      plan.chain = static_cast<int32_t>(chains_.size());
      chains_.push_back(std::move(chain));
    }
    std::vector<int32_t> renumbered;
    for (const int32_t producer : before) {
      if (new_index[static_cast<size_t>(producer)] >= 0) renumbered.push_back(new_index[static_cast<size_t>(producer)]);
    }
    std::sort(renumbered.begin(), renumbered.end());
    renumbered.erase(std::unique(renumbered.begin(), renumbered.end()), renumbered.end());
    new_index[i] = static_cast<int32_t>(kept.size());
    kept.push_back(plan);
    kept_predecessors.push_back(std::move(renumbered));
  }
  nodes_ = std::move(kept);
  predecessors = std::move(kept_predecessors);
}

void Executor::LinkSuccessors(const std::vector<std::vector<int32_t>>& predecessors) {
  std::vector<std::vector<int32_t>> successors(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    initial_pending_.push_back(static_cast<int32_t>(predecessors[i].size()));
    if (predecessors[i].empty()) sources_.push_back(static_cast<int32_t>(i));
    for (const int32_t producer : predecessors[i]) {
      successors[static_cast<size_t>(producer)].push_back(static_cast<int32_t>(i));
    }
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].successor_begin = static_cast<int32_t>(successors_.size());
    nodes_[i].num_successors = static_cast<int32_t>(successors[i].size());
    successors_.insert(successors_.end(), successors[i].begin(), successors[i].end());
  }
}

void Executor::KeepConstants() {
  std::unordered_map<int32_t, const Tensor*> constants;
  for (const auto& [slot, value] : constants_) {
    initial_uses_[static_cast<size_t>(slot)] = kForEver;
    constants[slot] = &value;
  }
  for (Chain& chain : chains_) {
    chain.fused.BindConstants(constants);
    std::erase_if(chain.inputs, [this](int32_t slot) { return initial_uses_[static_cast<size_t>(slot)] == kForEver; });
  }
}

// What is sent, fetched, assigned or put into a list is held by others for as long as they like. A buffer that gets
// there in another way, as part of a view or by work in place, is found at the end of a run.
void Executor::PlanArena() {
  std::vector<int32_t> producer_of_slot(static_cast<size_t>(num_slots_), -1);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (int32_t k = 0; k < nodes_[i].num_outputs; ++k) {
      producer_of_slot[static_cast<size_t>(nodes_[i].output_begin + k)] = static_cast<int32_t>(i);
    }
  }
  std::vector<bool> leaves(nodes_.size(), false);
  for (const PlanNode& plan_node : nodes_) {
    const std::string& op = plan_node.node->op_name();
    if (op != "_Send" && op != "_Retval" && op != "AssignVariableOp" && op != "TensorListPushBack") {
      continue;
    }
    const int32_t last = plan_node.input_begin + plan_node.num_inputs - 1;  // of an assignment the value
    const int32_t producer = producer_of_slot[static_cast<size_t>(input_slots_[static_cast<size_t>(last)])];
    if (producer >= 0) leaves[static_cast<size_t>(producer)] = true;
  }
  has_host_memory_ = &device_.allocator() == &HostAllocator();
  arena_planner_ = std::make_unique<ArenaPlanner>(std::move(leaves));
}

}  // namespace cohort
