#include <openssl/err.h>
#include <openssl/pem.h>

#include "cohort/cluster/tls/openssl_internal.h"

namespace cohort {
namespace {

BioPtr Reading(std::string_view text) { return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::string ContentsOf(BIO& memory) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(&memory, &bytes);
  return size <= 0 ? "" : std::string(bytes, static_cast<size_t>(size));
}

// Refuses keys with a password: OpenSSL would otherwise ask at the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

std::string TakeOpenSslErrors() {
  std::string all;
  while (const unsigned long error = ERR_get_error()) {
    char text[256];
    ERR_error_string_n(error, text, sizeof(text));
    all += (all.empty() ? "" : "; ") + std::string(text);
  }
  return all.empty() ? "no reason given" : all;
}

std::vector<X509Ptr> CertificatesIn(std::string_view pem) {
  std::vector<X509Ptr> found;
  const BioPtr in = Reading(pem);
  while (X509* certificate = PEM_read_bio_X509(in.get(), nullptr, NoPassword, nullptr)) found.emplace_back(certificate);
  const unsigned long last = ERR_peek_last_error();
  const bool at_end = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) found.clear();
  return found;
}

KeyPtr KeyIn(std::string_view pem) {
  const BioPtr in = Reading(pem);
  KeyPtr key(PEM_read_bio_PrivateKey(in.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return key;
}

std::vector<std::string> UriNamesOf(X509& certificate) {
  std::vector<std::string> uris;
  auto* names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  GENERAL_NAMES_free(names);
  ERR_clear_error();
  return uris;
}

std::string NameText(const X509_NAME* name) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_ONELINE & ~XN_FLAG_SPC_EQ & ~ASN1_STRFLGS_ESC_MSB);
  return ContentsOf(*out);
}

std::string TimeText(const ASN1_TIME* time) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(out.get(), time);
  return ContentsOf(*out);
}

}  // namespace cohort
