#include "cohort/collective/member_communicator.h"

#include "cohort/collective/group_core.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/backend.h"
#include "cohort/runtime/program_activity.h"

namespace cohort::collective {
namespace {

// Throws InvalidArgumentError if the input cannot be sent or computed on.
void CheckInput(const CollectiveCall& call, int world) {
  const CallSignature& signature = call.signature;
  const Tensor& input = call.input;
  if (signature.kind == CallKind::kBarrier) return;
  const bool reduces = signature.kind == CallKind::kAllReduce || signature.kind == CallKind::kReduceScatter;
  const bool reachable =
      input.space().is_host() || (call.device != nullptr && input.space() == call.device->allocator().space());
  const bool fits =
      input.defined() && DTypeSize(input.dtype()) > 0 && reachable && !(reduces && input.dtype() == DType::kBool);
  if (!fits) {
    throw InvalidArgumentError(StrCat("[collective] expected ", reduces ? "numbers" : "numbers or truth values",
                                      " in host memory", call.device == nullptr ? "" : " or in the member's own",
                                      "; got ", input.defined() ? input.ToString(0) : "no tensor"));
  }
  if (signature.kind == CallKind::kBroadcast && (signature.root < 0 || signature.root >= world)) {
    throw InvalidArgumentError(StrCat("[collective] expected a root in [0,", world, "); got ", signature.root));
  }
  const Shape& shape = input.shape();
  if (signature.kind == CallKind::kReduceScatter && (shape.rank() < 1 || shape.dim(0) % world != 0)) {
    throw InvalidArgumentError(
        StrCat("[collective] expected rows that ", world, " members can share equally; got the shape ", shape));
  }
}

Shape OutputShape(const CallSignature& signature, int world) {
  Shape shape = signature.shape;
  if (signature.kind == CallKind::kAllGather) {
    if (shape.rank() == 0) shape = Shape{1};
    shape.set_dim(0, shape.dim(0) * world);
  } else if (signature.kind == CallKind::kReduceScatter) {
    shape.set_dim(0, shape.dim(0) / world);
  }
  return shape;
}

}  // namespace

MemberCommunicator::MemberCommunicator(const std::shared_ptr<GroupCore>& core, int rank)
    : core_(core), rank_(rank), size_(core->members().size()) {}

std::string MemberCommunicator::Describe() const { return StrCat("the communicator of rank ", rank_); }

bool MemberCommunicator::TakesDeviceMemory(const Device& device) const {
  const auto core = core_.lock();
  if (core == nullptr || core->members().device_type() != device.type()) return false;
  const DeviceCollectives* collectives = device.backend().collectives();
  return collectives != nullptr && core->engine().TakesDeviceMemory(*collectives);
}

void MemberCommunicator::AllReduceAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) {
  Begin(id, {CallKind::kAllReduce, op, Algorithm::kAuto, 0, {}, {}}, std::move(input), std::move(done));
}

void MemberCommunicator::BroadcastAsync(const CollectiveId& id, Tensor value, int root, Done done) {
  Begin(id, {CallKind::kBroadcast, {}, {}, root, {}, {}}, std::move(value), std::move(done));
}

void MemberCommunicator::AllGatherAsync(const CollectiveId& id, Tensor input, Done done) {
  Begin(id, {CallKind::kAllGather, {}, {}, 0, {}, {}}, std::move(input), std::move(done));
}

void MemberCommunicator::ReduceScatterAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) {
  Begin(id, {CallKind::kReduceScatter, op, {}, 0, {}, {}}, std::move(input), std::move(done));
}

void MemberCommunicator::BarrierAsync(const CollectiveId& id, Done done) {
  Begin(id, {CallKind::kBarrier, {}, {}, 0, {}, {}}, Tensor(), std::move(done));
}

void MemberCommunicator::Abort(const Status& why) {
  if (const auto core = core_.lock()) {
    core->Fail(
        Status(why.code(), StrCat("[collective] ", core->members().DescribeRank(rank_), " gives up: ", why.message())));
  }
}

Status MemberCommunicator::status() const {
  const auto core = core_.lock();
  if (core == nullptr) return Status(Code::kFailedPrecondition, "[collective] the group is gone");
  const Status status = core->status();
  if (!status.ok()) core->OnProgramTold();
  return status;
}

void MemberCommunicator::Begin(const CollectiveId& id, const CallSignature& signature, Tensor input, Done done) {
  const auto core = core_.lock();
  if (core == nullptr) {
    return done(Status(Code::kFailedPrecondition, StrCat("[collective] the group of '", id.name, "' is gone")), {});
  }
  ProgramActivity::Global().OnCollective();
  CollectiveCall call = {id.name, {id.instance, 0}, rank_, signature, std::move(input), {}, std::move(done),
                         0,       nullptr,          {},    nullptr};
  if (id.device != nullptr && TakesDeviceMemory(*id.device)) call.device = id.device;
  bool numbered = false;
  try {
    CompleteSignature(*core, call);
    core->status().ThrowIfError();
    NumberCall(*core, id, call);
    numbered = true;
    core->engine().Begin(std::move(call));
  } catch (...) {
    if (numbered) ReturnRound(call.id);
    if (!core->status().ok()) core->OnProgramTold();
    const Status why = Status::FromCurrentException();
    call.done(Status(why.code(), StrCat("[collective] '", id.name, "' (instance ", id.instance, ") at ",
                                        core->members().DescribeRank(rank_), ": ", why.message())),
              Tensor());
  }
}

void MemberCommunicator::CompleteSignature(GroupCore& core, CollectiveCall& call) {
  CallSignature& signature = call.signature;
  const int world = core.members().size();
  CheckInput(call, world);
  if (call.input.defined()) {
    signature.dtype = call.input.dtype();
    signature.shape = call.input.shape();
  }
  if (signature.kind == CallKind::kAllReduce) {
    signature.algorithm = core.engine().AlgorithmOf(signature.dtype, static_cast<int64_t>(call.input.bytes()));
  }
  call.output_shape = OutputShape(signature, world);
}

void MemberCommunicator::NumberCall(GroupCore& core, const CollectiveId& id, CollectiveCall& call) {
  const auto schedule = std::static_pointer_cast<const StepSchedule>(id.schedule);
  call.schedule_fingerprint = schedule != nullptr ? schedule->fingerprint : 0;
  MutexLock lock(mu_);
  Instance& instance = instances_[id.instance];
  if (schedule != nullptr && instance.schedule != schedule) core.schedules().Add(rank_, schedule);
  instance.schedule = schedule;
  call.id.round = instance.rounds++;
}

void MemberCommunicator::ReturnRound(const CallId& id) {
  MutexLock lock(mu_);
  instances_[id.instance].rounds = id.round;
}

}  // namespace cohort::collective
