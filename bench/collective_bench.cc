// Measures all-reduce of float32 sums. The sides are: Cohort between processes of this host ("grpc"), the same without
// shared memory ("grpc_alone"), Cohort between members of one process, and Gloo's algorithms between processes over
// TCP. Each figure has its own processes (and its own Gloo context). A barrier comes before each all-reduce, and the
// clock of rank 0 counts. "mixed" is 4 KB, 1 MB and 11.55 MB one after another. With --before=BYTES, the same
// connections have reduced so many bytes many times before. Gloo stalls if these bytes were few.
// Prints one JSON line for each figure: {"side", "algorithm", "members", "bytes" (0: mixed), "median_us", "p99_us",
// "count"}.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "bench/peers/gloo_rank.h"
#include "bench/peers/samples.h"
#include "cohort/cluster/port_reservation.h"
#include "cohort/cluster/server.h"
#include "cohort/collective/group.h"
#include "cohort/core/str_cat.h"
#include "cohort/registration.h"

namespace {

using namespace cohort;
using all_reduce::Rank;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(60);
constexpr int64_t kNetworkBytes = 2'887'306 * 4;  // gradients of the guide network

struct Flags {
  std::vector<std::string> sides = {"in_process", "grpc", "grpc_alone", "gloo"};
  std::vector<int64_t> members = {2, 4};
  std::vector<int64_t> bytes = {4096, 1 << 20, kNetworkBytes, 100 << 20, 0};
  std::string algorithm = "auto";
  int64_t before = 0;
  int64_t segment = 0;
  double effort = 1;      // factor of the usual number of repeats
  unsigned limit_s = 60;  // seconds for one figure
};

struct Case {
  std::string side;
  std::string algorithm;
  int members = 2;
  std::vector<int64_t> counts;  // elements of the vectors that are reduced one after another
  int64_t before = 0;           // bytes
  int warmups = 1;
  int repeats = 1;
};

class OurRank final : public Rank {
 public:
  // If `keep` is true, the vectors do not change, and sums are new tensors, because members of one process share them.
  OurRank(std::shared_ptr<Communicator> communicator, bool keep)
      : communicator_(std::move(communicator)), keep_(keep) {}

  void Prepare(const std::vector<int64_t>& counts) override {
    vectors_.clear();
    for (const int64_t count : counts) vectors_.push_back(Tensor::Zeros(DType::kFloat32, Shape{count}));
    sums_.assign(counts.size(), Tensor());
  }
  float* data(size_t vector) override { return (sums_[vector].defined() ? sums_ : vectors_)[vector].data<float>(); }
  void Barrier() override {
    Wait([this](Communicator::Done done) { communicator_->BarrierAsync({0, "barrier"}, std::move(done)); });
  }
  void AllReduce(size_t vector) override {
    sums_[vector].Reset();
    (keep_ ? sums_ : vectors_)[vector] = Wait([&](Communicator::Done done) {
      Tensor input = keep_ ? vectors_[vector] : std::move(vectors_[vector]);
      communicator_->AllReduceAsync({static_cast<int64_t>(vector) + 1, "all_reduce"}, std::move(input), ReduceOp::kSum,
                                    std::move(done));
    });
  }

 private:
  struct Outcome {
    Mutex mu;
    CondVar changed;
    std::optional<Status> status COHORT_GUARDED_BY(mu);
    Tensor value COHORT_GUARDED_BY(mu);
  };

  template <typename Call>
  Tensor Wait(const Call& call) {
    const auto outcome = std::make_shared<Outcome>();
    call([outcome](const Status& status, Tensor value) {
      MutexLock lock(outcome->mu);
      outcome->status = status;
      outcome->value = std::move(value);
      outcome->changed.NotifyAll();
    });
    MutexLock lock(outcome->mu);
    while (!outcome->status) {
      if (!outcome->changed.WaitFor(outcome->mu, kPatience)) throw DeadlineExceededError("no end within a minute");
    }
    outcome->status->ThrowIfError();
    return std::move(outcome->value);
  }

