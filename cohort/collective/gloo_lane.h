// GlooCall: one member's part in one collective that Gloo runs. GlooLane: a thread that makes a member's calls of Gloo,
// in the order that all members have agreed on. Internal to collective/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "cohort/collective/gloo/mesh.h"
#include "cohort/collective/plan_run.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// Thread-safe.
class GlooCall final : public Pending {
 public:
  // `job` has no plan. `host` outlives what is called while the group lives.
  GlooCall(RunHost& host, int rank, const CallId& id, PlanRun::Job job)
      : host_(host),
        rank_(rank),
        id_(id),
        signature_(job.signature),
        name_(job.name),
        schedule_(job.schedule),
        job_(std::move(job)) {}

  int rank() const { return rank_; }
  const CallId& id() const { return id_; }
  const std::string& name() const { return name_; }
  const Signature& signature() const { return signature_; }
  uint64_t schedule() const { return schedule_; }
  // All members have come. False where the call has ended.
  bool GiveTurn() EXCLUDES(mu_);
  // Whether it waits for its turn.
  bool waits() const EXCLUDES(mu_);
  // Runs `work` with the job, unless it has ended; nobody else ends it meanwhile. `mesh`: of whose wait DescribeWait
  // tells.
  bool Run(const GlooMesh& mesh, const std::function<void(PlanRun::Job&)>& work) EXCLUDES(mu_);
  // Unless it has ended or runs.
  void Fail(const Status& why) EXCLUDES(mu_);
  // After Run.
  void End(const Status& status, Tensor result) EXCLUDES(mu_);

  std::string Describe() const override { return DescribeCall(name_, id_, signature_); }
  std::string DescribeWait() const override EXCLUDES(mu_);

 private:
  enum class Stage { kBegun, kTurn, kRuns, kEnded };

  void Tell(const Status& status, Tensor result);

  RunHost& host_;
  const int rank_;
  const CallId id_;
  const Signature signature_;
  const std::string name_;
  const uint64_t schedule_;

  mutable Mutex mu_;
  Stage stage_ GUARDED_BY(mu_) = Stage::kBegun;
  const GlooMesh* mesh_ GUARDED_BY(mu_) = nullptr;  // while it runs
  PlanRun::Job job_;                                // of who begins it, then of who runs or ends it
};

// Thread-safe.
class GlooLane {
 public:
  using Finish = std::function<void(const std::shared_ptr<GlooCall>&, const Status&, Tensor result)>;

  // `finish` ends the calls, on the lane's thread. The mesh has to be connected before the first turn.
  GlooLane(RunHost& host, std::unique_ptr<GlooMesh> mesh, Finish finish);
  ~GlooLane();  // stops; not on its own thread

  GlooMesh& mesh() { return *mesh_; }
  // Calls are run when all with a lower number, from 0, have been.
  void Add(int64_t turn, std::shared_ptr<GlooCall> call) EXCLUDES(mu_);
  // Breaks the mesh; the thread ends the call that runs, closes the mesh and ends.
  void Stop() EXCLUDES(mu_);
  void Join();
  bool IsOwnThread() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  void Loop() EXCLUDES(mu_);

  RunHost& host_;
  const std::unique_ptr<GlooMesh> mesh_;
  const Finish finish_;
  Mutex mu_;
  CondVar changed_;
  std::map<int64_t, std::shared_ptr<GlooCall>> turns_ GUARDED_BY(mu_);
  int64_t next_ GUARDED_BY(mu_) = 0;
  bool stopped_ GUARDED_BY(mu_) = false;
  std::thread thread_;
};

// Runs a collective on `mesh`; what it returns is the member's. bfloat16 is reduced as float32, with twice the bytes;
// reduce-scatter is an all-reduce of which a member keeps its rows; a barrier and empty tensors need no bytes, for all
// members have come.
Tensor RunByGloo(GlooMesh& mesh, PlanRun::Job& job, int rank, int world, uint32_t tag);

}  // namespace cohort::collective
