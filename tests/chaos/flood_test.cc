// Floods: processes without the token connect to a parameter server and to a worker in every way that could use up
// their time, memory or descriptors. Training must go on, memory stays bounded, descriptors come back, and a new
// process can join during the flood. The attackers run in the test's process.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "cohort/cluster/grpc/socket.h"
#include "cohort/cluster/testing/test_certificates.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/count_entries.h"
#include "tests/chaos/counting_model.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kMostMemory = 64 * kMiB;  // that a task may take in addition
constexpr int kDescriptors = 1024;          // the usual limit of a process
constexpr int kIdle = 1200;

// A frame of HTTP/2.
std::string Http2Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame.push_back(static_cast<char>(payload.size() >> shift));
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  return frame + payload;
}

std::string Literal(const std::string& text) { return StrCat(std::string(1, static_cast<char>(text.size())), text); }

// The request of a gRPC stream: POST, http, path, authority, content type, te.
std::string OpenStream(uint32_t stream, const std::string& path) {
  return Http2Frame(1, 4, stream,
                    StrCat("\x83\x86\x04", Literal(path), "\x01", Literal("localhost"), "\x0f\x10",
                           Literal("application/grpc"), std::string(1, '\0'), Literal("te"), Literal("trailers")));
}

constexpr char kControl[] = "/cohort.Transport/Control";
const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2Frame(4, 0, 0, "");

// The beginning of a TLS handshake that does not go on.
std::string HeldTlsHello() { return std::string("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 11); }

// What one connection of an attacker sends.
std::string ManyStreams(const std::string& path) {
  std::string bytes = kPreface;
  for (uint32_t i = 0; i < 2000; ++i) bytes += OpenStream(2 * i + 1, path);
  return bytes;
}
std::string ManyResets() {
  std::string bytes = kPreface;
  for (uint32_t i = 0; i < 2000; ++i) {
    bytes += OpenStream(2 * i + 1, kControl) + Http2Frame(3, 0, 2 * i + 1, std::string("\0\0\0\x08", 4));
  }
  return bytes;
}
std::string LargeHello() {
  std::string bytes = kPreface + OpenStream(1, kControl);
  for (int i = 0; i < 256; ++i) bytes += Http2Frame(0, 0, 1, std::string(16384, 'h'));
  return bytes;
}
// The beginning of a message of the largest size, and of one that is too large.
std::string HeldHello() { return std::string("\0\x10\0\0", 4) + std::string(4000, '\x01'); }
std::string EndlessHello() { return std::string("\0\0\x40\0", 4) + std::string(4 * kMiB, '\x01'); }

Descriptor ConnectTo(const std::string& where) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(ParseAddress(where).port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Descriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{1, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));  // of connect and send
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return Descriptor();
  return fd;
}

void SendAll(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;  // the task has closed the connection, or reads nothing for a second
    at += static_cast<size_t>(sent);
  }
}

struct Attack {
  std::string name;
  std::function<std::string()> bytes;  // of each connection
  int held;                            // how many connections stay open until the end; 0: each is closed at once
  bool tls = false;                    // the tasks have certificates, and the attackers have none
};

std::ostream& operator<<(std::ostream& out, const Attack& attack) { return out << attack.name; }

// Attacks the addresses until it is destroyed. Once all connections that are held are there, opens one in a while.
class Attacker {
 public:
  Attacker(const Attack& attack, std::vector<std::string> addresses)
      : bytes_(attack.bytes()), held_(static_cast<size_t>(attack.held)), addresses_(std::move(addresses)) {
    for (const std::string& address : addresses_) threads_.emplace_back([this, address] { Run(address); });
  }
  ~Attacker() {
    end_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  int connections() const { return connections_; }

 private:
  void Run(const std::string& address) {
    std::vector<Descriptor> held;
    while (!end_) {
      Descriptor fd = ConnectTo(address);
      if (fd.get() >= 0) {
        ++connections_;
        SendAll(fd.get(), bytes_);
      }
      if (held_ == 0) continue;
      if (fd.get() >= 0) held.push_back(std::move(fd));
      if (held.size() < held_) continue;
      held.erase(held.begin());                                   // the task may have closed it
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // sets the rate of the attack; it waits for nothing
    }
  }
  const std::string bytes_;
  const size_t held_;
  const std::vector<std::string> addresses_;
  std::atomic<bool> end_{false};
  std::atomic<int> connections_{0};
  std::vector<std::thread> threads_;
};

int64_t MemoryOf(pid_t pid) {
  std::ifstream in(StrCat("/proc/", pid, "/status"));
  for (std::string word; in >> word;) {
    if (word != "VmRSS:") continue;
    int64_t kib = 0;
    in >> kib;
    return kib * 1024;
  }
  return 0;
}

int DescriptorsOf(pid_t pid) { return CountEntries(StrCat("/proc/", pid, "/fd").c_str()); }

class FloodTest : public ::testing::TestWithParam<Attack> {
 protected:
  void SetUp() override {
    UseTestToken();
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);  // for the attackers
    if (limit.rlim_max < 2 * kIdle + 200) GTEST_SKIP() << "the test may open only " << limit.rlim_max << " descriptors";
    if (!GetParam().tls) return;
    certificates_.emplace();
    for (const auto& [job, index] : {std::pair("ps", 0), std::pair("worker", 0), std::pair("worker", 1)}) {
      certificates_->For(job, index);
    }
    certificates_->For("client");
    setenv("COHORT_TLS_FOLDER", certificates_->folder().path().c_str(), 1);
  }
  void TearDown() override { unsetenv("COHORT_TLS_FOLDER"); }

