// WaitingRun: a run of a session that waits for other runs.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/runtime/session.h"

namespace cohort::testing {

class WaitingRun {
 public:
  // Starts the run. When this returns, the run has ended or waits.
  static std::unique_ptr<WaitingRun> Start(Session& session, RunRequest request) {
    auto run = std::make_unique<WaitingRun>();
    session.RunAsync(std::move(request), [state = run->state_](const Status& status, RunResults results) {
      state->results = std::move(results);
      state->end.set_value(status);
    });
    return run;
  }
  bool ended() const { return end_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  // Waits for the end and returns the results. Throws the run's error, or DeadlineExceededError after a minute.
  const RunResults& Wait() {
    if (end_.wait_for(std::chrono::minutes(1)) != std::future_status::ready) {
      throw DeadlineExceededError("the run still waits after a minute");
    }
    end_.get().ThrowIfError();
    return state_->results;
  }

 private:
  struct State {
    std::promise<Status> end;
    RunResults results;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();  // a run may end after the test
  std::shared_future<Status> end_ = state_->end.get_future().share();
};

}  // namespace cohort::testing
