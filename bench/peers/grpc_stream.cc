// A peer: measures raw gRPC (without protobuf) between two processes of one host.
//   ping: round trip of a small message on one bidirectional stream, for each pair of client and server API;
//   bulk: 100 MiB pulled and 100 MiB pushed in chunks; the receiver copies them to a warm buffer.
// Each case runs in two new processes, which are forked before either uses gRPC. build_grpc.sh compiles it.
#include "grpc_stream.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>

#include "samples.h"

namespace {

using grpc_stream::Api;

const std::map<std::string, Api> kApis = {
    {"sync", Api::kSync}, {"callback", Api::kCallback}, {"queue", Api::kQueue}, {"spin", Api::kSpin}};

constexpr char kUsage[] =
    "usage: grpc_stream [--what=all|ping|bulk] [--net=tcp|unix|both] [--apis=CLIENT-SERVER[,...]] "
    "[--count=N]\n"
    "                   [--payload=BYTES] [--mib=N] [--repeats=N] [--rounds=N] [--malloc=tuned|default]\n"
    "                   [--arguments=tuned|default] [--pin=no|apart|same]\n"
    "APIs: sync, callback, queue (completion queue), spin (completion queue polled without sleeping).\n"
    "--pin: server and client where the scheduler likes, on two cores, or both on one.\n"
    "Prints one JSON line for each case, loopback only.\n";

using Flags = std::map<std::string, std::string>;

Flags Parse(int argc, char** argv) {
  Flags flags = {{"what", "all"},
                 {"net", "both"},
                 {"count", "20000"},
                 {"payload", "32"},
                 {"mib", "100"},
                 {"repeats", "10"},
                 {"rounds", "3"},
                 {"malloc", "tuned"},
                 {"pin", "no"},
                 {"arguments", "tuned"},
                 {"apis",
                  "sync-sync,callback-callback,queue-queue,sync-callback,sync-queue,queue-sync,callback-sync,"
                  "callback-queue,queue-callback,spin-spin"}};
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--help" || arg == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    const size_t equals = arg.find('=');
    if (arg.rfind("--", 0) != 0 || equals == std::string::npos || flags.count(arg.substr(2, equals - 2)) == 0) {
      throw std::invalid_argument("unknown argument: " + arg);
    }
    flags[arg.substr(2, equals - 2)] = arg.substr(equals + 1);
  }
  return flags;
}

// Sets variables that glibc reads only when a process starts, and starts this program again. Freed memory then stays on
// warm pages.
void TuneMalloc(char** argv) {
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") != nullptr) return;
  setenv("MALLOC_MMAP_THRESHOLD_", "17179869184", 1);
  setenv("MALLOC_TRIM_THRESHOLD_", "17179869184", 1);
  setenv("MALLOC_TOP_PAD_", "67108864", 1);
  execv("/proc/self/exe", argv);
  throw std::runtime_error("cannot start again with malloc's settings");
}

pid_t Fork(const std::function<void()>& body, unsigned limit_seconds) {
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("cannot fork");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(limit_seconds);
  int status = 0;
  try {
    body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "grpc_stream: %s\n", error.what());
    status = 1;
  }
  std::fflush(stdout);
  _exit(status);
}

void PinTo(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<size_t>(core), &cores);
  if (sched_setaffinity(0, sizeof(cores), &cores) != 0)
    throw std::runtime_error("cannot run on core " + std::to_string(core));
}

