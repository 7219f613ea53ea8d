// ElementwiseChain. A chain has two forms. In the form of one pass, each stage works on a block of elements that is
// still in the cache: `bound_` holds the operands that are the same in every step, and a run sets the others (`open_`).
// In the form of one by one, the kernels of the nodes run, with slots that belong to the chain.
#include "cohort/backends/cpu/elementwise_chain.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/core/str_cat.h"

namespace cohort::cpu {
namespace {

// A block has this many elements, so that it stays in the first-level cache while all stages work on it.
constexpr int64_t kChainBlock = 2048;
// Uses of a slot that holds a constant, which is never released or written over.
constexpr int32_t kConstantUses = 1 << 30;

const ElementwiseLoops* LoopsOf(const OpKernel& kernel) {
  const auto* elementwise = dynamic_cast<const ElementwiseKernel*>(&kernel);
  return elementwise == nullptr ? nullptr : elementwise->loops();
}

bool IsSingleBeside(const Tensor& operand, const Tensor& value) {
  return operand.num_elements() == 1 && operand.shape().rank() <= value.shape().rank();
}

// Returns true if `operand` can be combined with a value of `value`'s shape without changing the shape. Sets whether it
// is a single element.
bool GoesWith(const Tensor& operand, const Tensor& value, bool* single) {
  *single = IsSingleBeside(operand, value);
  return *single || operand.shape() == value.shape();
}

}  // namespace

bool CanChainElementwise(const ChainLink& producer, const ChainLink& consumer) {
  if (LoopsOf(*producer.kernel) == nullptr || LoopsOf(*consumer.kernel) == nullptr) return false;
  const DType dtype = producer.node->output_dtype(0);
  if (DTypeSize(dtype) == 0 || consumer.node->output_dtype(0) != dtype) return false;
  for (const Node* node : {producer.node, consumer.node}) {
    for (const Output& input : node->inputs()) {
      if (input.dtype() != dtype) return false;
    }
  }
  return true;
}

std::unique_ptr<OpKernel> MakeElementwiseChain(std::vector<ChainLink> links) {
  return std::make_unique<ElementwiseChain>(std::move(links));
}

ElementwiseChain::ElementwiseChain(std::vector<ChainLink> links)
    : element_(DTypeSize(links.front().node->output_dtype(0))) {
  for (ChainLink& link : links) AddLink(std::move(link));
  BindConstants();
  LayOutSlots();
}

void ElementwiseChain::LayOutSlots() {
  std::map<std::pair<const Node*, int>, int32_t> slot_of;
  std::vector<std::pair<size_t, size_t>> constant_uses;  // link, input: in the order of the constants
  int input = 0;
  for (size_t i = 0; i < singles_.size(); ++i) {
    const Node& node = *singles_[i].node;
    singles_[i].input_slots.assign(static_cast<size_t>(node.num_inputs()), -1);
    for (size_t k = 0; k < singles_[i].input_slots.size(); ++k) {
      const Operand operand = k == 0 ? stages_[i].left : stages_[i].right;
      if (operand == kRunningValue) continue;
      if (operand < 0) {
        constant_uses.emplace_back(i, k);
        continue;
      }
      const Output& value = node.input(static_cast<int>(k));
      const auto [at, is_new] = slot_of.emplace(std::make_pair(value.node, value.index), outside_.size());
      if (is_new) outside_.push_back({input, 0});
      ++outside_[static_cast<size_t>(at->second)].uses;
      singles_[i].input_slots[k] = at->second;
      ++input;
    }
  }
  for (const OutsideValue& value : outside_) initial_uses_.push_back(value.uses);
  for (const auto& [link, k] : constant_uses) {
    singles_[link].input_slots[k] = static_cast<int32_t>(initial_uses_.size());
    initial_uses_.push_back(kConstantUses);
  }
  for (size_t i = 0; i < singles_.size(); ++i) {
    singles_[i].output_slot = static_cast<int32_t>(initial_uses_.size());
    initial_uses_.push_back(1);
    if (i == 0) continue;
    for (int32_t& slot : singles_[i].input_slots) {
      if (slot < 0) slot = singles_[i - 1].output_slot;
    }
  }
}

void ElementwiseChain::AddLink(ChainLink link) {
  Stage stage;
  stage.loops = LoopsOf(*link.kernel);
  for (int k = 0; k < link.node->num_inputs(); ++k) {
    (k == 0 ? stage.left : stage.right) = operands_.Number(link, k);
  }
  stages_.push_back(stage);
  singles_.push_back({link.node, std::move(link.kernel), {}, 0});
}

ElementwiseChain::Operand ElementwiseChain::Primary(const KernelContext& ctx) const {
  const Stage& stage = stages_.front();
  if (stage.loops->unary != nullptr) return stage.left;
  const Tensor& left = operands_.TensorOf(ctx, stage.left);
  const Tensor& right = operands_.TensorOf(ctx, stage.right);
  if (left.shape() == right.shape() || IsSingleBeside(right, left)) return stage.left;
  return IsSingleBeside(left, right) ? stage.right : kRunningValue;
}

ElementwiseChain::Operand ElementwiseChain::Other(size_t stage, Operand primary, bool* is_right) const {
  const Stage& at = stages_[stage];
  *is_right = stage == 0 ? at.left == primary : at.left == kRunningValue;
  return *is_right ? at.right : at.left;
}

void ElementwiseChain::SetOther(const Stage& stage, const Tensor& operand, bool is_right, bool scalar,
                                Bound* bound) const {
  bound->a = bound->b = nullptr;
  bound->a_step = bound->b_step = element_;
  (is_right ? bound->b : bound->a) = static_cast<const char*>(operand.raw_data());
  if (scalar) (is_right ? bound->b_step : bound->a_step) = 0;
  bound->binary = !scalar ? stage.loops->both : is_right ? stage.loops->right_scalar : stage.loops->left_scalar;
}

void ElementwiseChain::BindConstants() {
  bound_.assign(stages_.size(), Bound());
  for (size_t i = 0; i < stages_.size(); ++i) {
    bound_[i].unary = stages_[i].loops->unary;
    if (bound_[i].unary != nullptr) continue;
    bool is_right = false;
    // Only the shapes say which operand of the first stage is the running value.
    const Operand other = i == 0 ? 0 : Other(i, kRunningValue, &is_right);
    if (ChainOperands::IsConstant(other) && operands_.Constant(other).num_elements() == 1) {
      const Tensor& constant = operands_.Constant(other);
      SetOther(stages_[i], constant, is_right, true, &bound_[i]);
      constant_rank_ = std::max(constant_rank_, constant.shape().rank());
    } else {
      bound_[i].in_run = static_cast<int32_t>(open_.size());
      open_.push_back(i);
    }
  }
}

void ElementwiseChain::RunBlock(const std::vector<Bound>& of_run, const char* first, char* out, int64_t begin,
                                int64_t count) const {
  const auto at = static_cast<size_t>(begin);
  char* here = out + at * element_;
  const char* value = first + at * element_;
  for (const Bound& planned : bound_) {
    const Bound& stage = planned.in_run < 0 ? planned : of_run[static_cast<size_t>(planned.in_run)];
    if (stage.unary != nullptr) {
      stage.unary(value, here, count);
    } else {
      stage.binary(stage.a == nullptr ? value : stage.a + at * stage.a_step,
                   stage.b == nullptr ? value : stage.b + at * stage.b_step, here, count);
    }
    value = here;
  }
}

bool ElementwiseChain::RunAsOne(KernelContext& ctx) const {
  const Operand primary = Primary(ctx);
  if (primary == kRunningValue) return false;
  const Tensor& value = operands_.TensorOf(ctx, primary);
  if (value.shape().rank() < constant_rank_) return false;
  static thread_local std::vector<Bound> own;  // keeps its memory from step to step
  own.resize(open_.size());
  for (size_t k = 0; k < open_.size(); ++k) {
    bool is_right = false;
    bool single = false;
    const Tensor& operand = operands_.TensorOf(ctx, Other(open_[k], primary, &is_right));
    if (!GoesWith(operand, value, &single)) return false;
    SetOther(stages_[open_[k]], operand, is_right, single, &own[k]);
  }
  const int64_t n = value.num_elements();
  const char* in = static_cast<const char*>(value.raw_data());
  Tensor& output =
      primary >= 0 ? ctx.ForwardInputOrAllocate(primary, 0, value.shape()) : ctx.AllocateOutput(0, value.shape());
  char* out = static_cast<char*>(output.raw_data());
  const std::vector<Bound>& of_run = own;  // of this thread, read by the team
  if (n <= kChainBlock) {
    RunBlock(of_run, in, out, 0, n);
    return true;
  }
  const int64_t blocks = (n + kChainBlock - 1) / kChainBlock;
  const int threads = ctx.num_threads();
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && n > kElementsWorthATeam)
  for (int64_t b = 0; b < blocks; ++b)
    RunBlock(of_run, in, out, b * kChainBlock, std::min(kChainBlock, n - b * kChainBlock));
  return true;
}

