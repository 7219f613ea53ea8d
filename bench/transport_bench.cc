// Compares the transport over gRPC with raw gRPC streams (bench/peers/grpc_stream*) in the same run. Each case runs
// between two new processes of this machine:
//   ping: round trip of a message with 32 bytes. Ours is answered and sent on by the handlers ("handler"), or by a
//         thread that waits for each answer ("thread"), which costs one more wake-up. Of the raw APIs that sleep, the
//         fastest counts.
//   bulk: a tensor of 100 MiB is pulled and pushed. At the end the receiver has it in memory of its own.
// Prints one JSON line for each figure, then the ratios. Arguments: --rounds=N --count=N --mib=N.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "bench/peers/grpc_stream.h"
#include "bench/peers/samples.h"
#include "cohort/cluster/transport.h"
#include "cohort/core/mutex.h"

namespace {

using namespace cohort;
using Clock = std::chrono::steady_clock;

constexpr unsigned kLimitSeconds = 300;  // the limit for one process
constexpr auto kPatience = std::chrono::seconds(60);
constexpr int kWarmups = 500;

enum Kind : uint16_t { kEcho = 1, kPull = 2, kPulled = 3, kPush = 4, kPushed = 5 };

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

TaskIdentity Identity(const std::string& task) {
  TaskIdentity identity;
  identity.task = task;
  identity.protocol_version = 1;
  return identity;
}

TransportOptions Options() {
  TransportOptions options;
  options.token = "the token of the benchmarks";
  return options;
}

Tensor Pattern(int64_t bytes) {
  Tensor tensor(DType::kUint8, Shape{bytes});
  for (int64_t i = 0; i < bytes; ++i) tensor.data<uint8_t>()[i] = static_cast<uint8_t>(i * 31 + (i >> 12));
  return tensor;
}

// Our server: sends pings back, and sends and receives tensors.
class Served final : public TransportHandler {
 public:
  explicit Served(int64_t bytes) : source_(Pattern(bytes)) {}
  void OnAccepted(const std::shared_ptr<Connection>&) override {}
  void OnMessage(const std::shared_ptr<Connection>& connection, Message message) override {
    if (message.kind == kPull) message = {kPulled, "", {source_}};
    if (message.kind == kPush) message = {kPushed, "", {}};
    connection->Send(std::move(message));
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status&) override {}

 private:
  const Tensor source_;
};

void ServeOurs(int64_t bytes, int port_fd) {
  Served handler(bytes);
  const auto transport = MakeGrpcTransport(handler, Options());
  transport->SetIdentity(Identity("/job:ps/replica:0/task:0"));
  const int port = transport->Listen("127.0.0.1:0");
  if (write(port_fd, &port, sizeof(port)) != sizeof(port)) throw std::runtime_error("cannot report the port");
  pause();  // until the parent kills this process
}

// Our client: its handler sends the next ping, or it records the answer for a waiting thread.
class Asker final : public TransportHandler {
 public:
  void OnAccepted(const std::shared_ptr<Connection>&) override {}
  void OnMessage(const std::shared_ptr<Connection>& connection, Message message) override {
    if (left_ > 0) {
      samples_.push_back(Since(start_) * 1e6);
      if (--left_ > 0) {
        start_ = Clock::now();
        connection->Send(std::move(message));
        return;
      }
    }
    MutexLock lock(mu_);
    answer_ = std::move(message);
    answered_.NotifyAll();
  }
  void OnClosed(const std::shared_ptr<Connection>&, const Status& why) override {
    std::fprintf(stderr, "transport_bench: %s\n", why.ToString().c_str());
    _exit(1);
  }

  Message Ask(Connection& connection, Message message) {
    connection.Send(std::move(message));
    MutexLock lock(mu_);
    while (!answer_) {
      if (!answered_.WaitFor(mu_, kPatience)) throw std::runtime_error("no answer");
    }
    Message answer = std::move(*answer_);
    answer_.reset();
    return answer;
  }
  std::vector<double> PingByHandler(Connection& connection, int count, const Message& ping) {
    samples_.clear();
    left_ = count;
    start_ = Clock::now();
    Ask(connection, ping);
    return std::move(samples_);
  }

