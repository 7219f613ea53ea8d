// GlooLane: the thread that runs some of a member's Gloo calls in the order of their turns. Internal to gloo/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "cohort/collective/gloo/mesh.h"
#include "cohort/collective/turns/turn_call.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// A thread that runs calls, one after another, on a mesh that the lane owns. The GlooEngine owns the lane. Thread-safe,
// except Join. End it with Stop, then Join.
class GlooLane {
 public:
  using Finish = std::function<void(const std::shared_ptr<TurnCall>&, const Status&, Tensor result)>;

  // Starts the thread. The thread calls `finish` after each call that it has run; `finish` has to end the call.
  // Requires: the mesh is connected before the first Add.
  GlooLane(int world, std::unique_ptr<GlooMesh> mesh, Finish finish);
  // Calls Stop and Join. Requires: the caller is not the lane's thread.
  ~GlooLane();

  GlooMesh& mesh() { return *mesh_; }
  // Adds `call`. The thread runs it after the calls of all smaller turns have been added and run. Turns are numbered
  // from 0. After Stop the call is not run.
  void Add(int64_t turn, std::shared_ptr<TurnCall> call) COHORT_EXCLUDES(mu_);
  // Breaks the mesh, so that the call that runs ends with an error. Does not wait. The thread then closes the mesh and
  // ends. The caller has to end the calls that have not run.
  void Stop() COHORT_EXCLUDES(mu_);
  void Join();
  bool IsOwnThread() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  void Loop() COHORT_EXCLUDES(mu_);

  const int world_;
  const std::unique_ptr<GlooMesh> mesh_;
  const Finish finish_;
  Mutex mu_;
  CondVar changed_;
  std::map<int64_t, std::shared_ptr<TurnCall>> turns_ COHORT_GUARDED_BY(mu_);
  int64_t next_ COHORT_GUARDED_BY(mu_) = 0;
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace cohort::collective