// Between two runs the slots of constants are filled and all others are empty.
struct ElementwiseChain::Scratch {
  std::vector<Tensor> slots;
  std::vector<int32_t> uses;
};

ElementwiseChain::~ElementwiseChain() = default;

// Lends slots to one run.
class ElementwiseChain::ScratchLease {
 public:
  explicit ScratchLease(const ElementwiseChain& chain) : chain_(chain), scratch_(chain.TakeScratch()) {
    std::copy(chain.initial_uses_.begin(), chain.initial_uses_.end(), scratch_->uses.begin());
  }
  ~ScratchLease() {
    if (!ended_) {
      for (size_t slot = 0; slot < scratch_->slots.size(); ++slot) {
        if (chain_.initial_uses_[slot] != kConstantUses) scratch_->slots[slot].Reset();
      }
    }
    MutexLock lock(chain_.scratch_mu_);
    chain_.scratch_.push_back(std::move(scratch_));
  }
  ScratchLease(const ScratchLease&) = delete;
  ScratchLease& operator=(const ScratchLease&) = delete;

  Tensor* slots() { return scratch_->slots.data(); }
  int32_t* uses() { return scratch_->uses.data(); }
  void GiveUp(int32_t slot) {
    if (--uses()[slot] == 0) slots()[slot].Reset();
  }
  // The run has released or handed out all values.
  void Ended() { ended_ = true; }

