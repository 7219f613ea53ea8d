// MACs of frames: each frame of a stream without TLS ends with 16 bytes that only a holder of the stream's key can
// make. They cover the whole frame and its place in the stream. So a frame that was changed, left out, repeated or
// moved is found by the receiver.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <string>

#include "cohort/cluster/handshake.h"

struct evp_cipher_ctx_st;

namespace cohort {

inline constexpr size_t kMacBytes = 16;

// The MACs of one direction of a stream: AES-128-GCM without a text to encrypt (GMAC), with the number of the frame as
// the nonce. Not thread-safe.
class FrameMac {
 public:
  // `key` has 16 bytes, and is used for this direction of this stream alone.
  explicit FrameMac(const std::string& key);
  // Appends the MAC of the next frame.
  void Seal(grpc::ByteBuffer* frame);
  // Removes the MAC of the next frame. Throws DataLossError if the frame is not the one that the peer has sealed next.
  void Open(grpc::ByteBuffer* frame);

 private:
  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  void Begin();
  void Add(const void* data, size_t size);
  void End(unsigned char* mac);

  std::unique_ptr<evp_cipher_ctx_st, Free> context_;
  uint64_t next_ = 0;  // the number of the next frame
};

// Both directions of a stream. One thread may send while another one receives.
struct StreamMacs {
  explicit StreamMacs(const StreamKeys& keys) : send(keys.send), receive(keys.receive) {}
  FrameMac send;
  FrameMac receive;
};

}  // namespace cohort
