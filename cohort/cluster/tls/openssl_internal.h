// Owners of OpenSSL's objects, and what several sources do with them.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

template <auto kFree>
struct OpenSslFree {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using BioPtr = std::unique_ptr<BIO, OpenSslFree<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, OpenSslFree<X509_free>>;

// Returns the texts of OpenSSL's errors on this thread, and forgets the errors.
std::string TakeOpenSslErrors();
// Returns the certificates in `pem`, in their order. What is not a certificate is skipped. Returns none if there is
// none, or if one of them is damaged.
std::vector<X509Ptr> CertificatesIn(std::string_view pem);
// Returns null if the text holds no private key without a password.
KeyPtr KeyIn(std::string_view pem);
// Returns the URIs among the certificate's subject alternative names.
std::vector<std::string> UriNamesOf(X509& certificate);
// Returns for example "CN=Cohort job 12ab".
std::string NameText(const X509_NAME* name);
// Returns for example "Nov 24 06:00:00 2026 GMT".
std::string TimeText(const ASN1_TIME* time);

}  // namespace cohort
