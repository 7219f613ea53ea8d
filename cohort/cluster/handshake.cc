// Each message begins with its type. The transcript is all messages so far, each with its length before it, so that no
// two handshakes have the same transcript. A MAC is made over a label and the hash of the transcript. The labels differ
// by side and by purpose, so that no proof can be used as another one.
#include "cohort/cluster/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstdlib>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/local_address.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/wire.h"

namespace cohort {
namespace {

constexpr uint64_t kMagic = 0x0a74726f686f43;  // "Cohort", and the layout of the handshake: that of protocol 10
constexpr size_t kNonceBytes = 16;
constexpr size_t kProofBytes = 32;
constexpr size_t kStreamKeyBytes = 16;
constexpr size_t kLargestCluster = 16 << 20;
constexpr size_t kClusterPart = kLargestHandshakeMessage - 16;
// What an acceptor says of a bulk stream that is refused, whatever the reason.
constexpr char kNoSuchConnection[] =
    "[handshake] a bulk stream belongs to no connection of this process, or has a wrong proof";

enum class HandshakeMessage : uint64_t { kHello = 1, kNonce, kProof, kWelcome, kCluster, kRefusal };

std::string Start(HandshakeMessage type) { return std::string(1, static_cast<char>(type)); }

// Returns a reader behind the type. Throws DataLossError if the message has another type.
WireReader Expect(std::string_view message, HandshakeMessage type, const char* side) {
  WireReader in(message);
  const uint64_t got = in.Varint();
  if (got == static_cast<uint64_t>(type)) return in;
  throw DataLossError(StrCat("[handshake] expected message ", static_cast<uint64_t>(type), " of a handshake; got ", got,
                             " from the ", side));
}

std::string NewNonce() {
  std::string nonce(kNonceBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size())) != 1) {
    throw InternalError("[handshake] the system gives no random bytes");
  }
  return nonce;
}

std::string Sha256(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr) != 1) {
    throw InternalError("[handshake] SHA-256 failed");
  }
  return std::string(reinterpret_cast<char*>(digest), size);
}

// Returns HMAC-SHA256(key, label || 0 || SHA-256(transcript)).
std::string Mac(const std::string& key, std::string_view label, std::string_view transcript) {
  const std::string text = StrCat(label, std::string_view("\0", 1), Sha256(transcript));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), digest, &size) == nullptr) {
    throw InternalError("[handshake] HMAC-SHA256 failed");
  }
  return std::string(reinterpret_cast<char*>(digest), size);
}

std::string Label(std::string_view purpose, StreamRole role) {
  return StrCat("cohort ", role == StreamRole::kControl ? "control " : "bulk ", purpose);
}

bool Same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void AddTo(std::string* transcript, std::string_view message) {
  WireWriter out;
  out.String(message);
  transcript->append(out.view());
}

void PutIdentity(WireWriter& out, const TaskIdentity& identity) {
  out.Varint(static_cast<uint64_t>(identity.protocol_version));
  out.Fixed64(identity.op_fingerprint);
  out.Fixed64(identity.incarnation);
  out.String(identity.task);
  out.String(identity.address);
  out.String(identity.host);
  out.String(identity.cluster.empty() ? "" : Sha256(identity.cluster));
}

// `cluster_hash` is set to the hash of the cluster spec.
TaskIdentity GetIdentity(WireReader& in, std::string* cluster_hash) {
  TaskIdentity identity;
  identity.protocol_version = static_cast<int32_t>(in.Varint(INT32_MAX));
  identity.op_fingerprint = in.Fixed64();
  identity.incarnation = in.Fixed64();
  identity.task = in.String();
  identity.address = in.String();
  identity.host = in.String();
  *cluster_hash = in.String();
  return identity;
}

std::string NameOf(const TaskIdentity& peer) {
  return peer.address.empty() ? peer.task : StrCat(peer.task, " (", peer.address, ")");
}

[[noreturn]] void OtherToken(const std::string& peer) {
  throw PermissionDeniedError(StrCat("[handshake] ", peer,
                                     " has another job token; give all tasks of a job the "
                                     "same COHORT_TOKEN or COHORT_TOKEN_FILE, or, if neither is set, copy "
                                     "~/.config/cohort/token of one host to the host of each other task"));
}