 private:
  const ElementwiseChain& chain_;
  std::unique_ptr<Scratch> scratch_;
  bool ended_ = false;
};

std::unique_ptr<ElementwiseChain::Scratch> ElementwiseChain::TakeScratch() const {
  {
    MutexLock lock(scratch_mu_);
    if (!scratch_.empty()) {
      std::unique_ptr<Scratch> scratch = std::move(scratch_.back());
      scratch_.pop_back();
      return scratch;
    }
  }
  auto scratch = std::make_unique<Scratch>();
  scratch->slots.resize(initial_uses_.size());
  scratch->uses.resize(initial_uses_.size());
  const std::vector<Tensor>& constants = operands_.constants();
  std::copy(constants.begin(), constants.end(), scratch->slots.begin() + static_cast<ptrdiff_t>(outside_.size()));
  return scratch;
}

void ElementwiseChain::RunOneByOne(KernelContext& ctx) const {
  ScratchLease scratch(*this);
  Tensor* slots = scratch.slots();
  for (size_t i = 0; i < outside_.size(); ++i) slots[i] = ctx.TakeInput(outside_[i].input, outside_[i].uses);
  for (const Single& single : singles_) {
    KernelContext own(*single.node, ctx.device(), ctx.step(), slots, single.input_slots, slots + single.output_slot,
                      scratch.uses());
    own.set_allocator(ctx.allocator());
    own.set_num_threads(ctx.num_threads());
    try {
      single.kernel->Compute(own);
    } catch (const Error& error) {
      ThrowError(error.code(), StrCat(error.what(), "\n  ", own.Describe()));
    }
    for (const int32_t slot : single.input_slots) scratch.GiveUp(slot);
  }
  ctx.SetOutput(0, std::exchange(slots[singles_.back().output_slot], Tensor()));
  scratch.Ended();
}

void ElementwiseChain::Compute(KernelContext& ctx) {
  if (!RunAsOne(ctx)) RunOneByOne(ctx);
}

}  // namespace cohort::cpu