 private:
  Mutex mu_;
  CondVar answered_;
  std::optional<Message> answer_ COHORT_GUARDED_BY(mu_);
  // Used by the thread that pings. Send and the answers hand it over.
  int left_ = 0;
  Clock::time_point start_;
  std::vector<double> samples_;
};

// Prints lines of "name value" for the parent. Latencies are in us, bandwidth is in GB/s.
void PrintLatency(const std::string& name, std::vector<double> samples) {
  samples.erase(samples.begin(), samples.begin() + kWarmups);
  std::printf("%s_us %.2f\n%s_p99_us %.2f\n", name.c_str(), Quantile(samples, 0.5), name.c_str(),
              Quantile(samples, 0.99));
}

void PrintBandwidth(const std::string& name, const std::vector<double>& seconds, int64_t bytes) {
  std::printf("%s_gb_per_s %.3f\n", name.c_str(), static_cast<double>(bytes) / Quantile(seconds, 0.5) / 1e9);
}

void AskOurs(const std::string& address, int count, int64_t bytes) {
  Asker handler;
  const auto transport = MakeGrpcTransport(handler, Options());
  transport->SetIdentity(Identity("/job:worker/replica:0/task:0"));
  const auto connection = transport->Dial(address, "", Clock::now() + kPatience);
  const Message ping = {kEcho, "", {Tensor::Zeros(DType::kFloat32, Shape{8})}};
  PrintLatency("ours_handler", handler.PingByHandler(*connection, count + kWarmups, ping));
  std::vector<double> samples;
  for (int i = 0; i < count + kWarmups; ++i) {
    const auto start = Clock::now();
    handler.Ask(*connection, ping);
    samples.push_back(Since(start) * 1e6);
  }
  PrintLatency("ours_thread", samples);
  const Tensor source = Pattern(bytes);
  std::vector<double> pulls;
  std::vector<double> pushes;
  for (int i = 0; i < 13; ++i) {
    auto start = Clock::now();
    const Message pulled = handler.Ask(*connection, {kPull, "", {}});
    const double pull = Since(start);
    if (std::memcmp(pulled.tensors.at(0).raw_data(), source.raw_data(), source.bytes()) != 0) {
      throw std::runtime_error("a pulled tensor differs from what was sent");
    }
    start = Clock::now();
    handler.Ask(*connection, {kPush, "", {source}});
    const double push = Since(start);
    if (i < 3) continue;
    pulls.push_back(pull);
    pushes.push_back(push);
  }
  PrintBandwidth("ours_pull", pulls, bytes);
  PrintBandwidth("ours_push", pushes, bytes);
  std::fflush(stdout);
  _exit(0);
}

const std::map<std::string, grpc_stream::Api> kApis = {
    {"sync", grpc_stream::Api::kSync}, {"callback", grpc_stream::Api::kCallback}, {"queue", grpc_stream::Api::kQueue}};

void AskRaw(const std::string& api, const std::string& address, int count, int64_t bytes) {
  PrintLatency("raw_" + api, grpc_stream::PingPong(address, kApis.at(api), true, count + kWarmups, 32));
  if (api == "sync") {
    const auto bulk = grpc_stream::MeasureBulk(address, true, static_cast<size_t>(bytes), 1 << 20, 10);
    PrintBandwidth("raw_pull", bulk.pull_seconds, bytes);
    PrintBandwidth("raw_push", bulk.push_seconds, bytes);
  }
}

struct Flags {
  int rounds = 3;
  int count = 10000;
  int mib = 100;
};

// Starts this program again as `role`. `out` is its standard output, or for a server the descriptor for its port.
pid_t StartRole(const std::string& role, const std::string& address, const Flags& flags, int out) {
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("cannot fork");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kLimitSeconds);
  if (role.rfind("raw", 0) == 0) {  // the peer's best setting: freed memory stays on warm pages
    setenv("MALLOC_MMAP_THRESHOLD_", "17179869184", 1);
    setenv("MALLOC_TRIM_THRESHOLD_", "17179869184", 1);
    setenv("MALLOC_TOP_PAD_", "67108864", 1);
  }
  dup2(out, STDOUT_FILENO);
  const std::string count = std::to_string(flags.count);
  const std::string mib = std::to_string(flags.mib);
  execl("/proc/self/exe", "transport_bench", "--role", role.c_str(), address.c_str(), count.c_str(), mib.c_str(),
        nullptr);
  _exit(127);
}

using Figures = std::map<std::string, std::vector<double>>;

