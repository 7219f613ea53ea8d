#include "cohort/collective/gloo/gloo_lane.h"

#include <utility>

#include "cohort/collective/gloo/gloo_call.h"
#include "cohort/core/thread_pool.h"

namespace cohort::collective {

GlooLane::GlooLane(int world, std::unique_ptr<GlooMesh> mesh, Finish finish)
    : world_(world), mesh_(std::move(mesh)), finish_(std::move(finish)), thread_([this] { Loop(); }) {}

GlooLane::~GlooLane() {
  Stop();
  Join();
}

void GlooLane::Add(int64_t turn, std::shared_ptr<TurnCall> call) {
  MutexLock lock(mu_);
  turns_[turn] = std::move(call);
  changed_.NotifyAll();
}

void GlooLane::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  mesh_->Break();
}

void GlooLane::Join() {
  if (thread_.joinable()) thread_.join();
}

void GlooLane::Loop() {
  SetThreadName("cohort-gloo");
  BlockBrokenPipeSignal();
  const TurnCall::WaitsFor waits_for = [this] { return mesh_->waits_for(); };
  for (;;) {
    std::shared_ptr<TurnCall> call;
    int64_t turn = 0;
    {
      MutexLock lock(mu_);
      while (!stopped_ && (turns_.empty() || turns_.begin()->first != next_)) changed_.Wait(mu_);  // Stop ends it
      if (stopped_) break;  // the engine ends the calls that have not run
      call = std::move(turns_.begin()->second);
      turns_.erase(turns_.begin());
      turn = next_++;
    }
    Tensor result;
    Status status;
    const bool ran = call->Run(waits_for, [&](CollectiveCall& running) {
      try {
        result = RunByGloo(*mesh_, running, world_, static_cast<uint32_t>(turn));
      } catch (...) {
        status = Status::FromCurrentException();
      }
    });
    if (ran) finish_(call, status, std::move(result));
  }
  mesh_->Close();
}

}  // namespace cohort::collective
