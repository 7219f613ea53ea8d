// Handshake: how the two sides of a new connection check each other: the token, the protocol version, the ops, and the
// task that was meant. The token itself is never sent. Each side proves that it has the token with HMAC-SHA256 over
// random numbers of both sides (nonces). The side that connects is the dialer, the other one is the acceptor.
#pragma once

#include <string>
#include <string_view>

#include "cohort/cluster/transport.h"

namespace cohort {

// The message that each side sends first.
struct Hello {
  TaskIdentity identity;
  std::string nonce;          // 16 random bytes
  std::string expected_task;  // the task that the dialer wants to reach; "" means any task
  std::string proof;          // the acceptor's proof; empty in the dialer's hello
};

std::string EncodeHello(const Hello& hello);
// Throws DataLossError if the bytes are not a hello.
Hello DecodeHello(std::string_view bytes);

// Returns 16 bytes from the system's random generator.
std::string NewNonce();
// Returns HMAC-SHA256(token, side || dialer's nonce || acceptor's nonce). `side` is "dial" or "accept".
std::string ProveToken(const std::string& token, std::string_view side, std::string_view dialer_nonce,
                       std::string_view acceptor_nonce);
// Throws PermissionDeniedError if the two are not equal. The message names the peer and says where tokens come from.
// The comparison takes the same time for all proofs of one length.
void CheckProof(const std::string& proof, const std::string& expected, const TaskIdentity& peer);
// Throws FailedPreconditionError, with the values of both sides, if protocol versions or ops differ, or if `theirs` is
// not `expected_task` ("" means any task).
void CheckCompatible(const TaskIdentity& mine, const TaskIdentity& theirs, const std::string& expected_task);

}  // namespace cohort
