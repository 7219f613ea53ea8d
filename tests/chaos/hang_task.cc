// A task of a cluster in which something hangs, for progress_test. TF_CONFIG says which task this process is. Worker 0
// runs steps; the other tasks serve. It prints
//
//   serving TARGET pid PID
//   acked N                    after its N-th step
//   failed MS CODE: MESSAGE    for the step that failed, MS ms after it was started; then it ends
//   end N
//
// The flags have the form --name=value:
//   --on (the device of the node under test: "/job:ps/task:0")
//   --what: what a step of worker 0 does there:
//      hang    the node 'stuck' (TestHang) calls HangInUserCode, which never returns
//      forget  the node 'forgotten' (TestForget) never calls back
//      short   100 nodes (TestSleep) that take 30 ms each
//      send    the node 'large' (TestLarge) makes --elements float32s, which worker 0 fetches
//      queue   the node 'taken' takes an element from a queue, which comes after --after_ms
//      reduce  all workers reduce twice. Between the two, the main thread of --absent calls HangInUserCode; with --once
//              only if the launcher has not started the task again. The worker --late begins after --after_ms
//   --steps (1)
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "cohort/cluster/server.h"
#include "cohort/cluster/status/state_dump.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/graph/op_def.h"
#include "cohort/ops/array.h"
#include "cohort/ops/collective.h"
#include "cohort/ops/queues.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"
#include "tests/chaos/task_flags.h"

// Not in an unnamed namespace and not inlined, so that the stacks show it by name.
[[gnu::noinline]] void HangInUserCode() {
  cohort::Mutex mu;
  cohort::CondVar never;
  cohort::MutexLock lock(mu);
  for (;;) never.Wait(mu);
}

namespace cohort::testing {
namespace {

using Clock = std::chrono::steady_clock;

class ForgetKernel final : public AsyncOpKernel {
 public:
  explicit ForgetKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    CancellationManager& cancellation = *ctx.step().cancellation;
    if (cancellation.Register(done) == CancellationManager::kAlreadyCancelled) done(cancellation.status());
  }
};

int64_t elements = 1;

void RegisterHangingOps() {
  RegisterAll();
  for (const char* op : {"TestHang", "TestForget", "TestSleep", "TestLarge"}) {
    OpRegistry::Global().Register(OpDef(op).Input("x: float32").Output("y: float32").ShapeRule([](ShapeContext&) {
      return std::vector<Shape>{Shape::UnknownRank()};
    }));
  }
  KernelRegistry::Global().RegisterFn("TestHang", "CPU", [](KernelContext& ctx) {
    HangInUserCode();
    ctx.SetOutput(0, ctx.input(0));
  });
  KernelRegistry::Global().Register<ForgetKernel>("TestForget", "CPU");
  KernelRegistry::Global().RegisterFn("TestSleep", "CPU", [](KernelContext& ctx) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the kernel's work
    ctx.SetOutput(0, ctx.input(0));
  });
  KernelRegistry::Global().RegisterFn("TestLarge", "CPU", [](KernelContext& ctx) {
    ctx.SetOutput(0, Tensor::Zeros(DType::kFloat32, Shape{elements}));
  });
}

Output Own(const char* op, Output x, const std::string& name) { return x.graph().Op(op).Name(name).Input(x).Finish1(); }

class Program {
 public:
  Program(const Flags& flags, const Server& server) : flags_(flags), server_(server) {}

