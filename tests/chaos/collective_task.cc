// Members of a group under test. TF_CONFIG says which worker this process is. Each step of its graph reduces two
// vectors of ones, a large one and a small one, at each of its devices, with those of all workers. It prints
//
//   serving TARGET pid PID
//   ready                      before the first step
//   acked N                    after its N-th step, whose sums were right
//   failed MS CODE: MESSAGE    for the step that failed, MS ms after it was started; then it waits to be ended
//   end N
//
// The flags have the form --name=value:
//   --steps (0: no end)  --count (elements of the large vector)  --pause_ms (between steps)
//   --odd_step (in this step the large vector has one element more)  --silence_ms  --timeout_ms (of a collective)
//   --large_only (1: this worker's graph lacks the small vector)
//   --gloo, --nccl (1: use this library)  --devices (of each worker)
//   --gpus (workers; each one's device is the GPU of its own number, so that no two share a card)
//   --host (the program joins the group, as on this host; 0: the ops of the graph join it, on the real host)
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/roles.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/collective/group.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/collective.h"
#include "cohort/ops/constant.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"

namespace cohort::testing {
namespace {

using Clock = std::chrono::steady_clock;
using Flags = std::map<std::string, int64_t>;

int64_t Get(const Flags& flags, const std::string& name, int64_t otherwise) {
  const auto it = flags.find(name);
  return it == flags.end() ? otherwise : it->second;
}

Flags Parse(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    if (word.rfind("--", 0) != 0 || equals == std::string::npos) {
      throw InvalidArgumentError("expected --name=number; got " + word);
    }
    flags[word.substr(2, equals - 2)] = std::stoll(word.substr(equals + 1));
  }
  return flags;
}

Tensor Ones(int64_t count) {
  Tensor ones(DType::kFloat32, {count});
  for (int64_t i = 0; i < count; ++i) ones.data<float>()[i] = 1;
  return ones;
}

// The devices of a worker: the first few CPUs, or one GPU.
std::vector<std::string> DevicesOf(int task, const Flags& flags) {
  if (Get(flags, "gpus", 0) > 0) return {StrCat("/device:GPU:", task)};
  std::vector<std::string> devices;
  for (int64_t i = 0; i < Get(flags, "devices", 1); ++i) devices.push_back(StrCat("/device:CPU:", i));
  return devices;
}

struct Program {
  Graph graph;
  Output large, small;
  std::vector<Output> sums;

  Program(int task, const Flags& flags, ops::CollectiveKeys keys) {
    const bool large_only = Get(flags, "large_only", 0) != 0;
    const DeviceScope worker(graph, StrCat("/job:worker/task:", task));
    large = ops::Placeholder(graph, DType::kFloat32, Shape{-1});
    small = ops::Placeholder(graph, DType::kFloat32, Shape{-1});
    for (const auto& [value, name] : {std::pair{large, "gradients/large"}, {small, "gradients/small"}}) {
      if (large_only && value.node == small.node) continue;
      keys.instance_key = ops::NextInstanceKey(graph);
      for (const std::string& name_of_device : DevicesOf(task, flags)) {
        const DeviceScope device(graph, name_of_device);
        sums.push_back(ops::CollectiveReduce(value, keys, "Add", "Id", name));
      }
    }
  }
};

std::vector<std::string> Members(const ClusterSpec& cluster, const Flags& flags) {
  std::vector<std::string> members;
  for (const int index : cluster.task_indices("worker")) {
    for (const std::string& device : DevicesOf(index, flags)) {
      members.push_back(StrCat("/job:worker/task:", index, device));
    }
  }
  return members;
}

std::unique_ptr<collective::Group> Join(const Server& server, const std::vector<std::string>& members, int64_t host) {
  collective::GroupOptions options;
  for (const std::string& member : members) options.members.push_back(DeviceName::Parse(member));
  options.host = StrCat("host ", host);
  auto group = collective::JoinGroup(server, options, Clock::now() + std::chrono::minutes(1));
  group->Publish(ServerDirectory::Global().Find(server.Target())->local_task()->resources());
  return group;
}

void ExpectSums(const std::vector<Tensor>& sums, size_t members) {
  for (const Tensor& sum : sums) {
    for (int64_t i = 0; i < sum.num_elements(); ++i) {
      if (sum.data<float>()[i] != static_cast<float>(members)) {
        throw DataLossError(StrCat("element ", i, " of ", sum.num_elements(), " is ", sum.data<float>()[i]));
      }
    }
  }
}

void Run(const Flags& flags) {
  RegisterAll();
  const TFConfigClusterResolver resolver;
  ServerOptions options;
  options.silence_limit = std::chrono::milliseconds(Get(flags, "silence_ms", 60'000));
  options.heartbeat_interval = std::min(options.silence_limit / 5, std::chrono::milliseconds(1000));
  options.config.intra_op_parallelism_threads = 1;
  options.config.device_count["CPU"] = static_cast<int>(Get(flags, "devices", 1));
  if (const int64_t gpus = Get(flags, "gpus", 0); gpus > 0) options.config.device_count["GPU"] = static_cast<int>(gpus);
  Server server(resolver.cluster_spec(), resolver.task_type().value_or(""), resolver.task_id().value_or(-1), options);
  std::printf("serving %s pid %d\n", server.Target().c_str(), static_cast<int>(getpid()));
  const std::vector<std::string> members = Members(server.cluster(), flags);
  ops::CollectiveKeys keys;
  keys.timeout = std::chrono::milliseconds(Get(flags, "timeout_ms", 0));
  if (Get(flags, "gloo", 0) != 0) keys.communication_hint = "gloo";
  if (Get(flags, "nccl", 0) != 0) keys.communication_hint = "nccl";
  std::unique_ptr<collective::Group> joined;
  if (const int64_t host = Get(flags, "host", 0); host > 0) {
    joined = Join(server, members, host);
    keys.group_size = static_cast<int64_t>(members.size());
  } else {
    keys.members = members;
  }
  Program program(server.task(), flags, keys);
  std::printf("ready\n");
  Session session(program.graph, server.Target());
  const int64_t count = Get(flags, "count", 300'000);
  const int64_t steps = Get(flags, "steps", 0);
  const Tensor small = Ones(5);
  for (int64_t step = 1; steps == 0 || step <= steps; ++step) {
    const Tensor large = Ones(step == Get(flags, "odd_step", 0) ? count + 1 : count);
    const auto start = Clock::now();
    try {
      ExpectSums(session.Run({{program.large, large}, {program.small, small}}, program.sums), members.size());
    } catch (const Error&) {
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
      std::printf("failed %ld %s\n", static_cast<long>(took.count()),
                  Status::FromCurrentException().ToString().c_str());
      pause();  // so that the end of this process does not end the others
    }
    std::printf("acked %ld\n", static_cast<long>(step));
    std::this_thread::sleep_for(std::chrono::milliseconds(Get(flags, "pause_ms", 0)));  // sets the rate of steps
  }
  std::printf("end %ld\n", static_cast<long>(steps));
}

}  // namespace
}  // namespace cohort::testing

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    cohort::testing::Run(cohort::testing::Parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collective_task: %s\n", error.what());
    return 1;
  }
}