// Runs `client(target)` in one process, with a server in another.
void RunPair(const std::string& net, Api server_api, const Flags& flags,
             const std::function<void(const std::string&)>& client) {
  constexpr unsigned kLimitSeconds = 120;
  const std::string path = "/tmp/grpc_stream." + std::to_string(getpid());
  const std::string address = net == "unix" ? "unix:" + path : "127.0.0.1:0";
  const bool tuned = flags.at("arguments") == "tuned";
  const std::string& pin = flags.at("pin");
  int fds[2];
  if (pipe(fds) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t server = Fork(
      [&] {
        if (pin != "no") PinTo(0);
        grpc_stream::Serve(address, server_api, tuned, fds[1]);
      },
      kLimitSeconds);
  close(fds[1]);
  int port = 0, status = 1;
  if (read(fds[0], &port, sizeof(port)) == sizeof(port)) {
    const std::string target = net == "unix" ? address : "127.0.0.1:" + std::to_string(port);
    const pid_t pid = Fork(
        [&] {
          if (pin != "no") PinTo(pin == "apart" ? 1 : 0);
          client(target);
        },
        kLimitSeconds);
    waitpid(pid, &status, 0);
  }
  close(fds[0]);
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  unlink(path.c_str());
  if (status != 0) throw std::runtime_error("a case over " + net + " failed or ran longer than its limit");
}

void Ping(const std::string& net, const std::string& apis, const Flags& flags) {
  const size_t dash = apis.find('-');
  const Api client = kApis.at(apis.substr(0, dash)), server = kApis.at(apis.substr(dash + 1));
  if (flags.at("pin") == "same" && (client == Api::kSpin || server == Api::kSpin)) {
    std::fprintf(stderr, "grpc_stream: skipped %s: a spinning side starves the other on one core\n", apis.c_str());
    return;
  }
  RunPair(net, server, flags, [&](const std::string& target) {
    const int count = std::stoi(flags.at("count")), rounds = std::stoi(flags.at("rounds"));
    std::vector<double> medians, p99s;
    for (int round = 0; round < rounds; ++round) {
      auto samples = grpc_stream::PingPong(target, client, flags.at("arguments") == "tuned", count + 500,
                                           std::stoul(flags.at("payload")));
      samples.erase(samples.begin(), samples.begin() + 500);
      medians.push_back(Quantile(samples, 0.5));
      p99s.push_back(Quantile(samples, 0.99));
    }
    std::printf(
        "{\"peer\": \"grpc\", \"version\": \"%s\", \"figure\": \"ping\", \"net\": \"%s\", \"client-server\": "
        "\"%s\", \"payload\": %s, \"arguments\": \"%s\", \"pin\": \"%s\", \"us_median\": %.1f, \"us_best\": "
        "%.1f, "
        "\"us_p99\": %.1f}\n",
        grpc::Version().c_str(), net.c_str(), apis.c_str(), flags.at("payload").c_str(), flags.at("arguments").c_str(),
        flags.at("pin").c_str(), Quantile(medians, 0.5), *std::min_element(medians.begin(), medians.end()),
        Quantile(p99s, 0.5));
  });
}

void BulkCase(const std::string& net, size_t chunk, const Flags& flags) {
  RunPair(net, Api::kSync, flags, [&](const std::string& target) {
    const size_t bytes = std::stoul(flags.at("mib")) << 20;
    const int repeats = std::stoi(flags.at("repeats")) * std::stoi(flags.at("rounds"));
    const grpc_stream::Bulk bulk =
        grpc_stream::MeasureBulk(target, flags.at("arguments") == "tuned", bytes, chunk, repeats);
    for (const auto& [name, seconds] : {std::pair("pull", bulk.pull_seconds), std::pair("push", bulk.push_seconds)}) {
      std::printf(
          "{\"peer\": \"grpc\", \"version\": \"%s\", \"figure\": \"%s\", \"net\": \"%s\", \"bytes\": %zu, "
          "\"chunk\": %zu, \"malloc\": \"%s\", \"arguments\": \"%s\", \"pin\": \"%s\", \"gb_per_s_median\": "
          "%.3f, "
          "\"gb_per_s_best\": %.3f}\n",
          grpc::Version().c_str(), name, net.c_str(), bytes, chunk, flags.at("malloc").c_str(),
          flags.at("arguments").c_str(), flags.at("pin").c_str(),
          static_cast<double>(bytes) / Quantile(seconds, 0.5) / 1e9,
          static_cast<double>(bytes) / *std::min_element(seconds.begin(), seconds.end()) / 1e9);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Flags flags = Parse(argc, argv);
    if (flags.at("malloc") == "tuned") TuneMalloc(argv);
    for (const std::string net : {"tcp", "unix"}) {
      if (flags.at("net") != "both" && flags.at("net") != net) continue;
      const std::string apis = flags.at("apis") + ",";
      for (size_t at = 0, end; flags.at("what") != "bulk" && (end = apis.find(',', at)) != std::string::npos;
           at = end + 1) {
        Ping(net, apis.substr(at, end - at), flags);
      }
      for (const size_t chunk : {size_t{1} << 20, size_t{4} << 20}) {
        if (flags.at("what") != "ping") BulkCase(net, chunk, flags);
      }
    }
  } catch (const std::out_of_range&) {
    std::fprintf(stderr, "grpc_stream: --apis wants pairs like sync-callback\n%s", kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "grpc_stream: %s\n%s", error.what(), kUsage);
    return 1;
  }
}