StreamKeys KeysOf(const std::string& secret, StreamRole role, bool dialer) {
  std::string out = Mac(secret, Label("frames of the dialer", role), "").substr(0, kStreamKeyBytes);
  std::string back = Mac(secret, Label("frames of the acceptor", role), "").substr(0, kStreamKeyBytes);
  return dialer ? StreamKeys{std::move(out), std::move(back)} : StreamKeys{std::move(back), std::move(out)};
}

// Returns the port, or 0 if the text is not an address.
int PortOf(const std::string& address) {
  try {
    return ParseAddress(address).port;
  } catch (const InvalidArgumentError&) {
    return 0;
  }
}

}  // namespace

DialerHandshake::DialerHandshake(std::string token, const TaskIdentity& mine, const std::string& expected_task,
                                 const std::string& address)
    : role_(StreamRole::kControl),
      key_(std::move(token)),
      mine_(mine),
      expected_task_(expected_task),
      whom_(expected_task.empty() ? address : StrCat(expected_task, " (", address, ")")) {
  WireWriter out;
  out.Varint(static_cast<uint64_t>(HandshakeMessage::kHello));
  out.Fixed64(kMagic);
  out.Varint(static_cast<uint64_t>(role_));
  out.String(NewNonce());
  PutIdentity(out, mine);
  out.String(expected_task);
  out.String(address);
  hello_ = out.Take();
  if (hello_.size() > kLargestHandshakeMessage) {
    throw InvalidArgumentError(StrCat("[handshake] expected a hello of at most ", kLargestHandshakeMessage,
                                      " bytes; got ", hello_.size(), ": the task's name or an address is too long"));
  }
  AddTo(&transcript_, hello_);
}

DialerHandshake::DialerHandshake(const ConnectionSecret& connection, const TaskIdentity& peer)
    : role_(StreamRole::kBulk), key_(connection.key), whom_(NameOf(peer)), peer_(peer), connection_(connection) {
  WireWriter out;
  out.Varint(static_cast<uint64_t>(HandshakeMessage::kHello));
  out.Fixed64(kMagic);
  out.Varint(static_cast<uint64_t>(role_));
  out.String(NewNonce());
  out.Fixed64(connection.number);
  hello_ = out.Take();
  AddTo(&transcript_, hello_);
}

std::string DialerHandshake::OnMessage(std::string_view message) {
  if (!message.empty() && message.front() == static_cast<char>(HandshakeMessage::kRefusal)) {
    WireReader in = Expect(message, HandshakeMessage::kRefusal, "acceptor");
    const Status why = GetStatus(in);
    in.ExpectEnd();
    if (why.ok()) throw DataLossError("[handshake] a refusal without a reason");
    ThrowError(why.code(), StrCat(why.message(), " (refused by ", whom_, ")"));
  }
  switch (state_) {
    case State::kNonce: {
      WireReader in = Expect(message, HandshakeMessage::kNonce, "acceptor");
      if (in.View().size() != kNonceBytes) throw DataLossError("[handshake] a nonce has 16 bytes");
      in.ExpectEnd();
      AddTo(&transcript_, message);
      std::string proof = Start(HandshakeMessage::kProof) + Mac(key_, Label("proof of the dialer", role_), transcript_);
      AddTo(&transcript_, proof);
      state_ = State::kWelcome;
      return proof;
    }
    case State::kWelcome: OnWelcome(message); return "";
    case State::kCluster: OnCluster(message); return "";
    case State::kDone: break;
  }
  throw DataLossError("[handshake] a message after the last one");
}

