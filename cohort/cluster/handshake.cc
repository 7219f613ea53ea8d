#include "cohort/cluster/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "cohort/core/str_cat.h"
#include "cohort/core/wire.h"

namespace cohort {
namespace {

constexpr uint64_t kMagic = 0x74726f686f43;  // "Cohort"
constexpr size_t kNonceBytes = 16;

std::string NameOf(const TaskIdentity& peer) {
  return peer.address.empty() ? peer.task : StrCat(peer.task, " (", peer.address, ")");
}

}  // namespace

std::string EncodeHello(const Hello& hello) {
  WireWriter out;
  out.Fixed64(kMagic);
  out.Varint(static_cast<uint64_t>(hello.identity.protocol_version));
  out.Fixed64(hello.identity.op_fingerprint);
  out.Fixed64(hello.identity.incarnation);
  out.String(hello.identity.task);
  out.String(hello.identity.address);
  out.String(hello.identity.cluster);
  out.String(hello.nonce);
  out.String(hello.expected_task);
  out.String(hello.proof);
  out.String(hello.identity.host);
  return out.Take();
}

Hello DecodeHello(std::string_view bytes) {
  WireReader in(bytes);
  if (in.Fixed64() != kMagic) throw DataLossError("[handshake] the peer does not speak Cohort's protocol");
  Hello hello;
  hello.identity.protocol_version = static_cast<int32_t>(in.Varint(INT32_MAX));
  hello.identity.op_fingerprint = in.Fixed64();
  hello.identity.incarnation = in.Fixed64();
  hello.identity.task = in.String();
  hello.identity.address = in.String();
  hello.identity.cluster = in.String();
  hello.nonce = in.String();
  hello.expected_task = in.String();
  hello.proof = in.String();
  if (!in.AtEnd()) hello.identity.host = in.String();  // absent before version 5
  // Newer versions may have more fields. CheckCompatible then reports the different versions.
  if (hello.nonce.size() != kNonceBytes) throw DataLossError("[handshake] a nonce has 16 bytes");
  return hello;
}

std::string NewNonce() {
  std::string nonce(kNonceBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size())) != 1) {
    throw InternalError("[handshake] the system gives no random bytes");
  }
  return nonce;
}

std::string ProveToken(const std::string& token, std::string_view side, std::string_view dialer_nonce,
                       std::string_view acceptor_nonce) {
  const std::string text = StrCat(side, dialer_nonce, acceptor_nonce);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size) == nullptr) {
    throw InternalError("[handshake] HMAC-SHA256 failed");
  }
  return std::string(reinterpret_cast<char*>(digest), size);
}

void CheckProof(const std::string& proof, const std::string& expected, const TaskIdentity& peer) {
  if (proof.size() == expected.size() && CRYPTO_memcmp(proof.data(), expected.data(), proof.size()) == 0) return;
  throw PermissionDeniedError(StrCat("[handshake] ", NameOf(peer),
                                     " has another job token; give all tasks of a job the "
                                     "same COHORT_TOKEN or COHORT_TOKEN_FILE, or, if neither is set, copy "
                                     "~/.config/cohort/token of one host to the host of each other task"));
}

void CheckCompatible(const TaskIdentity& mine, const TaskIdentity& theirs, const std::string& expected_task) {
  if (theirs.protocol_version != mine.protocol_version) {
    throw FailedPreconditionError(StrCat("[handshake] ", NameOf(theirs), " speaks protocol version ",
                                         theirs.protocol_version, "; ", mine.task, " speaks version ",
                                         mine.protocol_version, ": run the same release on all tasks"));
  }
  if (theirs.op_fingerprint != mine.op_fingerprint) {
    throw FailedPreconditionError(StrCat("[handshake] ", NameOf(theirs), " knows other ops (registry ", std::hex,
                                         theirs.op_fingerprint, ") than ", mine.task, " (registry ",
                                         mine.op_fingerprint, "): run the same build on all tasks"));
  }
  if (!expected_task.empty() && theirs.task != expected_task) {
    throw FailedPreconditionError(StrCat("[handshake] expected ", expected_task, " at ", theirs.address, "; there is ",
                                         theirs.task, ": the tasks were started with different cluster specs"));
  }
}

}  // namespace cohort
