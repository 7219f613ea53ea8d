// A graph for tests that contains all members of a group: devices of one process, or of the tasks of a cluster.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/test/test_device.h"
#include "cohort/collective/testing/group_harness.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/collective.h"
#include "cohort/runtime/session.h"

namespace cohort::collective::testing {

// The devices of the members. One session runs the ops of all members. If `tasks` is 0, the session has no cluster, and
// the devices are its own.
struct Place {
  std::string transport;  // the protocol of the servers; not used if `tasks` is 0
  int tasks = 0;
  int devices = 1;            // of each task
  std::string hint = "auto";  // the attribute communication_hint: the name of an algorithm
  std::string device_type = kHostDeviceType;
  int world() const { return std::max(1, tasks) * devices; }
};

inline std::ostream& operator<<(std::ostream& out, const Place& place) {
  out << place.transport << "_" << place.tasks << "_by_" << place.devices;
  if (place.device_type != kHostDeviceType) out << "_" << place.device_type;
  return place.hint == "auto" ? out : out << "_" << place.hint;
}

// Returns the params whose hint names an algorithm of this build.
template <typename Param>
std::vector<Param> Built(std::vector<Param> params) {
  std::erase_if(params, [](const Param& param) { return !IsBuilt(AlgorithmByName(param.hint)); });
  return params;
}

// The base of tests whose graph contains all members. It owns the servers and the graph.
class InGraph : public ::testing::TestWithParam<Place> {
 protected:
  InGraph()
      : cluster_({GetParam().tasks > 0 ? GetParam().transport : "local", world(), GetParam().devices, Algorithm::kAuto,
                  0, RegisteredType()}) {
    keys_.communication_hint = GetParam().hint;
    for (int rank = 0; rank < world(); ++rank) {
      const int each = GetParam().devices;
      keys_.members.push_back(GetParam().tasks == 0 ? StrCat("/device:", GetParam().device_type, ":", rank)
                                                    : StrCat("/job:worker/task:", rank / each,
                                                             "/device:", GetParam().device_type, ":", rank % each));
    }
  }
  static int world() { return GetParam().world(); }
  static RunOptions Patience() { return {.timeout = std::chrono::minutes(1)}; }

  // Returns a new session for graph_. Its target is a server, or "" if Place::tasks is 0.
  std::unique_ptr<Session> Open() {
    SessionConfig config;
    config.device_count[GetParam().device_type] = GetParam().devices;
    config.intra_op_parallelism_threads = 1;
    config.operation_timeout = std::chrono::minutes(1);
    return std::make_unique<Session>(graph_, GetParam().tasks > 0 ? cluster_.server(0).Target() : "", config);
  }
  // Sets keys_.instance_key to a new key. Then calls make(rank) for each rank, in a DeviceScope of the member's device.
  // Returns the outputs by rank.
  template <typename Make>
  std::vector<Output> AtEachMember(const Make& make) {
    keys_.instance_key = ops::NextInstanceKey(graph_);
    std::vector<Output> outputs;
    for (int rank = 0; rank < world(); ++rank) {
      const DeviceScope device(graph_, keys_.members[static_cast<size_t>(rank)]);
      outputs.push_back(make(rank));
    }
    return outputs;
  }

  // Registers all backends, also the TEST backend and GPUs on a fake driver. Then returns the device type of the test's
  // Place. Call it before servers are made.
  static const std::string& RegisteredType() {
    RegisterAll();
    RegisterTestBackend();
    cuda::RegisterGpusForTests();
    return GetParam().device_type;
  }

  TestCluster cluster_;
  Graph graph_;
  ops::CollectiveKeys keys_;
};

inline std::vector<float> Values(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.num_elements()};
}

}  // namespace cohort::collective::testing