  void Run() {
    const std::string what = flags_.Text("what");
    if (what == "reduce" && server_.job() == "worker") return Reduce();
    if (server_.job() != "worker" || server_.task() != 0) return Serve();
    const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{}, "x");
    const FeedList feeds = {{x, Tensor::Scalar(1.0f)}};
    const DeviceScope device(graph_, flags_.Text("on"));
    if (what == "hang") Steps(feeds, Own("TestHang", x, "stuck"));
    if (what == "forget") Steps(feeds, Own("TestForget", x, "forgotten"));
    if (what == "send") Steps(feeds, Own("TestLarge", x, "large"));
    if (what == "short") {
      Output y = x;
      for (int i = 0; i < 100; ++i) y = Own("TestSleep", y, StrCat("sleep_", i));
      Steps(feeds, y);
    }
    if (what == "queue") Queue(feeds);
  }

 private:
  void Serve() {
    Server& server = const_cast<Server&>(server_);
    server.Join();
  }

  void Steps(const FeedList& feeds, Output fetch) {
    Session session(graph_, server_.Target());
    for (int64_t step = 1; step <= flags_.Integer("steps", 1); ++step) {
      Step(step, [&] { session.Run(feeds, {fetch}); });
    }
    std::printf("end\n");
  }

  static void Step(int64_t step, const std::function<void()>& run) {
    const auto start = Clock::now();
    try {
      run();
      std::printf("acked %ld\n", static_cast<long>(step));
    } catch (const Error&) {
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
      std::string text = Status::FromCurrentException().ToString();
      for (char& c : text) c = c == '\n' ? '|' : c;
      std::printf("failed %ld %s\n", static_cast<long>(took.count()), text.c_str());
      std::fflush(stdout);
      _exit(1);  // a kernel that hangs would keep the session from closing
    }
  }

  void Queue(const FeedList& feeds) {
    const ops::FIFOQueue queue(graph_, {DType::kFloat32}, {.capacity = 10, .shapes = {Shape{}}});
    const Output taken = queue.Dequeue().front();
    Node* const put = queue.Enqueue({feeds.front().first});
    Session session(graph_, server_.Target());
    std::thread later([&] {
      std::this_thread::sleep_for(flags_.Ms("after_ms", 0));
      session.Run(feeds, {}, {put});
    });
    Step(1, [&] { session.Run({}, {taken}); });
    later.join();
    std::printf("end\n");
  }

  void Reduce() {
    const ClusterSpec& cluster = server_.cluster();
    ops::CollectiveKeys keys;
    for (const int task : cluster.task_indices("worker")) {
      keys.members.push_back(StrCat("/job:worker/task:", task, "/device:CPU:0"));
    }
    const DeviceScope device(graph_, StrCat("/job:worker/task:", server_.task()));
    const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{-1}, "x");
    const Output sum = ops::CollectiveReduce(x, keys, "Add", "Id", "gradients/dense");
    Session session(graph_, server_.Target());
    const FeedList feeds = {{x, Tensor::Vector<float>({1, 2, 3})}};
    if (server_.task() == flags_.Integer("late", -1)) std::this_thread::sleep_for(flags_.Ms("after_ms", 0));
    Step(1, [&] { session.Run(feeds, {sum}); });
    const char* restarts = std::getenv("COHORT_RESTARTS");
    const bool again = restarts != nullptr && std::string(restarts) != "0";
    if (server_.task() == flags_.Integer("absent", -1) && !(again && flags_.Integer("once", 0) == 1)) HangInUserCode();
    Step(2, [&] { session.Run(feeds, {sum}); });
    std::printf("end\n");
  }

  const Flags& flags_;
  const Server& server_;
  Graph graph_;
};

void RunTask(const Flags& flags) {
  RegisterHangingOps();
  DumpStateOnSignal();
  elements = flags.Integer("elements", 1);
  const TFConfigClusterResolver resolver;
  ServerOptions options;
  options.heartbeat_interval = std::chrono::milliseconds(300);
  options.silence_limit = std::chrono::milliseconds(60000);
  options.config.intra_op_parallelism_threads = 1;
  options.share_memory = false;
  options.bind = flags.Text("bind");
  Server server(resolver.cluster_spec(), resolver.task_type().value_or(""), resolver.task_id().value_or(-1), options);
  std::printf("serving %s pid %d\n", server.Target().c_str(), static_cast<int>(getpid()));
  Program(flags, server).Run();
}

}  // namespace
}  // namespace cohort::testing

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    cohort::testing::RunTask(cohort::testing::Flags(argc, argv));
    return 0;
  } catch (const std::exception&) {
    std::fprintf(stderr, "hang_task: %s\n", cohort::Status::FromCurrentException().ToString().c_str());
    return 1;
  }
}