// Runs one pair of processes. Adds the figures that the client prints to `figures`.
void RunPair(const std::string& kind, const Flags& flags, Figures& figures) {
  int port_pipe[2], result_pipe[2];
  if (pipe2(port_pipe, O_CLOEXEC) != 0 || pipe2(result_pipe, O_CLOEXEC) != 0)
    throw std::runtime_error("cannot make a pipe");
  const pid_t server = StartRole(kind + "-server", "", flags, port_pipe[1]);
  close(port_pipe[1]);
  int port = 0;
  int status = 1;
  std::string output;
  const bool served = read(port_pipe[0], &port, sizeof(port)) == sizeof(port);
  if (served) {
    const pid_t client = StartRole(kind + "-client", "127.0.0.1:" + std::to_string(port), flags, result_pipe[1]);
    close(result_pipe[1]);
    char part[4096];
    for (ssize_t n; (n = read(result_pipe[0], part, sizeof(part))) > 0;) output.append(part, static_cast<size_t>(n));
    waitpid(client, &status, 0);
  }
  close(port_pipe[0]);
  close(result_pipe[0]);
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  if (status != 0) throw std::runtime_error(kind + " failed or ran longer than its limit");
  std::istringstream lines(output);
  std::string name;
  for (double value; lines >> name >> value;) figures[name].push_back(value);
}

void PlayRole(char** argv) {
  const std::string role = argv[2];
  const std::string address = argv[3];
  const int count = std::stoi(argv[4]);
  const int64_t bytes = int64_t{std::stoi(argv[5])} << 20;
  const std::string kind = role.substr(0, role.find_last_of('-'));
  const bool server = role.substr(role.find_last_of('-')) == "-server";
  if (kind == "ours") {
    server ? ServeOurs(bytes, STDOUT_FILENO) : AskOurs(address, count, bytes);
  } else {
    const std::string api = kind.substr(kind.find('-') + 1);
    server ? grpc_stream::Serve("127.0.0.1:0", kApis.at(api), true, STDOUT_FILENO) : AskRaw(api, address, count, bytes);
  }
}

void Report(const Figures& figures) {
  std::map<std::string, double> medians;
  for (const auto& [name, values] : figures) {
    medians[name] = Quantile(values, 0.5);
    std::printf("{\"figure\": \"%s\", \"median\": %.2f, \"least\": %.2f, \"most\": %.2f}\n", name.c_str(),
                medians[name], *std::min_element(values.begin(), values.end()),
                *std::max_element(values.begin(), values.end()));
  }
  const double raw_ping = std::min({medians["raw_sync_us"], medians["raw_callback_us"], medians["raw_queue_us"]});
  std::printf(
      "{\"figure\": \"ratios\", \"ping ours/raw\": %.2f, \"ping by a thread ours/raw\": %.2f, "
      "\"pull ours/raw\": %.2f, \"push ours/raw\": %.2f}\n",
      medians["ours_handler_us"] / raw_ping, medians["ours_thread_us"] / raw_ping,
      medians["ours_pull_gb_per_s"] / medians["raw_pull_gb_per_s"],
      medians["ours_push_gb_per_s"] / medians["raw_push_gb_per_s"]);
}

Flags Parse(int argc, char** argv) {
  Flags flags;
  const std::map<std::string, int*> known = {
      {"--rounds", &flags.rounds}, {"--count", &flags.count}, {"--mib", &flags.mib}};
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const size_t equals = std::min(arg.find('='), arg.size());
    const auto it = known.find(arg.substr(0, equals));
    if (it == known.end() || equals + 1 >= arg.size()) {
      const bool asked = arg == "--help" || arg == "-h";
      std::fprintf(asked ? stdout : stderr,
                   "usage: transport_bench [--rounds=N] [--count=PINGS] [--mib=N]\n"
                   "  --rounds=N  rounds of all cases\n  --count=N   pings of each case\n"
                   "  --mib=N     size in MiB of the tensor of the bulk cases\n");
      std::exit(asked ? 0 : 2);
    }
    *it->second = std::max(1, std::atoi(arg.c_str() + equals + 1));
  }
  return flags;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 6 && std::strcmp(argv[1], "--role") == 0) {
      PlayRole(argv);
      return 0;
    }
    const Flags flags = Parse(argc, argv);
    Figures figures;
    for (int round = 0; round < flags.rounds; ++round) {
      for (const char* kind : {"ours", "raw-sync", "raw-callback", "raw-queue"}) RunPair(kind, flags, figures);
    }
    Report(figures);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "transport_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