  // Waits for `steps` more steps of worker 0. Returns how many there were a second.
  static double StepsPerSecond(ProcessCluster& cluster, int steps) {
    const auto start = std::chrono::steady_clock::now();
    const int before = cluster.CountLines("worker", 0, "acked");
    EXPECT_TRUE(cluster.WaitForLines("worker", 0, "acked", before + steps)) << cluster.Describe();
    const int made = cluster.CountLines("worker", 0, "acked") - before;
    return made / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  std::optional<TestCertificates> certificates_;
};

TEST_P(FloodTest, TrainingGoesOnAndNothingIsUsedUp) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  ProcessCluster::Surroundings usual;
  usual.in_child = [] {
    const rlimit limit{kDescriptors, kDescriptors};
    setrlimit(RLIMIT_NOFILE, &limit);
  };
  const Arguments flags = {"--silence_ms=4500", "--pause_ms=1", "--orphan_ms=0"};
  cluster.Start("ps", 0, flags, usual);
  cluster.Start("worker", 0, flags, usual);
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 200)) << cluster.Describe();
  const double usual_rate = StepsPerSecond(cluster, 1000);
  const std::vector<pid_t> tasks = {cluster.task("ps", 0).pid(), cluster.task("worker", 0).pid()};
  std::vector<int64_t> memory;
  std::vector<int> descriptors;
  for (const pid_t pid : tasks) {
    memory.push_back(MemoryOf(pid));
    descriptors.push_back(DescriptorsOf(pid));
  }
  {
    const Attacker attacker(GetParam(), {cluster.address("ps", 0), cluster.address("worker", 0)});
    const double rate = StepsPerSecond(cluster, 1000);
    std::printf("%.0f steps/s without the flood and %.0f steps/s with it: %.0f %%\n", usual_rate, rate,
                100 * rate / usual_rate);
    cluster.Start("worker", 1, flags, usual);
    EXPECT_TRUE(cluster.WaitForLines("worker", 1, "acked", 50)) << cluster.Describe();
    for (size_t i = 0; i < tasks.size(); ++i) {
      EXPECT_LE(MemoryOf(tasks[i]), memory[i] + kMostMemory) << "task " << i;
      EXPECT_LT(DescriptorsOf(tasks[i]), kDescriptors / 2) << "task " << i;
    }
    EXPECT_GE(attacker.connections(), GetParam().held > 0 ? GetParam().held : 10);
  }
  EXPECT_EQ(cluster.CountLines("worker", 0, "failed"), 0) << cluster.Describe();
  cluster.Kill("worker", 1);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  for (size_t i = 0; i < tasks.size(); ++i) {
    // The sockets of the attackers are closed; the tasks see it in their own time.
    while (DescriptorsOf(tasks[i]) > descriptors[i] && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_LE(DescriptorsOf(tasks[i]), descriptors[i]) << "task " << i;
    EXPECT_LE(MemoryOf(tasks[i]), memory[i] + kMostMemory) << "task " << i;
  }
  EXPECT_THAT(cluster.task("ps", 0).err(), ::testing::HasSubstr("refused a connection from 127.0.0.1:"));
  const int before = cluster.CountLines("worker", 0, "acked");
  EXPECT_TRUE(cluster.WaitForLines("worker", 0, "acked", before + 100)) << cluster.Describe();
  EXPECT_GE(ReadModel(cluster.spec()).global_step, before);
}

INSTANTIATE_TEST_SUITE_P(All, FloodTest,
                         ::testing::Values(Attack{"streams", [] { return ManyStreams(kControl); }, 0},
                                           Attack{"unknown_methods", [] { return ManyStreams("/no/such"); }, 0},
                                           Attack{"resets", ManyResets, 0}, Attack{"large_hellos", LargeHello, 0},
                                           Attack{"endless_hellos", EndlessHello, 0},
                                           Attack{"held_hellos", HeldHello, kIdle},
                                           Attack{"idle_connections", [] { return std::string(); }, kIdle},
                                           Attack{"streams_tls", [] { return ManyStreams(kControl); }, 0, true},
                                           Attack{"held_hellos_tls", HeldTlsHello, kIdle, true},
                                           Attack{"idle_connections_tls", [] { return std::string(); }, kIdle, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cohort::testing