void DialerHandshake::OnWelcome(std::string_view message) {
  WireReader in = Expect(message, HandshakeMessage::kWelcome, "acceptor");
  if (message.size() < kProofBytes) throw DataLossError("[handshake] a welcome is cut off");
  const std::string_view signed_part = message.substr(0, message.size() - kProofBytes);
  AddTo(&transcript_, signed_part);
  const std::string proof = Mac(key_, Label("proof of the acceptor", role_), transcript_);
  if (!Same(message.substr(signed_part.size()), proof)) {
    OtherToken(whom_);
  }
  const std::string secret = Mac(key_, Label("session", role_), transcript_);
  keys_ = KeysOf(secret, role_, true);
  if (role_ == StreamRole::kBulk) {
    state_ = State::kDone;
    return;
  }
  connection_.key = secret;
  connection_.number = in.Fixed64();
  peer_ = GetIdentity(in, &cluster_hash_);
  cluster_size_ = in.Varint(kLargestCluster);
  CheckCompatible(mine_, peer_, expected_task_);
  if (cluster_size_ == 0 && !cluster_hash_.empty()) {  // the acceptor has found that the two are equal
    if (cluster_hash_ != Sha256(mine_.cluster)) throw DataLossError("[handshake] the cluster spec does not follow");
    peer_.cluster = mine_.cluster;
  }
  state_ = cluster_size_ > 0 ? State::kCluster : State::kDone;
}

void DialerHandshake::OnCluster(std::string_view message) {
  WireReader in = Expect(message, HandshakeMessage::kCluster, "acceptor");
  const std::string_view part = in.Rest();
  if (part.empty() || part.size() > cluster_size_ - peer_.cluster.size()) {
    throw DataLossError(StrCat("[handshake] expected a cluster spec of ", cluster_size_, " bytes; got ",
                               peer_.cluster.size() + part.size()));
  }
  peer_.cluster.append(part);
  if (peer_.cluster.size() < cluster_size_) return;
  if (cluster_hash_ != Sha256(peer_.cluster)) throw DataLossError("[handshake] the cluster spec has another hash");
  state_ = State::kDone;
}

AcceptorHandshake::AcceptorHandshake(std::string token, FindConnection find)
    : token_(std::move(token)), find_(std::move(find)) {}

std::string AcceptorHandshake::OnMessage(std::string_view message) {
  if (state_ == State::kHello) return OnHello(message);
  if (state_ != State::kProof) throw DataLossError("[handshake] the dialer does not wait for its answer");
  OnProof(message);
  return "";
}

std::string AcceptorHandshake::OnHello(std::string_view message) {
  WireReader in = Expect(message, HandshakeMessage::kHello, "dialer");
  if (in.Fixed64() != kMagic) {
    throw DataLossError("[handshake] the dialer speaks another protocol; run the same release on all tasks");
  }
  const uint64_t role = in.Varint();
  if (role != static_cast<uint64_t>(StreamRole::kControl) && role != static_cast<uint64_t>(StreamRole::kBulk)) {
    throw DataLossError(StrCat("[handshake] expected role 1 or 2 of a stream; got ", role));
  }
  role_ = static_cast<StreamRole>(role);
  if (in.View().size() != kNonceBytes) throw DataLossError("[handshake] a nonce has 16 bytes");
  if (role_ == StreamRole::kControl) {
    peer_ = GetIdentity(in, &cluster_hash_);
    expected_task_ = in.String();
    dialed_address_ = in.String();
    key_ = token_;
  } else {
    const auto found = find_(in.Fixed64());
    // An unknown number gets a key that nobody has, and goes on, so that nobody can find numbers by trying.
    connection_ = found ? *found : ConnectionSecret{0, NewNonce() + NewNonce()};
    key_ = connection_.key;
  }
  in.ExpectEnd();
  AddTo(&transcript_, message);
  WireWriter out;
  out.Varint(static_cast<uint64_t>(HandshakeMessage::kNonce));
  out.String(NewNonce());
  AddTo(&transcript_, out.view());
  state_ = State::kProof;
  return out.Take();
}

void AcceptorHandshake::OnProof(std::string_view message) {
  WireReader in = Expect(message, HandshakeMessage::kProof, "dialer");
  if (!Same(in.Rest(), Mac(key_, Label("proof of the dialer", role_), transcript_))) {
    if (role_ == StreamRole::kBulk) throw PermissionDeniedError(kNoSuchConnection);
    OtherToken(NameOf(peer_));
  }
  AddTo(&transcript_, message);
  state_ = State::kProved;
}

