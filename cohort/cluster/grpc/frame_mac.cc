#include "cohort/cluster/grpc/frame_mac.h"

#include <grpcpp/support/slice.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr size_t kGcmNonceBytes = 12;

void CheckCipher(int result) {
  if (result != 1) throw InternalError("[frame] AES-128-GCM failed");
}

// The slices of a frame. They are released when the scope ends, and the vector keeps its memory.
class ScopedSlices {
 public:
  explicit ScopedSlices(const grpc::ByteBuffer& frame) : slices_(Memory()) {
    slices_.clear();
    if (!frame.Dump(&slices_).ok()) throw DataLossError("[frame] a frame cannot be read");
  }
  ~ScopedSlices() { slices_.clear(); }
  ScopedSlices(const ScopedSlices&) = delete;
  ScopedSlices& operator=(const ScopedSlices&) = delete;
  std::vector<grpc::Slice>& operator*() { return slices_; }

 private:
  static std::vector<grpc::Slice>& Memory() {
    thread_local std::vector<grpc::Slice> slices;
    return slices;
  }
  std::vector<grpc::Slice>& slices_;
};

}  // namespace

void FrameMac::Free::operator()(evp_cipher_ctx_st* context) const { EVP_CIPHER_CTX_free(context); }

FrameMac::FrameMac(const std::string& key) : context_(EVP_CIPHER_CTX_new()) {
  if (context_ == nullptr || key.size() != 16) throw InternalError("[frame] AES-128-GCM failed");
  CheckCipher(EVP_EncryptInit_ex(context_.get(), EVP_aes_128_gcm(), nullptr,
                                 reinterpret_cast<const unsigned char*>(key.data()), nullptr));
}

void FrameMac::Begin() {
  unsigned char nonce[kGcmNonceBytes] = {};
  for (size_t i = 0; i < sizeof(next_); ++i) nonce[i] = static_cast<unsigned char>(next_ >> (8 * i));
  CheckCipher(EVP_EncryptInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce));
}

void FrameMac::Add(const void* data, size_t size) {
  if (size == 0) return;
  int unused = 0;
  CheckCipher(EVP_EncryptUpdate(context_.get(), nullptr, &unused, static_cast<const unsigned char*>(data),
                                static_cast<int>(size)));
}

void FrameMac::End(unsigned char* mac) {
  int unused = 0;
  unsigned char nothing[EVP_MAX_BLOCK_LENGTH];
  CheckCipher(EVP_EncryptFinal_ex(context_.get(), nothing, &unused));
  CheckCipher(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kMacBytes, mac));
  ++next_;
}

void FrameMac::Seal(grpc::ByteBuffer* frame) {
  ScopedSlices slices(*frame);
  Begin();
  for (const grpc::Slice& slice : *slices) Add(slice.begin(), slice.size());
  unsigned char mac[kMacBytes];
  End(mac);
  (*slices).emplace_back(mac, kMacBytes);
  grpc::ByteBuffer sealed((*slices).data(), (*slices).size());
  frame->Swap(&sealed);
}

void FrameMac::Open(grpc::ByteBuffer* frame) {
  const size_t size = frame->Length();
  if (size <= kMacBytes) {
    throw DataLossError(StrCat("[frame] expected at least 1 byte and a MAC of ", kMacBytes, " bytes; got ", size,
                               " bytes in frame ", next_, " of the stream"));
  }
  ScopedSlices slices(*frame);
  Begin();
  unsigned char theirs[kMacBytes];
  size_t left = size - kMacBytes;  // before the MAC
  size_t copied = 0;               // of the MAC
  size_t kept = 0;                 // slices before the MAC
  for (grpc::Slice& slice : *slices) {
    const size_t part = std::min(left, slice.size());
    Add(slice.begin(), part);
    left -= part;
    std::memcpy(theirs + copied, slice.begin() + part, slice.size() - part);
    copied += slice.size() - part;
    if (part > 0) (*slices)[kept++] = part < slice.size() ? slice.sub(0, part) : slice;
  }
  unsigned char ours[kMacBytes];
  End(ours);
  if (CRYPTO_memcmp(ours, theirs, kMacBytes) != 0) {
    throw DataLossError(StrCat("[frame] frame ", next_ - 1, " of the stream, of ", size,
                               " bytes, has a wrong MAC: it was changed, left out, repeated or moved on its way"));
  }
  grpc::ByteBuffer opened((*slices).data(), kept);
  frame->Swap(&opened);
}

}  // namespace cohort
