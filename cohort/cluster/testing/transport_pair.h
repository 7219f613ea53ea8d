// The kinds of transports that tests run on, and a pair of tasks that are connected.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/testing/recording_handler.h"
#include "cohort/cluster/testing/test_certificates.h"
#include "cohort/cluster/transport.h"

namespace cohort::testing {

// A kind of transport, and how it is set up.
struct Variant {
  std::string name;
  std::string protocol;
  int network_threads = 0;
  bool share_memory = true;
  bool tls = false;
};

inline std::ostream& operator<<(std::ostream& out, const Variant& variant) { return out << variant.name; }

// Returns every kind, each as it is used.
inline std::vector<Variant> Variants() {
  std::vector<Variant> variants;
  for (const std::string& protocol : TransportProtocols()) variants.push_back({protocol, protocol});
  variants.push_back({"grpc_with_4_threads", "grpc", 4});  // as on larger machines
  variants.push_back({"grpc_alone", "grpc", 0, false});    // as between hosts
  variants.push_back({"grpc_tls", "grpc", 0, true, true});
  variants.push_back({"grpc_tls_alone", "grpc", 0, false, true});
  return variants;
}

// The certificates of one job, for the variants with TLS.
struct JobCertificates {
  const TestCertificates job;
  const TlsOptions ps = job.For("ps");
  const TlsOptions worker = job.For("worker");
};

inline const JobCertificates& Certificates() {
  static const JobCertificates made;
  return made;
}

// A ps that listens and a worker that has dialed it.
class Pair {
 public:
  Pair(std::unique_ptr<Transport> ps, RecordingHandler& at_ps, std::unique_ptr<Transport> worker)
      : ps_(std::move(ps)), worker_(std::move(worker)), port_(ps_->Listen("127.0.0.1:0")) {
    ps_->SetIdentity(Identity("/job:ps/replica:0/task:0", address()));
    worker_->SetIdentity(Identity("/job:worker/replica:0/task:0"));
    dialed_ = worker_->Dial(address(), "/job:ps/replica:0/task:0", Soon());
    accepted_ = at_ps.Accepted();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  Transport& ps() { return *ps_; }
  Transport& worker() { return *worker_; }
  const std::shared_ptr<Connection>& dialed() const { return dialed_; }
  const std::shared_ptr<Connection>& accepted() const { return accepted_; }

 private:
  std::unique_ptr<Transport> ps_;
  std::unique_ptr<Transport> worker_;
  int port_;
  std::shared_ptr<Connection> dialed_;
  std::shared_ptr<Connection> accepted_;
};

}  // namespace cohort::testing
