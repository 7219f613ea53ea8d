#include "cohort/cluster/tls/peer_check.h"

#include <optional>
#include <utility>
#include <vector>

#include "cohort/cluster/tls/openssl_internal.h"
#include "cohort/cluster/tls/subject.h"
#include "cohort/cluster/tls/tls_files.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

using StorePtr = std::unique_ptr<X509_STORE, OpenSslFree<X509_STORE_free>>;
using ContextPtr = std::unique_ptr<X509_STORE_CTX, OpenSslFree<X509_STORE_CTX_free>>;

constexpr int kLongestChain = 8;

struct StackFree {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }  // the certificates have other owners
};
using StackPtr = std::unique_ptr<STACK_OF(X509), StackFree>;

struct ChainFault {
  int error = X509_V_OK;
  int depth = 0;
};

// Returns why the chain from `leaf` to an authority of the store is not good.
ChainFault VerifyChain(X509_STORE& store, X509& leaf, const std::vector<X509Ptr>& between, PeerSide side) {
  const StackPtr untrusted(sk_X509_new_null());
  for (const X509Ptr& certificate : between) sk_X509_push(untrusted.get(), certificate.get());
  const ContextPtr context(X509_STORE_CTX_new());
  if (untrusted == nullptr || context == nullptr ||
      X509_STORE_CTX_init(context.get(), &store, &leaf, untrusted.get()) != 1) {
    return {X509_V_ERR_OUT_OF_MEM};
  }
  X509_STORE_CTX_set_purpose(context.get(),
                             side == PeerSide::kAcceptor ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
  X509_VERIFY_PARAM_set_depth(X509_STORE_CTX_get0_param(context.get()), kLongestChain);
  const bool good = X509_verify_cert(context.get()) == 1;
  const ChainFault fault{good ? X509_V_OK : X509_STORE_CTX_get_error(context.get()),
                         X509_STORE_CTX_get_error_depth(context.get())};
  TakeOpenSslErrors();
  return fault;
}

std::string Describe(X509& certificate) {
  return StrCat("'", NameText(X509_get_subject_name(&certificate)), "', issued by '",
                NameText(X509_get_issuer_name(&certificate)), "'");
}

CertificateVerdict Fault(CertificateFault fault, std::string reason) {
  return {fault, StrCat("its certificate is ", FaultName(fault), ": ", reason), ""};
}

CertificateVerdict VerdictOn(const ChainFault& fault, X509& leaf, const std::string& ca_file) {
  const std::string whose = fault.depth == 0 ? "it" : "the authority's certificate";
  switch (fault.error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Fault(CertificateFault::kExpired,
                   StrCat(whose, " held until ", TimeText(X509_get0_notAfter(&leaf)), "; make new certificates"));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Fault(CertificateFault::kExpired, StrCat(whose, " holds only from ", TimeText(X509_get0_notBefore(&leaf)),
                                                      " on; compare the clocks of the two hosts"));
    case X509_V_ERR_INVALID_PURPOSE:
      return Fault(
          CertificateFault::kOtherTask,
          StrCat(Describe(leaf), " is not for this side of a connection: a client's does not do for a server"));
    default:
      return Fault(CertificateFault::kForeign, StrCat("no authority in ", ca_file, " has signed ", Describe(leaf), " (",
                                                      X509_verify_cert_error_string(fault.error), ")"));
  }
}

}  // namespace

std::string_view FaultName(CertificateFault fault) {
  switch (fault) {
    case CertificateFault::kNone: return "good";
    case CertificateFault::kMissing: return "missing";
    case CertificateFault::kForeign: return "foreign";
    case CertificateFault::kExpired: return "expired";
    case CertificateFault::kOtherTask: return "another task's";
  }
  return "";
}

struct PeerCheck::Parts {
  StorePtr store;
  std::string ca_file;
  std::string job_id;
  std::string certificate_pem;
  std::string task;
};

PeerCheck::PeerCheck(const TlsIdentity& own) : parts_(std::make_unique<Parts>()) {
  parts_->store.reset(X509_STORE_new());
  if (parts_->store == nullptr) throw InternalError("[tls] OpenSSL cannot make a store: " + TakeOpenSslErrors());
  for (const X509Ptr& authority : CertificatesIn(own.ca_pem)) {
    X509_STORE_add_cert(parts_->store.get(), authority.get());
  }
  // What the file names is trusted, also if another authority has signed it.
  X509_STORE_set_flags(parts_->store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  parts_->ca_file = own.files.ca_file;
  parts_->job_id = own.job_id;
  parts_->certificate_pem = own.certificate_pem;
  parts_->task = own.task;
}

PeerCheck::~PeerCheck() = default;

CertificateVerdict PeerCheck::Check(std::string_view certificate, std::string_view chain, PeerSide side,
                                    const std::string& expected_task) const {
  std::vector<X509Ptr> shown = CertificatesIn(certificate);
  if (shown.empty()) {
    return {CertificateFault::kMissing, "its certificate is missing: it has shown none", ""};
  }
  for (X509Ptr& between : CertificatesIn(chain)) shown.push_back(std::move(between));
  const X509Ptr leaf = std::move(shown.front());
  shown.erase(shown.begin());
  if (const ChainFault fault = VerifyChain(*parts_->store, *leaf, shown, side); fault.error != X509_V_OK) {
    const bool is_of_time = fault.error == X509_V_ERR_CERT_HAS_EXPIRED || fault.error == X509_V_ERR_CERT_NOT_YET_VALID;
    X509& at = is_of_time && fault.depth > 0 && static_cast<size_t>(fault.depth) <= shown.size()
                   ? *shown[static_cast<size_t>(fault.depth) - 1]
                   : *leaf;
    return VerdictOn(fault, at, parts_->ca_file);
  }
  const std::vector<std::string> uris = UriNamesOf(*leaf);
  const std::optional<CertificateSubject> subject = uris.size() == 1 ? ParseSubject(uris[0]) : std::nullopt;
  if (!subject || subject->task.empty()) {
    return Fault(CertificateFault::kOtherTask,
                 StrCat(Describe(*leaf), " names no task; expected one URI such as cohort://", parts_->job_id,
                        "/job:ps/replica:0/task:0"));
  }
  if (subject->job_id != parts_->job_id) {
    return Fault(CertificateFault::kForeign,
                 StrCat("it is for the job '", subject->job_id, "'; this is the job '", parts_->job_id, "'"));
  }
  if (!expected_task.empty() && !MayBe(subject->task, expected_task)) {
    return Fault(CertificateFault::kOtherTask, StrCat("it is for ", subject->task, "; expected ", expected_task));
  }
  return {CertificateFault::kNone, "", subject->task};
}

CertificateVerdict PeerCheck::CheckOwn() const {
  if (parts_->task != kClientSubject) {
    const CertificateVerdict verdict = Check(parts_->certificate_pem, "", PeerSide::kAcceptor, "");
    if (verdict.fault != CertificateFault::kNone) return verdict;
  }
  return Check(parts_->certificate_pem, "", PeerSide::kDialer, "");
}

}  // namespace cohort
