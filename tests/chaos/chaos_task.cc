// A task of a cluster under test. TF_CONFIG says which task it is. A ps serves. A worker trains a CountingModel and
// prints
//
//   serving TARGET pid PID
//   ready                         when the session is there and the model has its values
//   started N                     before its N-th step, with --say_starts=1
//   acked N G                     after its N-th acknowledged step, with --ack_every=K after each K-th one; the loss
//   was
//                                 fetched, G = global_step or -1
//   failed MS CODE: MESSAGE       for a step (or session) that failed, MS ms after it was started
//   end N
//
// The exit code is 0, or 1 after an error, which is printed to stderr as `chaos_task: CODE: MESSAGE`. The flags have
// the form --name=value:
//   --steps (0: no end)  --pause_ms (between steps)  --variables --size (of the model)  --logdir  --save_secs
//   --max_save_failures
//   --silence_ms --heartbeat_ms --orphan_ms --bind --share_memory (of the server)  --connect_secs --timeout_ms (of the
//   session)
//   --recover=1: after a failed step a new session is opened, for ever  --read_step=1: fetch global_step after each
//   step
//   --x (value that is fed, 1)  --x_size (elements of the feed)  --feed=0: feed nothing  --say_starts=1: print
//   `started`
//   --serve=1: a worker that only serves
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <thread>

#include "tests/chaos/counting_model.h"
#include "tests/chaos/task_flags.h"

namespace cohort::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::string Described() { return Status::FromCurrentException().ToString(); }

class Worker {
 public:
  Worker(const Flags& flags, Server& server)
      : flags_(flags),
        server_(server),
        model_(server.cluster(), server.task(), static_cast<int>(flags.Integer("variables", 4)),
               flags.Integer("size", 4)),
        x_(Tensor::Vector(std::vector<float>(static_cast<size_t>(flags.Integer("x_size", flags.Integer("size", 4))),
                                             static_cast<float>(flags.Number("x", 1))))) {
    config_.connect_timeout = flags.Seconds("connect_secs", 60);
    config_.operation_timeout = flags.Ms("timeout_ms", 0);
  }

  void Run() {
    train::SupervisorOptions options;
    options.is_chief = server_.is_chief();
    options.logdir = flags_.Text("logdir");
    options.save_model_interval = flags_.Seconds("save_secs", 600);
    options.save_summaries_interval = std::chrono::milliseconds(0);
    options.max_save_failures = static_cast<int>(flags_.Integer("max_save_failures", options.max_save_failures));
    options.server = &server_;
    train::Supervisor supervisor(model_.graph, options);
    {
      train::ManagedSession session = supervisor.managed_session(server_.Target(), config_);
      std::printf("ready\n");
      Train(*session, supervisor);
      session.Close();
    }
    std::printf("end %ld\n", static_cast<long>(acknowledged_));
  }

 private:
  bool Ended() const {
    const int64_t steps = flags_.Integer("steps", 0);
    return steps > 0 && acknowledged_ >= steps;
  }

  void Train(Session& first, train::Supervisor& supervisor) {
    std::unique_ptr<Session> own;
    Session* session = &first;
    while (!Ended() && !supervisor.should_stop()) {
      const Clock::time_point start = Clock::now();
      try {
        if (session == nullptr) {
          own = std::make_unique<Session>(model_.graph, server_.Target(), config_);
          session = own.get();
        }
        Step(*session);
      } catch (const Error&) {
        const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
        std::printf("failed %ld %s\n", static_cast<long>(took.count()), Described().c_str());
        if (flags_.Integer("recover", 0) == 0) throw;
        session = nullptr;
        own.reset();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sets the rate of steps; it waits for nothing
      }
      std::this_thread::sleep_for(flags_.Ms("pause_ms", 0));
    }
  }

  void Step(Session& session) {
    FeedList feeds;
    if (flags_.Integer("feed", 1) != 0) feeds.emplace_back(model_.x, x_);
    if (flags_.Integer("say_starts", 0) != 0) std::printf("started %ld\n", static_cast<long>(acknowledged_ + 1));
    session.Run(feeds, {model_.loss}, {model_.train});
    int64_t step = -1;
    if (flags_.Integer("read_step", 0) != 0) step = session.Run(model_.global_step.value()).scalar<int64_t>();
    if (++acknowledged_ % flags_.Integer("ack_every", 1) != 0) return;
    std::printf("acked %ld %ld\n", static_cast<long>(acknowledged_), static_cast<long>(step));
  }

  const Flags& flags_;
  Server& server_;
  CountingModel model_;
  const Tensor x_;
  SessionConfig config_;
  int64_t acknowledged_ = 0;
};

void Run(const Flags& flags) {
  const TFConfigClusterResolver resolver;
  ServerOptions options;
  options.heartbeat_interval = flags.Ms("heartbeat_ms", 300);
  options.silence_limit = flags.Ms("silence_ms", 60000);
  options.orphan_timeout = flags.Ms("orphan_ms", 60000);
  options.bind = flags.Text("bind");
  options.share_memory = flags.Integer("share_memory", 1) != 0;
  options.config.intra_op_parallelism_threads = 1;
  Server server(resolver.cluster_spec(), resolver.task_type().value_or(""), resolver.task_id().value_or(-1), options);
  std::printf("serving %s pid %d\n", server.Target().c_str(), static_cast<int>(getpid()));
  if (server.job() == "worker" && flags.Integer("serve", 0) == 0) {
    Worker(flags, server).Run();
  } else {
    server.Join();
    std::printf("joined\n");
  }
}

}  // namespace
}  // namespace cohort::testing

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    cohort::testing::Run(cohort::testing::Flags(argc, argv));
    return 0;
  } catch (const std::exception&) {
    std::fprintf(stderr, "chaos_task: %s\n", cohort::testing::Described().c_str());
    return 1;
  }
}
