// Collectives of a group whose members are all of one process: nothing is sent. The last member to come computes for
// all, with the group's threads where there is much to do, and all get the same tensors. Internal to collective/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/plan_run.h"

namespace cohort::collective {

// One execution of one collective. Thread-safe.
class Meeting final : public Pending, public std::enable_shared_from_this<Meeting> {
 public:
  Meeting(RunHost& host, const CallId& call);

  // `job` has no plan. A member that brings something else than those before fails the group.
  void Come(int rank, PlanRun::Job job);
  // Ends it for those who have come, unless all have. Once a group fails, everybody who comes calls it.
  void Fail(const Status& why);

  std::string Describe() const override EXCLUDES(mu_);
  std::string DescribeWait() const override EXCLUDES(mu_);

 private:
  struct Work;

  std::string DescribeLocked() const REQUIRES(mu_);
  void Compute(std::vector<PlanRun::Job> jobs);
  void End(std::vector<PlanRun::Job> jobs, const Status& status, std::vector<Tensor> results);

  RunHost& host_;
  const CallId call_;

  mutable Mutex mu_;
  std::vector<PlanRun::Job> jobs_ GUARDED_BY(mu_);  // by rank; without `done` where a member has not come
  int first_ GUARDED_BY(mu_) = -1;                  // who came first
  int come_ GUARDED_BY(mu_) = 0;
  bool complete_ GUARDED_BY(mu_) = false;  // all have come; who computes has the jobs
  bool failed_ GUARDED_BY(mu_) = false;
};

// The meetings of a group. Thread-safe.
class MeetingPlace {
 public:
  explicit MeetingPlace(RunHost& host) : host_(host) {}

  struct Found {
    std::shared_ptr<Meeting> meeting;
    int first = -1;         // who has asked first
    uint64_t schedule = 0;  // of that one, by its fingerprint
  };
  // The meeting of a call, made by the first who asks; the last of all members to ask takes it out.
  Found Find(const CallId& call, int rank, uint64_t schedule);
  void FailAll(const Status& why);
  // Those that somebody has not asked for yet.
  void AddUnderWay(std::vector<std::shared_ptr<Pending>>& all) EXCLUDES(mu_);

 private:
  struct Open {
    Found found;
    int asked = 0;
  };
  RunHost& host_;
  Mutex mu_;
  std::map<CallId, Open> open_ GUARDED_BY(mu_);
};

}  // namespace cohort::collective
