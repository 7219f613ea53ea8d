// FakeNccl. A World has the members of one identifier, and the rounds of its collectives. A member's part of a round is
// a kernel on the member's stream: it waits until all parts of the round are there, or until its communicator is
// aborted. The last part computes for all, in the order of ranks. One lock serves everything.
#include "cohort/backends/cuda/fake/fake_nccl.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "cohort/backends/cuda/fake/nccl_elements.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

constexpr int kVersion = 22807;
constexpr size_t kIdBytes = 128;  // as NCCL's

enum class Kind { kAllReduce, kBroadcast, kAllGather };

}  // namespace

struct FakeNccl::Part {
  FakeNccl* nccl = nullptr;
  Comm* comm = nullptr;
  int64_t round = 0;
  Kind kind = Kind::kAllReduce;
  const void* in = nullptr;
  void* out = nullptr;
  size_t count = 0;
  NcclType type = NcclType::kUint8;
  NcclOp op = NcclOp::kSum;
  int root = 0;
};

// The lock of FakeNccl guards both.
struct FakeNccl::World {
  struct Round {
    std::map<int, const Part*> parts;  // by rank
    bool computed = false;
  };
  int size = 0;
  std::set<int> members;
  std::map<int64_t, Round> rounds;
};

struct FakeNccl::Comm {
  std::shared_ptr<World> world;
  int rank = 0;
  int64_t calls = 0;
  bool aborted = false;
  int running = 0;  // kernels that are enqueued and have not ended
  std::vector<std::shared_ptr<Part>> parts;
};

FakeNccl::FakeNccl(Driver& driver) : driver_(driver) {}
FakeNccl::~FakeNccl() = default;

int FakeNccl::Version() {
  if (absent_) throw FailedPreconditionError("[cuda/libraries] expected NCCL 2; got none: this fake is absent");
  return kVersion;
}

std::string FakeNccl::UniqueId() {
  std::string id = StrCat("fake id ", ++ids_);
  id.resize(kIdBytes, '\0');
  return id;
}

bool FakeNccl::Has(int rank, NcclFault fault) {
  MutexLock lock(mu_);
  return faults_.count({rank, fault}) > 0;
}

void FakeNccl::HangWhile(int rank, NcclFault fault) {
  MutexLock lock(mu_);
  while (faults_.count({rank, fault}) > 0) changed_.Wait(mu_);  // ends: the test heals
}

void FakeNccl::Break(int rank, NcclFault fault) {
  MutexLock lock(mu_);
  faults_.insert({rank, fault});
  changed_.NotifyAll();
}

void FakeNccl::Heal() {
  MutexLock lock(mu_);
  faults_.clear();
  changed_.NotifyAll();
}

NcclResult FakeNccl::Init(int, const std::string& id, int rank, int size, NcclComm* comm) {
  using State = NcclResult::State;
  if (Has(rank, NcclFault::kRefuseInit)) return {State::kFailed, "invalid usage (fake)"};
  if (id.size() != kIdBytes || id.rfind("fake id ", 0) != 0) return {State::kFailed, "invalid argument (fake id)"};
  MutexLock lock(mu_);
  std::shared_ptr<World>& world = worlds_[id];
  if (world == nullptr) world = std::make_shared<World>();
  world->size = size;
  if (!world->members.insert(rank).second) return {State::kFailed, StrCat("rank ", rank, " joins twice (fake)")};
  comms_.push_back(std::make_unique<Comm>());
  comms_.back()->world = world;
  comms_.back()->rank = rank;
  comm->native = comms_.back().get();
  return {State::kInProgress, ""};
}

NcclResult FakeNccl::State(NcclComm comm) {
  using State = NcclResult::State;
  const auto& own = *static_cast<Comm*>(comm.native);
  MutexLock lock(mu_);
  if (own.calls > 0 && faults_.count({own.rank, NcclFault::kFailLate}) > 0) {
    return {State::kFailed, "unhandled cuda error (fake)"};
  }
  if (own.calls > 0 && faults_.count({own.rank, NcclFault::kRemoteError}) > 0) {
    return {State::kRemoteFailed, "remote process exited or there was a network error (fake)"};
  }
  const World& world = *own.world;
  return {static_cast<int>(world.members.size()) == world.size ? State::kDone : State::kInProgress, ""};
}

