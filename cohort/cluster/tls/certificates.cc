#include "cohort/cluster/tls/certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "cohort/cluster/tls/openssl_internal.h"
#include "cohort/cluster/tls/subject.h"
#include "cohort/cluster/tls/tls_files.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr std::time_t kClockDifference = 3600;
constexpr std::time_t kDay = 24 * 3600;
constexpr size_t kSerialBytes = 16;
constexpr size_t kLongestCommonName = 64;  // a limit of X.509; nobody reads the name but people

// Throws if `ok` is false: OpenSSL fails here only if memory or random bits are missing.
void Require(bool ok, const char* what) {
  if (!ok) throw InternalError(StrCat("[tls] OpenSSL cannot ", what, ": ", TakeOpenSslErrors()));
}

KeyPtr NewKey() {
  KeyPtr key(EVP_EC_gen("P-256"));
  Require(key != nullptr, "make a key");
  return key;
}

template <typename Write>
std::string Pem(const Write& write) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  Require(out != nullptr && write(out.get()) == 1, "write PEM");
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

KeyedCertificate ToPem(X509& certificate, EVP_PKEY& key) {
  return {Pem([&](BIO* out) { return PEM_write_bio_X509(out, &certificate); }), Pem([&](BIO* out) {
            return PEM_write_bio_PKCS8PrivateKey(out, &key, nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

void AddExtension(X509& certificate, X509& issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  Require(extension != nullptr && X509_add_ext(&certificate, extension, -1) == 1, "add an extension");
  X509_EXTENSION_free(extension);
}

// Makes a certificate that has everything but extensions and a signature.
X509Ptr NewCertificate(const std::string& full_name, const X509_NAME* issuer, EVP_PKEY& key, const Validity& validity) {
  const std::string common_name = full_name.substr(0, kLongestCommonName);
  X509Ptr made(X509_new());
  Require(made != nullptr, "make a certificate");
  std::array<unsigned char, kSerialBytes> serial;
  Require(RAND_bytes(serial.data(), static_cast<int>(serial.size())) == 1, "give random bits");
  serial[0] &= 0x7f;  // serial numbers are positive
  BIGNUM* number = BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr);
  Require(number != nullptr && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(made.get())) != nullptr,
          "number a certificate");
  BN_free(number);
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_TIME_set(X509_getm_notBefore(made.get()), validity.from);
  ASN1_TIME_set(X509_getm_notAfter(made.get()), validity.until);
  X509_NAME* name = X509_get_subject_name(made.get());
  Require(
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(common_name.data()),
                                 static_cast<int>(common_name.size()), -1, 0) == 1,
      "name a certificate");
  X509_set_issuer_name(made.get(), issuer == nullptr ? name : issuer);
  X509_set_pubkey(made.get(), &key);
  return made;
}

std::time_t TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string AuthorityIn(X509& certificate, const std::string& file) {
  const std::vector<std::string> uris = UriNamesOf(certificate);
  const auto subject = uris.size() == 1 ? ParseSubject(uris[0]) : std::nullopt;
  if (!subject || !subject->task.empty() || X509_check_ca(&certificate) == 0) {
    throw InvalidArgumentError(StrCat("[tls] expected an authority that `cohort certificates` has made; got ",
                                      NameText(X509_get_subject_name(&certificate)), " in ", file));
  }
  return subject->job_id;
}

}  // namespace

struct CertificateAuthority::Parts {
  X509Ptr certificate;
  KeyPtr key;
};

Validity ValidForDays(int days) {
  const std::time_t now = std::time(nullptr);
  return {now - kClockDifference, now + days * kDay};
}

std::string NewJobId() {
  uint64_t bits = 0;
  Require(RAND_bytes(reinterpret_cast<unsigned char*>(&bits), sizeof(bits)) == 1, "give random bits");
  std::string id;
  for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[(bits >> shift) & 15];
  return id;
}

CertificateAuthority::CertificateAuthority(const std::string& job_id, const Validity& validity)
    : job_id_(job_id), parts_(std::make_unique<Parts>()) {
  const std::string uri = CertificateSubject{job_id, ""}.Uri();
  if (!ParseSubject(uri)) {
    throw InvalidArgumentError(
        StrCat("[tls] expected a job id of 1 to 64 letters, digits, '-', '_' and '.'; got '", job_id, "'"));
  }
  parts_->key = NewKey();
  parts_->certificate = NewCertificate(StrCat("Cohort job ", job_id), nullptr, *parts_->key, validity);
  X509& made = *parts_->certificate;
  AddExtension(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  AddExtension(made, made, NID_key_usage, "critical,keyCertSign,cRLSign");
  AddExtension(made, made, NID_subject_key_identifier, "hash");
  AddExtension(made, made, NID_subject_alt_name, "URI:" + uri);
  Require(X509_sign(&made, parts_->key.get(), EVP_sha256()) > 0, "sign a certificate");
  pem_ = ToPem(made, *parts_->key);
}

CertificateAuthority::CertificateAuthority(const std::string& ca_file, const std::string& key_file)
    : parts_(std::make_unique<Parts>()), pem_{ReadTlsFile(ca_file), ReadKeyFile(key_file)} {
  std::vector<X509Ptr> found = CertificatesIn(pem_.certificate);
  parts_->key = KeyIn(pem_.key);
  if (found.size() != 1) {
    throw InvalidArgumentError(StrCat("[tls] expected one certificate in ", ca_file, "; got ", found.size()));
  }
  if (parts_->key == nullptr) throw InvalidArgumentError(StrCat("[tls] ", key_file, " holds no private key"));
  parts_->certificate = std::move(found[0]);
  X509& certificate = *parts_->certificate;
  job_id_ = AuthorityIn(certificate, ca_file);
  if (X509_check_private_key(&certificate, parts_->key.get()) != 1) {
    throw FailedPreconditionError(StrCat("[tls] the key in ", key_file, " is not that of the authority in ", ca_file));
  }
  if (X509_cmp_current_time(X509_get0_notAfter(&certificate)) <= 0) {
    throw FailedPreconditionError(StrCat("[tls] the authority in ", ca_file, " expired on ",
                                         TimeText(X509_get0_notAfter(&certificate)),
                                         "; make new certificates in an empty folder"));
  }
}

CertificateAuthority::~CertificateAuthority() = default;
CertificateAuthority::CertificateAuthority(CertificateAuthority&&) noexcept = default;

KeyedCertificate CertificateAuthority::Issue(const std::string& subject, const Validity& validity) const {
  const std::string uri = CertificateSubject{job_id_, subject}.Uri();
  if (subject.empty() || !ParseSubject(uri)) {
    throw InvalidArgumentError(StrCat("[tls] expected a task such as /job:ps/replica:0/task:0; got '", subject, "'"));
  }
  X509& issuer = *parts_->certificate;
  const Validity shorter{validity.from, std::min(validity.until, TimeOf(X509_get0_notAfter(&issuer)))};
  const KeyPtr key = NewKey();
  const X509Ptr made = NewCertificate(subject, X509_get_subject_name(&issuer), *key, shorter);
  AddExtension(*made, issuer, NID_basic_constraints, "critical,CA:FALSE");
  AddExtension(*made, issuer, NID_key_usage, "critical,digitalSignature");
  AddExtension(*made, issuer, NID_ext_key_usage, subject == kClientSubject ? "clientAuth" : "serverAuth,clientAuth");
  AddExtension(*made, issuer, NID_subject_key_identifier, "hash");
  AddExtension(*made, issuer, NID_authority_key_identifier, "keyid:always");
  AddExtension(*made, issuer, NID_subject_alt_name, StrCat("URI:", uri, ",DNS:", kTlsServerName));
  Require(X509_sign(made.get(), parts_->key.get(), EVP_sha256()) > 0, "sign a certificate");
  return ToPem(*made, *key);
}

}  // namespace cohort