std::vector<std::string> AcceptorHandshake::Welcome(const TaskIdentity& mine, int listening_port, uint64_t number) {
  CheckCompatible(mine, peer_, "");
  CheckCompatible(peer_, mine, expected_task_);
  const int dialed_port = PortOf(dialed_address_);
  if (dialed_port != listening_port && dialed_port != PortOf(mine.address)) {
    throw FailedPreconditionError(
        StrCat("[handshake] ", NameOf(peer_), " has dialed ", dialed_address_, " and has reached ", NameOf(mine),
               ", which listens on port ", listening_port,
               ": another process passes the connection on; if this is a tunnel of yours, let it listen on port ",
               listening_port, ", or give its address to the cluster spec, and name the local one ", kHowToBind));
  }
  WireWriter out;
  out.Varint(static_cast<uint64_t>(HandshakeMessage::kWelcome));
  out.Fixed64(number);
  PutIdentity(out, mine);
  const bool send_cluster = !mine.cluster.empty() && cluster_hash_ != Sha256(mine.cluster);
  out.Varint(send_cluster ? mine.cluster.size() : 0);
  AddTo(&transcript_, out.view());
  connection_ = {number, Mac(key_, Label("session", role_), transcript_)};
  keys_ = KeysOf(connection_.key, role_, false);
  if (!send_cluster) peer_.cluster = mine.cluster;
  std::vector<std::string> messages;
  messages.push_back(out.Take() + Mac(key_, Label("proof of the acceptor", role_), transcript_));
  for (size_t at = 0; send_cluster && at < mine.cluster.size(); at += kClusterPart) {
    messages.push_back(Start(HandshakeMessage::kCluster) + mine.cluster.substr(at, kClusterPart));
  }
  state_ = State::kDone;
  return messages;
}

std::string AcceptorHandshake::WelcomeBulk() {
  std::string welcome = Start(HandshakeMessage::kWelcome);
  AddTo(&transcript_, welcome);
  keys_ = KeysOf(Mac(key_, Label("session", role_), transcript_), role_, false);
  state_ = State::kDone;
  return welcome + Mac(key_, Label("proof of the acceptor", role_), transcript_);
}

std::string EncodeRefusal(const Status& why) {
  constexpr size_t kMostText = kLargestHandshakeMessage - 32;
  WireWriter out;
  out.Varint(static_cast<uint64_t>(HandshakeMessage::kRefusal));
  PutStatus(out, why.message().size() <= kMostText ? why : Status(why.code(), why.message().substr(0, kMostText)));
  return out.Take();
}

void CheckTokenLength(const std::string& token, bool allow_short) {
  if (token.size() >= kShortestToken || allow_short) return;
  const char* text = std::getenv("COHORT_ALLOW_SHORT_TOKEN");
  if (text != nullptr && std::string_view(text) == "1") return;
  throw InvalidArgumentError(StrCat("[token] expected a job token of at least ", kShortestToken, " characters; got ",
                                    token.size(),
                                    ", which can be guessed; take a random one, for example of `openssl rand -hex 16`, "
                                    "or set COHORT_ALLOW_SHORT_TOKEN=1 (allow_short_token in a program)"));
}

void CheckSameToken(const std::string& mine, const std::string& theirs, const TaskIdentity& peer) {
  if (!Same(mine, theirs)) OtherToken(NameOf(peer));
}

void CheckCompatible(const TaskIdentity& mine, const TaskIdentity& theirs, const std::string& expected_task) {
  if (theirs.protocol_version != mine.protocol_version) {
    throw FailedPreconditionError(StrCat("[handshake] ", NameOf(theirs), " speaks protocol version ",
                                         theirs.protocol_version, "; ", mine.task, " speaks version ",
                                         mine.protocol_version, ": run the same release on all tasks"));
  }
  const bool runs_graphs = theirs.op_fingerprint != 0 && mine.op_fingerprint != 0;
  if (runs_graphs && theirs.op_fingerprint != mine.op_fingerprint) {
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
