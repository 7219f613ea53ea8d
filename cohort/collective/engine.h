// CollectiveEngine: a way to run the collectives of a group. Implementations are in folders: plan/ sends messages over
// the cluster's transport, shared/ serves members of a single process, gloo/ uses Gloo. Internal to collective/.
//
// To add an engine, write its folder with `EngineFactory XEngineFactory()`, add an ENGINE row to the table in
// algorithm.h and list its sources in CMakeLists.txt. If its library is absent, CMake compiles a source whose
// XEngineFactory() returns a factory that says how to build it, as gloo/absent.cc does.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/algorithm.h"
#include "cohort/collective/call.h"
#include "cohort/collective/group.h"
#include "cohort/collective/member_list.h"
#include "cohort/collective/messages.h"
#include "cohort/device/collectives/device_collectives.h"
#include "cohort/device/device.h"

namespace cohort::collective {

// The functions of a group that its engine needs. The group implements them and owns the engine. Any thread may call
// them; none of them waits.
class EngineHost {
 public:
  virtual ~EngineHost() = default;
  virtual const GroupOptions& options() const = 0;
  virtual const MemberList& members() const = 0;
  // Returns why the group has failed, or ok if it has not.
  virtual Status status() const = 0;
  // Returns the device of a local member, or null if the group is not one of a server, or the server has stopped.
  virtual std::shared_ptr<Device> device(int rank) const = 0;
  // Returns why nothing more will come from a member (it has left or is lost), or ok if something may come.
  virtual Status WhyGone(int rank) const = 0;
  // Fails the group at all members. Calls CollectiveEngine::Fail before it returns, unless the group has failed before.
  virtual void Fail(const Status& why) = 0;
  // Sends a message to the member `data.to`; that member's engine gets it through Deliver. For a member of this
  // process, calls Deliver on this thread. Fills in `data.group`. The message is dropped if the member is gone.
  virtual void Post(DataMessage data, Tensor tensor) = 0;
  // Runs `work` on a worker thread of the group, or on this thread if the group is closed. Requires: the caller holds
  // no lock that `work` takes.
  virtual void RunOnWorker(std::function<void()> work) = 0;
  // Returns whether the local member `rank`, whose step has the schedule `ours`, may end a collective together with the
  // member `other`, whose step has the schedule `theirs`. `ours` and `theirs` are fingerprints. If it returns false,
  // the group has failed, or the process of `other` is being asked whether the two schedules agree. In the second case
  // the group fails later, or CollectiveEngine::OnSchedulesAgreed is called, or `other` is gone.
  virtual bool SchedulesAgree(int rank, uint64_t ours, int other, uint64_t theirs) = 0;
  // Makes the group fail if `call` still waits for something after options().timeout + `longer`. Does nothing if that
  // timeout is 0.
  virtual void Watch(const std::shared_ptr<UnfinishedCollective>& call, std::chrono::milliseconds longer = {}) = 0;
  // Tells a process that has left that no call runs here any more in which it takes part.
  virtual void SendFarewell(int process) = 0;
};

// Runs the collectives of one process's members in one group. The group owns it. Thread-safe. JoinGroup calls Connect,
// and Begin is not called before Connect has returned. A group of MakeLocalGroup never calls Connect. The life of an
// engine ends with Fail, then Join, then the destructor.
class CollectiveEngine {
 public:
  virtual ~CollectiveEngine() = default;

  // Returns the addresses of this process for JoinMessage, if the engine has connections of its own.
  virtual std::vector<std::string> Endpoints() const { return {}; }
  // Returns how many addresses a process of the group has to send.
  virtual size_t NumEndpointsOf(int /*process*/) const { return 0; }
  // Called when all processes have joined. `endpoints` has the addresses of each process. Returns when all members are
  // connected to all others. Throws the group's failure if the group fails.
  virtual void Connect(const std::vector<std::vector<std::string>>& /*endpoints*/) {}

  // Returns the algorithm of an all-reduce, which is part of its signature.
  virtual Algorithm AlgorithmOf(DType dtype, int64_t bytes) const = 0;
  // Returns whether inputs may lie in device memory, if all members are devices of one type, whose backend has
  // `collectives`.
  virtual bool TakesDeviceMemory(const DeviceCollectives& /*collectives*/) const { return false; }
  // Takes `call` over and ends it with EndCall, perhaps before Begin returns. If Begin throws, it has not changed
  // `call`.
  virtual void Begin(CollectiveCall&& call) = 0;
  // Handles a message of EngineHost::Post. `data.to` is a local member. Deliver may also run steps that have waited
  // for the message; if `may_compute_inline` is false, it leaves long computations to a worker thread. Throws
  // DataLossError for a message that no peer of this version sends.
  virtual void Deliver(const DataMessage& data, Tensor tensor, bool may_compute_inline) = 0;
  // EngineHost::WhyGone has changed for a member. The engine fails the group if a call waits for that member.
  virtual void OnPeerGone() = 0;
  // `process` has left the group. The engine calls SendFarewell when no call runs here in which it takes part.
  virtual void OnPeerLeft(int /*process*/) {}
  // Two schedules that had to be compared are equal: calls that have waited for this go on.
  virtual void OnSchedulesAgreed() = 0;
  // Appends the collectives that have begun and not ended to `all`.
  virtual void AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) = 0;

  // Returns whether this process, if it leaves the group, has to wait for its peers' farewells before the engine is
  // destroyed.
  virtual bool NeedsFarewells() const { return false; }
  // The group has failed, or this process leaves it. Ends all calls with `why`. If a thread is running a call, Fail
  // does not wait for it: that thread ends the call, with an error or, if it has just finished, with the result. Calls
  // that begin later end with `why`, too.
  virtual void Fail(const Status& why) = 0;
  // Returns whether the caller is a thread of the engine. Such a thread must not call Join.
  virtual bool IsOwnThread() const { return false; }
  // Waits until the engine's threads have ended. Requires: Fail was called.
  virtual void Join() {}
};

// One entry of the engines' table.
struct EngineFactory {
  // Whether this build has the engine.
  bool is_built = true;
  // Returns whether the engine serves groups with these options and members.
  bool (*serves)(const GroupOptions& options, const MemberList& members) = nullptr;
  // Makes the engine of one group. `own_address` is the host name or address by which peers reach this process, "" if
  // all members are of this process. Throws UnimplementedError if this build has no such engine.
  std::unique_ptr<CollectiveEngine> (*make)(EngineHost& host, const std::string& own_address) = nullptr;
  // Whether everything that leaves the process goes through the cluster's transport, which TLS protects.
  bool uses_transport = true;
};

#define COHORT_DECLARE_ENGINE(enumerator, number, name, functions) EngineFactory functions##EngineFactory();
#define COHORT_IGNORE(...)
COHORT_COLLECTIVE_ALGORITHMS(COHORT_IGNORE, COHORT_DECLARE_ENGINE)
#undef COHORT_DECLARE_ENGINE
#undef COHORT_IGNORE

// Makes the engine that serves the host's group. If `only_protected` is true, throws PermissionDeniedError if that is
// an engine with connections of its own. Throws what EngineFactory::make throws.
std::unique_ptr<CollectiveEngine> MakeEngine(EngineHost& host, const std::string& own_address, bool only_protected);

}  // namespace cohort::collective