  const std::shared_ptr<Communicator> communicator_;
  const bool keep_;
  std::vector<Tensor> vectors_;
  std::vector<Tensor> sums_;
};

void Check(Rank& rank, int number, const Case& work) {
  rank.Prepare(work.counts);
  for (size_t v = 0; v < work.counts.size(); ++v) {
    float* data = rank.data(v);
    for (int64_t i = 0; i < work.counts[v]; ++i) data[i] = static_cast<float>(number + 1 + i % 7);
  }
  rank.Barrier();
  for (size_t v = 0; v < work.counts.size(); ++v) rank.AllReduce(v);
  const int64_t members_sum = int64_t{work.members} * (work.members + 1) / 2;
  for (size_t v = 0; v < work.counts.size(); ++v) {
    float* data = rank.data(v);
    for (int64_t i = 0; i < work.counts[v]; ++i) {
      const auto sum = static_cast<float>(members_sum + work.members * (i % 7));
      if (data[i] != sum) throw std::runtime_error(StrCat("element ", i, " is ", data[i], ", not ", sum));
    }
  }
  rank.Barrier();
  rank.Prepare(work.counts);  // the vectors are zeros, so that sums stay small
}

int RepeatsBefore(int64_t bytes) {
  return bytes == 0 ? 0 : static_cast<int>(std::clamp<int64_t>((int64_t{1} << 30) / bytes, 5, 1000));
}

// Measures one case. Rank 0 prints the result.
void Measure(Rank& rank, int number, const Case& work) {
  if (work.before > 0) rank.Prepare({work.before / 4});
  for (int i = 0; i < RepeatsBefore(work.before); ++i) {
    rank.Barrier();
    rank.AllReduce(0);
  }
  Check(rank, number, work);
  std::vector<double> samples;
  for (int i = -work.warmups; i < work.repeats; ++i) {
    rank.Barrier();
    const auto start = Clock::now();
    for (size_t v = 0; v < work.counts.size(); ++v) rank.AllReduce(v);
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (i >= 0) samples.push_back(us);
  }
  rank.Barrier();
  if (number != 0) return;
  std::printf(
      "{\"side\": \"%s\", \"algorithm\": \"%s\", \"members\": %d, \"bytes\": %ld, \"median_us\": %.1f, \"p99_us\": "
      "%.1f, "
      "\"count\": %zu}\n",
      work.side.c_str(), work.algorithm.c_str(), work.members,
      work.counts.size() == 1 ? static_cast<long>(work.counts[0] * 4) : 0L, Quantile(samples, 0.5),
      Quantile(samples, 0.99), samples.size());
  std::fflush(stdout);
}

collective::GroupOptions Options(const Case& work, const Flags& flags) {
  collective::GroupOptions options;
  options.algorithm = collective::AlgorithmByName(work.algorithm);
  options.segment_bytes = flags.segment;
  const bool one_process = work.side == "in_process";
  for (int i = 0; i < work.members; ++i) {
    options.members.push_back(DeviceName::Parse(
        StrCat("/job:worker/replica:0/task:", one_process ? 0 : i, "/device:CPU:", one_process ? i : 0)));
  }
  return options;
}

void RunInOneProcess(const Case& work, const Flags& flags) {
  const auto group = collective::MakeLocalGroup(Options(work, flags));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(work.members));
  for (int i = 0; i < work.members; ++i) {
    threads.emplace_back([&, i] {
      OurRank rank(group->communicator(i), true);
      Measure(rank, i, work);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void RunOverGrpc(const Case& work, const Flags& flags, const ClusterSpec& cluster, int number) {
  ServerOptions options;
  options.token = "the token of the benchmarks";
  options.share_memory = work.side == "grpc";
  options.config.intra_op_parallelism_threads = 1;
  Server server(cluster, "worker", number, options);
  const auto group = collective::JoinGroup(server, Options(work, flags), Clock::now() + kPatience);
  OurRank rank(group->communicator(), false);
  Measure(rank, number, work);
}

pid_t Fork(unsigned limit_s, const std::function<void()>& child) {
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("cannot fork");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(limit_s);
  try {
    child();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collective_bench: %s\n", error.what());
    _exit(1);
  }
  std::fflush(stdout);
  _exit(0);
}

// Runs the processes of one case. Returns false if a process failed or ran longer than its limit.
bool Run(const Case& work, const Flags& flags) {
  std::vector<pid_t> children;
  std::vector<PortReservation> ports;
  char store[] = "/tmp/collective_bench_XXXXXX";
  if (work.side == "in_process") {
    children.push_back(Fork(flags.limit_s, [&] { RunInOneProcess(work, flags); }));
  } else if (work.side == "grpc" || work.side == "grpc_alone") {
    std::vector<std::string> addresses;
    addresses.reserve(static_cast<size_t>(work.members));
    for (int i = 0; i < work.members; ++i) addresses.push_back(ports.emplace_back().Address());
    const ClusterSpec cluster({{"worker", addresses}});
    for (int i = 0; i < work.members; ++i) {
      children.push_back(Fork(flags.limit_s, [&, i] { RunOverGrpc(work, flags, cluster, i); }));
    }
  } else {
    if (mkdtemp(store) == nullptr) throw std::runtime_error("cannot make a folder in /tmp");
    for (int i = 0; i < work.members; ++i) {
      children.push_back(Fork(flags.limit_s, [&, i] {
        const auto rank = all_reduce::MakeGlooRank(work.algorithm, i, work.members, store);
        Measure(*rank, i, work);
      }));
    }
  }
  bool good = true;
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    good = good && status == 0;
  }
  if (work.side == "gloo") std::filesystem::remove_all(store);
  return good;
}

int Repeats(int64_t bytes, double effort) {
  const int usual = bytes == 0 ? 100 : bytes <= 1 << 16 ? 1000 : bytes <= 1 << 21 ? 300 : bytes <= 16 << 20 ? 60 : 12;
  return std::max(3, static_cast<int>(usual * effort));
}

void RunAll(const Flags& flags) {
  for (const int64_t members : flags.members) {
    for (const int64_t bytes : flags.bytes) {
      Case work;
      work.members = static_cast<int>(members);
      work.before = flags.before;
      work.counts = bytes == 0 ? std::vector<int64_t>{1024, 1 << 18, kNetworkBytes / 4} : std::vector{bytes / 4};
      work.repeats = Repeats(bytes, flags.effort);
      work.warmups = std::max(2, work.repeats / 10);
      for (const std::string& side : flags.sides) {
        work.side = side;
        const bool gloo = side == "gloo";
        for (const std::string& algorithm :
             gloo ? all_reduce::GlooAlgorithms() : std::vector<std::string>{flags.algorithm}) {
          work.algorithm = algorithm;
          if (Run(work, flags)) continue;
          if (!gloo) throw std::runtime_error(StrCat(side, " failed or ran longer than ", flags.limit_s, " s"));
          std::printf(
              "{\"side\": \"gloo\", \"algorithm\": \"%s\", \"members\": %d, \"bytes\": %ld, \"failed\": true}\n",
              algorithm.c_str(), work.members, static_cast<long>(bytes));
        }
      }
    }
  }
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

std::vector<int64_t> Numbers(const std::string& text) {
  std::vector<int64_t> numbers;
  for (const std::string& part : Split(text)) numbers.push_back(std::stoll(part));
  return numbers;
}

Flags Parse(int argc, char** argv) {
  Flags flags;
  const std::map<std::string, std::function<void(const std::string&)>> known = {
      {"--sides", [&](const std::string& v) { flags.sides = Split(v); }},
      {"--members", [&](const std::string& v) { flags.members = Numbers(v); }},
      {"--bytes", [&](const std::string& v) { flags.bytes = Numbers(v); }},
      {"--algorithm", [&](const std::string& v) { flags.algorithm = v; }},
      {"--before", [&](const std::string& v) { flags.before = std::stoll(v); }},
      {"--segment", [&](const std::string& v) { flags.segment = std::stoll(v); }},
      {"--effort", [&](const std::string& v) { flags.effort = std::stod(v); }},
      {"--limit_s", [&](const std::string& v) { flags.limit_s = static_cast<unsigned>(std::stoul(v)); }},
  };
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const size_t equals = std::min(arg.find('='), arg.size());
    const auto it = known.find(arg.substr(0, equals));
    if (it == known.end() || equals + 1 >= arg.size()) {
      const bool asked = arg == "--help" || arg == "-h";
      std::fprintf(
          asked ? stdout : stderr,
          "usage: collective_bench [--sides=in_process,grpc,grpc_alone,gloo] [--members=2,4] [--bytes=4096,...,0]\n"
          "         [--algorithm=NAME] [--segment=BYTES] [--before=BYTES] [--effort=1] [--limit_s=60]\n"
          "  --algorithm=NAME  auto, or a name of cohort/collective/algorithm.h, such as ring; an error lists all "
          "names\n"
          "  --bytes=0         measure a mix of sizes\n"
          "  --segment=BYTES   the largest message (default: chosen by what was measured)\n"
          "  --before=BYTES    first reduce so many bytes many times\n"
          "  --effort=FACTOR   multiply the number of repeats\n"
          "  --limit_s=N       end a figure that takes longer than N seconds\n");
      std::exit(asked ? 0 : 2);
    }
    it->second(arg.substr(equals + 1));
  }
  return flags;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    RegisterAll();
    RunAll(Parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collective_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
