#include "cohort/train/coordinator.h"

#include <algorithm>

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/thread_pool.h"
#include "cohort/train/clock.h"

namespace cohort::train {
namespace {

bool IsCleanEnd(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const OutOfRangeError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

Coordinator::~Coordinator() {
  RequestStop();
  Join();
}

bool Coordinator::should_stop() const {
  MutexLock lock(mu_);
  return stop_;
}

void Coordinator::RequestStop(std::exception_ptr error) {
  if (error != nullptr && IsCleanEnd(error)) error = nullptr;
  MutexLock lock(mu_);
  stop_ = true;
  if (error_ == nullptr) error_ = std::move(error);
  changed_.NotifyAll();
}

void Coordinator::RequestStop(const Status& error) {
  try {
    error.ThrowIfError();
  } catch (...) {
    RequestStop(std::current_exception());
  }
}

bool Coordinator::WaitForStop(Clock::time_point deadline) {
  MutexLock lock(mu_);
  while (!stop_) {
    if (!changed_.WaitUntil(mu_, deadline) && !stop_) return false;
  }
  return true;
}

std::exception_ptr Coordinator::exception() const {
  MutexLock lock(mu_);
  return error_;
}

void Coordinator::Loop(const std::string& name, std::chrono::milliseconds interval, std::function<void()> work) {
  {
    MutexLock lock(mu_);
    ++running_;
  }
  threads_.emplace_back([this, name, interval = std::min(interval, kLongestLimit), work = std::move(work)] {
    SetThreadName(name);
    const Clock::time_point start = Clock::now();
    try {
      do {
        work();
        const auto turns = (Clock::now() - start) / interval;
        if (WaitForStop(start + (turns + 1) * interval)) break;
      } while (true);
    } catch (...) {
      RequestStop(std::current_exception());
    }
    MutexLock lock(mu_);
    --running_;
    changed_.NotifyAll();
  });
}

bool Coordinator::AwaitEnd(std::chrono::milliseconds grace) {
  const Clock::time_point deadline = DeadlineAfter(grace);
  MutexLock lock(mu_);
  while (running_ > 0) {
    if (!changed_.WaitUntil(mu_, deadline) && running_ > 0) return false;
  }
  return true;
}

void Coordinator::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Coordinator::Reset() {
  MutexLock lock(mu_);
  stop_ = false;
  error_ = nullptr;
}

}  // namespace cohort::train
