// Runs the workers of a MultiWorkerMirrored training in this process, each on a thread.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/port_reservation.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/strategies.h"
#include "cohort/registration.h"
#include "tests/cluster/local_cluster.h"

namespace cohort::testing {

class StrategyCluster {
 public:
  StrategyCluster(int workers, int replicas, std::string protocol, distribute::CommunicationOptions communication = {})
      : ports_(static_cast<size_t>(workers)),
        replicas_(replicas),
        protocol_(std::move(protocol)),
        communication_(communication) {}

  // Returns the TF_CONFIG of the worker.
  std::string TFConfig(int worker) const {
    std::vector<std::string> addresses;
    for (const PortReservation& port : ports_) addresses.push_back(StrCat("\"", port.Address(), "\""));
    return StrCat(R"({"cluster": {"worker": [)", StrJoin(addresses, ", "),
                  R"(]}, "task": {"type": "worker", "index": )", worker, "}}");
  }
  distribute::StrategyPtr Strategy(int worker) const {
    ServerOptions server = LocalCluster::FastOptions();
    server.protocol = protocol_;
    server.silence_limit = std::chrono::seconds(60);
    return distribute::MultiWorkerMirrored({.communication = communication_,
                                            .resolver = TFConfigClusterResolver(TFConfig(worker)),
                                            .replicas_per_worker = replicas_,
                                            .server = server});
  }
  // Runs `work` for each worker. Returns their errors.
  std::vector<Status> AtEachWorker(const std::function<void(int, const distribute::StrategyPtr&)>& work) const {
    std::vector<Status> outcomes(ports_.size());
    std::vector<std::thread> threads;
    for (size_t w = 0; w < ports_.size(); ++w) {
      threads.emplace_back([&, w] {
        try {
          work(static_cast<int>(w), Strategy(static_cast<int>(w)));
        } catch (...) {
          outcomes[w] = Status::FromCurrentException();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }
  int workers() const { return static_cast<int>(ports_.size()); }

 private:
  std::vector<PortReservation> ports_;
  const int replicas_;
  const std::string protocol_;
  const distribute::CommunicationOptions communication_;
};

inline void ExpectOk(const std::vector<Status>& outcomes) {
  for (const Status& status : outcomes) EXPECT_TRUE(status.ok()) << status.ToString();
}

struct WorkerLayout {
  std::string protocol;
  int workers, replicas;
  distribute::CommunicationImplementation implementation = distribute::CommunicationImplementation::kAuto;
};
inline std::ostream& operator<<(std::ostream& out, const WorkerLayout& layout) {
  out << layout.protocol << "_" << layout.workers << "_by_" << layout.replicas;
  using distribute::CommunicationImplementation;
  if (layout.implementation == CommunicationImplementation::kGloo) out << "_GLOO";
  if (layout.implementation == CommunicationImplementation::kRing) out << "_RING";
  return out;
}

class MultiWorker : public ::testing::TestWithParam<WorkerLayout> {
 protected:
  MultiWorker()
      : cluster_(GetParam().workers, GetParam().replicas, GetParam().protocol,
                 {.implementation = GetParam().implementation}) {
    RegisterAll();
  }

  StrategyCluster cluster_;
};

}  // namespace cohort::testing
