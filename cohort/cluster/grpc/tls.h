// TLS of the transport over gRPC: credentials that show this task's certificate and check the peer's. gRPC makes the
// TLS handshake; OpenSSL's own check is off, so that PeerCheck makes it and can say what is wrong.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "cohort/cluster/tls/peer_check.h"
#include "cohort/cluster/tls/tls_files.h"
#include "cohort/cluster/transport.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"

namespace cohort {

// What one dialed connection has seen of the peer's certificate. Thread-safe.
class DialedCertificate {
 public:
  void Set(const CertificateVerdict& verdict) COHORT_EXCLUDES(mu_);
  // Returns whom the peer's certificate is for, or "" if no good certificate has come yet.
  std::string task() const COHORT_EXCLUDES(mu_);
  // Returns the error of a connection that has ended before the peer has sent a byte through it. `seen` is gRPC's
  // reason. `whom` names the peer. The code is
  // - kFailedPrecondition if the certificate is another task's, and kPermissionDenied if it is not good for another
  //   reason;
  // - kUnauthenticated if the peer has ended the connection during or after the TLS handshake. It has refused this
  //   side's certificate, or it has no TLS, or it has ended;
  // - kUnavailable if no process listens there.
  Status Explain(const std::string& whom, const std::string& seen, const TlsOptions& own) const COHORT_EXCLUDES(mu_);

 private:
  mutable Mutex mu_;
  bool seen_ COHORT_GUARDED_BY(mu_) = false;
  CertificateVerdict verdict_ COHORT_GUARDED_BY(mu_);
};

// The certificate of this process and the check of its peers. The transport owns it. Thread-safe.
class GrpcTls {
 public:
  explicit GrpcTls(std::shared_ptr<const TlsIdentity> identity);

  const TlsIdentity& identity() const { return *identity_; }
  // Returns credentials for one listening port. gRPC calls `judged` on its threads, for each peer that makes the TLS
  // handshake, and ends the connection afterwards if the verdict is a fault. `judged` may be called for some time after
  // the server's end.
  std::shared_ptr<grpc::ServerCredentials> ForServer(std::function<void(const CertificateVerdict&)> judged) const;
  // Returns credentials for one dialed connection, to `expected_task` ("" means any task). The verdict is put into
  // `certificate`.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(const std::string& expected_task,
                                                       std::shared_ptr<DialedCertificate> certificate) const;

 private:
  const std::shared_ptr<const TlsIdentity> identity_;
  const std::shared_ptr<const PeerCheck> check_;
};

// Returns whom the certificate of an accepted call is for, or "" if the call came without TLS.
std::string CertifiedTask(const grpc::ServerContext& call);
// Returns "127.0.0.1:40012" or "[::1]:40012" for gRPC's "ipv4:127.0.0.1:40012" or "ipv6:%5B::1%5D:40012".
std::string NetworkAddress(const std::string& grpc_peer);
// Throws PermissionDeniedError if a process with a certificate for `certified` may not be the task that it says it is.
void CheckCertified(const std::string& certified, const TaskIdentity& peer);

}  // namespace cohort
