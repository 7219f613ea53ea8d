#include "cohort/cluster/grpc/tls.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <exception>
#include <utility>
#include <vector>

#include "cohort/cluster/tls/subject.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

namespace experimental = grpc::experimental;

using Judged = std::function<void(const CertificateVerdict&)>;

std::string_view View(const grpc::string_ref& text) { return {text.data(), text.size()}; }

// gRPC owns it, and calls it after each TLS handshake, on its own threads. ThreadSanitizer cannot see how gRPC orders
// these calls, so they meet at a mutex.
class Verifier final : public experimental::ExternalCertificateVerifier {
 public:
  Verifier(std::shared_ptr<const PeerCheck> check, PeerSide side, std::string expected_task, Judged judged)
      : check_(std::move(check)), side_(side), expected_task_(std::move(expected_task)), judged_(std::move(judged)) {
    Meet();
  }
  ~Verifier() override { Meet(); }

  bool Verify(experimental::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* result) override {
    Meet();
    try {
      const CertificateVerdict verdict =
          check_->Check(View(request->peer_cert()), View(request->peer_cert_full_chain()), side_, expected_task_);
      judged_(verdict);
      *result = verdict.fault == CertificateFault::kNone
                    ? grpc::Status::OK
                    : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, verdict.reason);
    } catch (const std::exception& e) {
      *result = grpc::Status(grpc::StatusCode::INTERNAL, e.what());
    }
    Meet();
    return true;
  }
  void Cancel(experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  void Meet() COHORT_EXCLUDES(mu_) { MutexLock lock(mu_); }

  const std::shared_ptr<const PeerCheck> check_;
  const PeerSide side_;
  const std::string expected_task_;
  const Judged judged_;
  Mutex mu_;
};

std::shared_ptr<experimental::CertificateProviderInterface> Provide(const TlsIdentity& identity) {
  return std::make_shared<experimental::StaticDataCertificateProvider>(
      identity.ca_pem, std::vector<experimental::IdentityKeyCertPair>{{identity.key_pem, identity.certificate_pem}});
}

}  // namespace

void DialedCertificate::Set(const CertificateVerdict& verdict) {
  MutexLock lock(mu_);
  seen_ = true;
  verdict_ = verdict;
}

std::string DialedCertificate::task() const {
  MutexLock lock(mu_);
  return verdict_.task;
}

Status DialedCertificate::Explain(const std::string& whom, const std::string& seen, const TlsOptions& own) const {
  MutexLock lock(mu_);
  const std::string failed = StrCat("[transport] TLS handshake failed with ", whom, ": ");
  if (seen_ && verdict_.fault != CertificateFault::kNone) {
    const bool other = verdict_.fault == CertificateFault::kOtherTask;
    return Status(other ? Code::kFailedPrecondition : Code::kPermissionDenied, failed + verdict_.reason);
  }
  if (seen_) {
    return Status(Code::kUnauthenticated,
                  StrCat(failed, "it has ended the connection after it had got the certificate of this side, ",
                         own.certificate_file, "; its log says why"));
  }
  // gRPC's text is all that tells a port without a listener from one without TLS.
  if (seen.find("andshak") == std::string::npos && seen.find("SSL") == std::string::npos) {
    return Status(Code::kUnavailable, StrCat("[transport] no connection to ", whom, ": ", seen));
  }
  return Status(Code::kUnauthenticated, StrCat(failed, "it does not speak TLS, or ended meanwhile (", seen,
                                               "); give all tasks of the job certificates, or none"));
}

GrpcTls::GrpcTls(std::shared_ptr<const TlsIdentity> identity)
    : identity_(std::move(identity)), check_(std::make_shared<PeerCheck>(*identity_)) {}

std::shared_ptr<grpc::ServerCredentials> GrpcTls::ForServer(Judged judged) const {
  experimental::TlsServerCredentialsOptions options(Provide(*identity_));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  // A peer without a certificate reaches the verifier, which can say so.
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(experimental::ExternalCertificateVerifier::Create<Verifier>(
      check_, PeerSide::kDialer, std::string(), std::move(judged)));
  options.set_check_call_host(false);
  return experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> GrpcTls::ForChannel(const std::string& expected_task,
                                                              std::shared_ptr<DialedCertificate> certificate) const {
  experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Provide(*identity_));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(false);  // the verifier does it
  options.set_check_call_host(false);
  options.set_certificate_verifier(experimental::ExternalCertificateVerifier::Create<Verifier>(
      check_, PeerSide::kAcceptor, expected_task,
      [certificate = std::move(certificate)](const CertificateVerdict& verdict) { certificate->Set(verdict); }));
  return experimental::TlsCredentials(options);
}

std::string CertifiedTask(const grpc::ServerContext& call) {
  const auto peer = call.auth_context();
  if (peer == nullptr) return "";
  const std::vector<grpc::string_ref> uris = peer->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME);
  if (uris.size() != 1) return "";
  const auto subject = ParseSubject(View(uris[0]));
  return subject ? subject->task : "";
}

std::string NetworkAddress(const std::string& grpc_peer) {
  std::string address = grpc_peer.substr(grpc_peer.find(':') + 1);
  for (const auto& [code, bracket] : {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    const size_t at = address.find(code);
    if (at != std::string::npos) address.replace(at, 3, bracket);
  }
  return address;
}

void CheckCertified(const std::string& certified, const TaskIdentity& peer) {
  if (MayBe(certified, peer.task)) return;
  throw PermissionDeniedError(StrCat("[transport] TLS handshake failed: the peer says that it is ", peer.task,
                                     "; its certificate is another task's: it is for ",
                                     certified.empty() ? "no task" : certified));
}

}  // namespace cohort
