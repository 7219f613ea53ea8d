// The set-up of tests with parameter servers: workers and parameter servers in this process, and the strategy of their
// chief.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/distribute/local_cluster.h"
#include "cohort/distribute/strategies.h"
#include "cohort/registration.h"

namespace cohort::distribute {

class ParameterServers : public ::testing::Test {
 protected:
  ParameterServers() { RegisterAll(); }

  static ServerOptions Server() {
    ServerOptions options;
    options.token = "parameter-servers-test";
    options.config.intra_op_parallelism_threads = 1;
    options.heartbeat_interval = std::chrono::milliseconds(200);
    return options;
  }
  static std::string Ps(int task) { return StrCat("/job:ps/replica:0/task:", task, "/device:CPU:0"); }

  // Starts a new cluster, in place of that of an earlier call.
  StrategyPtr Open(int workers, int ps, Partitioner partitioner = nullptr) {
    cluster_ = std::make_unique<LocalCluster>(LocalClusterOptions{.workers = workers, .ps = ps, .server = Server()});
    return ParameterServerStrategy(*cluster_->resolver(), std::move(partitioner), {.server = Server()});
  }

  std::unique_ptr<LocalCluster> cluster_;  // outlives the strategies and sessions of a test
};

}  // namespace cohort::distribute