NcclResult FakeNccl::Abort(NcclComm comm) {
  auto& own = *static_cast<Comm*>(comm.native);
  HangWhile(own.rank, NcclFault::kHangInAbort);
  MutexLock lock(mu_);
  own.aborted = true;
  changed_.NotifyAll();
  // Aborted kernels end. Those of a card that has failed never run.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (own.running > 0 && changed_.WaitUntil(mu_, until)) {
  }
  return {};
}

NcclResult FakeNccl::AllReduce(NcclComm comm, const void* in, void* out, size_t count, NcclType type, NcclOp op,
                               StreamHandle stream) {
  return Enqueue(comm, std::make_shared<Part>(Part{this, nullptr, 0, Kind::kAllReduce, in, out, count, type, op, 0}),
                 stream);
}
NcclResult FakeNccl::Broadcast(NcclComm comm, const void* in, void* out, size_t count, NcclType type, int root,
                               StreamHandle stream) {
  return Enqueue(comm, std::make_shared<Part>(Part{this, nullptr, 0, Kind::kBroadcast, in, out, count, type, {}, root}),
                 stream);
}
NcclResult FakeNccl::AllGather(NcclComm comm, const void* in, void* out, size_t count, NcclType type,
                               StreamHandle stream) {
  return Enqueue(comm, std::make_shared<Part>(Part{this, nullptr, 0, Kind::kAllGather, in, out, count, type, {}, 0}),
                 stream);
}

NcclResult FakeNccl::Enqueue(NcclComm comm, std::shared_ptr<Part> part, StreamHandle stream) {
  auto& own = *static_cast<Comm*>(comm.native);
  ++calls_;
  HangWhile(own.rank, NcclFault::kHangInCall);
  part->comm = &own;
  {
    MutexLock lock(mu_);
    part->round = own.calls++;
    ++own.running;
    own.parts.push_back(part);
  }
  static const KernelCode code{"fake nccl", nullptr, &FakeNccl::RunKernel};
  Part* const argument = part.get();
  driver_.Launch(code, {}, &argument, sizeof(argument), stream);
  return {NcclResult::State::kInProgress, ""};
}

void FakeNccl::RunKernel(const void* argument, const LaunchSize&) {
  Part& part = **static_cast<Part* const*>(argument);
  part.nccl->RunPart(part);
}

void FakeNccl::RunPart(Part& part) {
  Comm& comm = *part.comm;
  MutexLock lock(mu_);
  while (!comm.aborted && faults_.count({comm.rank, NcclFault::kHangInKernel}) > 0)
    changed_.Wait(mu_);  // Abort ends it
  World& world = *comm.world;
  World::Round& round = world.rounds[part.round];
  if (!comm.aborted) round.parts[comm.rank] = &part;
  if (static_cast<int>(round.parts.size()) == world.size) {
    const auto& parts = round.parts;
    const size_t bytes = part.count * SizeOf(part.type);
    for (const auto& [rank, other] : parts) {
      if (other->kind != part.kind || other->count != part.count || other->type != part.type || other->op != part.op) {
        throw InternalError("[fake nccl] members have begun different collectives");
      }
    }
    std::vector<char> result;
    const auto append = [&](const void* in) {
      result.insert(result.end(), static_cast<const char*>(in), static_cast<const char*>(in) + bytes);
    };
    if (part.kind == Kind::kBroadcast) append(parts.at(part.root)->in);
    if (part.kind == Kind::kAllReduce) append(parts.at(0)->in);
    for (const auto& [rank, other] : parts) {
      if (part.kind == Kind::kAllGather) append(other->in);
      if (part.kind != Kind::kAllReduce || rank == 0) continue;
      JoinInto(part.op, part.type, result.data(), other->in, part.count);
    }
    for (const auto& [rank, other] : parts) {
      if (part.kind != Kind::kBroadcast || rank != part.root || other->out != other->in) {
        std::memcpy(other->out, result.data(), result.size());
      }
    }
    round.computed = true;
    ++collectives_;
    changed_.NotifyAll();
  }
  while (!comm.aborted && !round.computed) changed_.Wait(mu_);  // ends: the others come, or Abort
  if (comm.aborted && !round.computed) round.parts.erase(comm.rank);
  --comm.running;
  changed_.NotifyAll();
}

}  // namespace cohort::cuda
