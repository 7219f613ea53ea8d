// NcclLane: the thread that owns one member's communicator of NCCL. Internal to nccl/.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/collective/engine.h"
#include "cohort/collective/turns/turn_call.h"
#include "cohort/core/mutex.h"
#include "cohort/device/collectives/collective_library.h"
#include "cohort/device/device.h"

namespace cohort::collective {

// How far a member is with the collective of a turn, in this order.
enum class NcclStage : int64_t {
  kNotBegun,  // the lane has not come to this turn
  kInCall,    // the lane is in a call of the library
  kOnDevice,  // the library has given the collective to the device
  kEnded,
};

// Returns the library's collective for one of ours. Requires: it is no barrier.
LibraryCollective LibraryCollectiveOf(CallKind kind);

// The functions of the engine that a lane calls, on its own thread.
struct NcclLaneEvents {
  // The input of a call is complete.
  std::function<void(CollectiveCall&&)> on_ready;
  // A call has run. The function ends it.
  std::function<void(const std::shared_ptr<TurnCall>&, const Status&, Tensor)> finish;
  // The library or the device has failed. The function makes the group fail, and returns why it has failed.
  std::function<Status(const Status&)> explain;
  // Asks all other members how far they are with a turn. Their answers come by OnAnswer.
  std::function<void(int64_t turn)> ask;
  // The thread begins a call of the library, which should return within the limit.
  std::function<void(std::chrono::steady_clock::duration limit)> on_call;
  // The thread has come back from the call.
  std::function<void()> on_return;
  // The lane has aborted its communicator, and ends.
  std::function<void()> on_end;
};

// A member's thread, device and communicator. Only the thread calls the communicator. It does not hold a call back
// because it waits for another one: it waits for the inputs of all calls at once. The NcclEngine owns the lane.
// Thread-safe, except Start and Join. End it with Stop, then Join.
class NcclLane {
 public:
  NcclLane(const MemberList& members, int rank, std::shared_ptr<Device> device, NcclLaneEvents events);
  // Requires: Join has returned, or Start was not called.
  ~NcclLane() = default;

  // Starts the thread. It connects to the other members, unless `library` is null: then it only waits for inputs.
  void Start(CollectiveLibrary* library, std::string id);
  // Waits until the communicator is connected, the connecting has failed, or Stop was called. Returns ok or the error.
  // The thread gives up after 30 s.
  Status AwaitConnected() COHORT_EXCLUDES(shared_->mu);
  // Takes a call whose input lies in host memory or in the memory of the device. If it lies in host memory, copies it
  // to the device. Calls on_ready when the input is complete. Does not change `call` if it throws. After Stop, ends the
  // call.
  void Prepare(CollectiveCall&& call) COHORT_EXCLUDES(shared_->mu);
  // Adds a call. The thread runs it after the calls of all smaller turns.
  void Add(int64_t turn, std::shared_ptr<TurnCall> call) COHORT_EXCLUDES(shared_->mu);
  NcclStage StageOf(int64_t turn) const COHORT_EXCLUDES(shared_->mu);
  void OnAnswer(int from, int64_t turn, NcclStage stage) COHORT_EXCLUDES(shared_->mu);
  // Makes the thread abort the communicator and end. Does not wait. Ends, with `why`, the calls that on_ready was not
  // called for.
  void Stop(const Status& why) COHORT_EXCLUDES(shared_->mu);
  void Join();
  bool IsOwnThread() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Prepared {
    CollectiveCall call;
    bool failed = false;
    Status status;
    bool reached = false;
  };
  // What callbacks of the device change. They may come after the lane is destroyed.
  struct Shared {
    Mutex mu;
    CondVar changed;
    bool woken COHORT_GUARDED_BY(mu) = false;
    bool stopped COHORT_GUARDED_BY(mu) = false;
    Status why COHORT_GUARDED_BY(mu);                      // if stopped
    std::shared_ptr<Device> device COHORT_GUARDED_BY(mu);  // null when the thread has ended: it may own the group
    bool connected COHORT_GUARDED_BY(mu) = false;
    Status connect_status COHORT_GUARDED_BY(mu);
    int64_t last_prepared COHORT_GUARDED_BY(mu) = 0;
    std::map<int64_t, Prepared> prepared COHORT_GUARDED_BY(mu);
    std::map<int64_t, std::shared_ptr<TurnCall>> turns COHORT_GUARDED_BY(mu);
    int64_t next COHORT_GUARDED_BY(mu) = 0;                        // the turn that runs, or runs next
    NcclStage stage COHORT_GUARDED_BY(mu) = NcclStage::kNotBegun;  // of the turn `next`
    std::map<int, NcclStage> answers COHORT_GUARDED_BY(mu);        // by rank, for the turn `next`
  };

  void Loop(CollectiveLibrary* library, const std::string& id);
  void Connect(CollectiveLibrary& library, const std::string& id);
  // Passes on the calls whose inputs are complete.
  void PassReady() COHORT_EXCLUDES(shared_->mu);
  // Waits for the next turn. Returns null after Stop.
  std::shared_ptr<TurnCall> Next(int64_t* turn) COHORT_EXCLUDES(shared_->mu);
  void Run(int64_t turn, const std::shared_ptr<TurnCall>& call);
  Tensor Compute(int64_t turn, CollectiveCall& call);
  // Waits until the communicator is idle. Throws its errors, and CancelledError after Stop. Calls `ask` when half of
  // `limit` has passed. When all of it has passed, throws what `late` returns; if that is ok, goes on waiting.
  void AwaitIdle(Clock::duration limit, const std::function<void()>& ask, const std::function<Status()>& late);
  // Returns the error for a collective that does not end. It names the members that are behind.
  Status DescribeLate(int64_t turn, const std::string& what, Clock::duration limit) const COHORT_EXCLUDES(shared_->mu);
  // Returns whether all members have said that they have begun the turn `next`.
  bool AllHaveBegun() const COHORT_EXCLUDES(shared_->mu);
  void SetStage(NcclStage stage) COHORT_EXCLUDES(shared_->mu);
  void Abort();

  const MemberList& members_;
  const int rank_;
  const NcclLaneEvents events_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::shared_ptr<Device> device_;                     // of the thread
  std::unique_ptr<LibraryCommunicator> communicator_;  // of the thread
  std::map<LibraryCollective, size_t> largest_;        // of the thread: the bytes of the largest that has ended
  std::thread thread_;
};

}  // namespace cohort::collective
