// Kernels of ops/lookup.h: hashes, vocabularies and buckets.
#include "cohort/ops/lookup.h"

#include <farmhash.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

// How many elements of a cheap loop one table look-up or hash is worth, so that small tensors stay on one thread.
constexpr int64_t kWorkOfElement = 16;

class HashFastKernel final : public OpKernel {
 public:
  explicit HashFastKernel(const KernelConstruction& c)
      : buckets_(static_cast<uint64_t>(c.attr<int64_t>("num_buckets"))) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    Tensor& out = ctx.AllocateOutput(0, x.shape());
    const std::string* from = x.data<std::string>();
    int64_t* to = out.data<int64_t>();
    cpu::ForBlocks(
        x.num_elements(), ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            to[i] = static_cast<int64_t>(util::Fingerprint64(from[i].data(), from[i].size()) % buckets_);
          }
        },
        kWorkOfElement);
  }

 private:
  const uint64_t buckets_;
};

// One use of OpenSSL's SipHash-2-4 with a result of 8 bytes. For one thread.
class SipHash {
 public:
  explicit SipHash(const std::array<uint8_t, 16>& key) : key_(key) {
    mac_.reset(EVP_MAC_fetch(nullptr, "SIPHASH", nullptr));
    if (mac_ != nullptr) context_.reset(EVP_MAC_CTX_new(mac_.get()));
    if (context_ == nullptr) throw InternalError("[backends/cpu] this build of OpenSSL has no SipHash");
  }
  uint64_t operator()(const std::string& text) {
    size_t size = 8;
    const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_size_t("size", &size), OSSL_PARAM_construct_end()};
    std::array<uint8_t, 8> bytes = {};
    size_t written = 0;
    if (EVP_MAC_init(context_.get(), key_.data(), key_.size(), parameters) != 1 ||
        EVP_MAC_update(context_.get(), reinterpret_cast<const uint8_t*>(text.data()), text.size()) != 1 ||
        EVP_MAC_final(context_.get(), bytes.data(), &written, bytes.size()) != 1 || written != bytes.size()) {
      throw InternalError("[backends/cpu] OpenSSL's SipHash failed");
    }
    uint64_t hash = 0;  // little-endian
    for (size_t i = bytes.size(); i-- > 0;) hash = hash << 8 | bytes[i];
    return hash;
  }

 private:
  struct Free {
    void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
  };
  const std::array<uint8_t, 16> key_;
  std::unique_ptr<EVP_MAC, Free> mac_;
  std::unique_ptr<EVP_MAC_CTX, Free> context_;
};

class HashStrongKernel final : public OpKernel {
 public:
  explicit HashStrongKernel(const KernelConstruction& c)
      : buckets_(static_cast<uint64_t>(c.attr<int64_t>("num_buckets"))) {
    const auto& key = c.attr<std::vector<int64_t>>("key");
    if (key.size() != 2) throw InvalidArgumentError(StrCat("expected a key of two numbers; got ", key.size()));
    for (size_t i = 0; i < key_.size(); ++i) {  // little-endian
      key_[i] = static_cast<uint8_t>(static_cast<uint64_t>(key[i / 8]) >> (8 * (i % 8)));
    }
  }
  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    Tensor& out = ctx.AllocateOutput(0, x.shape());
    const std::string* from = x.data<std::string>();
    int64_t* to = out.data<int64_t>();
    SipHash hash(key_);
    for (int64_t i = 0; i < x.num_elements(); ++i) to[i] = static_cast<int64_t>(hash(from[i]) % buckets_);
  }

 private:
  const uint64_t buckets_;
  std::array<uint8_t, 16> key_ = {};
};

void AsString(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  Tensor& out = ctx.AllocateOutput(0, x.shape());
  std::string* to = out.data<std::string>();
  if (x.dtype() == DType::kBool) {
    const bool* from = x.data<bool>();
    for (int64_t i = 0; i < x.num_elements(); ++i) to[i] = from[i] ? "true" : "false";
    return;
  }
  cpu::ForAllNumbers(x.dtype(), "AsString", [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      const T* from = x.data<T>();
      for (int64_t i = 0; i < x.num_elements(); ++i) to[i] = std::to_string(from[i]);
    }
    return 0;
  });
}

// The place of each entry of a vocabulary. Open addressing over the places; the entries stay in the tensor.
template <typename T>
class VocabularyKernel final : public OpKernel {
 public:
  explicit VocabularyKernel(const KernelConstruction& c)
      : vocabulary_(c.attr<Tensor>("vocabulary")),
        default_value_(c.attr<bool>("fail_unknown") ? kUnknown : c.attr<int64_t>("default_value")),
        fail_unknown_(c.attr<bool>("fail_unknown")),
        slots_(std::bit_ceil(static_cast<size_t>(2 * vocabulary_.num_elements() + 2)), kEmpty) {
    ops::CheckVocabulary(vocabulary_);  // a graph from elsewhere may have any
    const T* entries = vocabulary_.data<T>();
    for (int64_t i = 0; i < vocabulary_.num_elements(); ++i) slots_[SlotOf(entries[i])] = i;
  }
  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    Tensor& out = ctx.AllocateOutput(0, x.shape());
    const T* from = x.data<T>();
    int64_t* to = out.data<int64_t>();
    const auto find = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t place = slots_[SlotOf(from[i])];
        to[i] = place == kEmpty ? default_value_ : place;
      }
    };
    cpu::ForBlocks(x.num_elements(), ctx.num_threads(), find, kWorkOfElement);
    if (!fail_unknown_) return;
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      if (to[i] != kUnknown) continue;
      throw InvalidArgumentError(StrCat("expected values of the vocabulary, which has ", vocabulary_.num_elements(),
                                        " entries; element ", i, " is \"", from[i], "\""));
    }
  }

 private:
  static constexpr int64_t kEmpty = -1;
  static constexpr int64_t kUnknown = -1;  // the default value if unknown values are errors

  // Returns the slot that has the value, or the empty slot where it belongs.
  size_t SlotOf(const T& value) const {
    const T* entries = vocabulary_.data<T>();
    const size_t mask = slots_.size() - 1;
    size_t at = (std::hash<T>()(value) * 0x9e3779b97f4a7c15u) >> 17 & mask;  // std::hash of an integer is the integer
    while (slots_[at] != kEmpty && !(entries[slots_[at]] == value)) at = (at + 1) & mask;
    return at;
  }

  const Tensor vocabulary_;
  const int64_t default_value_;
  const bool fail_unknown_;
  std::vector<int64_t> slots_;  // a power of two, at most half of them taken
};

class BucketizeKernel final : public OpKernel {
 public:
  explicit BucketizeKernel(const KernelConstruction& c) : boundaries_(c.attr<std::vector<float>>("boundaries")) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    Tensor& out = ctx.AllocateOutput(0, x.shape());
    int32_t* to = out.data<int32_t>();
    cpu::ForNumbers(x.dtype(), "Bucketize", [&]<typename T>(T) {
      if constexpr (!std::is_same_v<T, bfloat16>) Fill(x.data<T>(), x.num_elements(), ctx.num_threads(), to);
      return 0;
    });
  }

 private:
  template <typename T>
  void Fill(const T* from, int64_t n, int threads, int32_t* to) const {
    const auto fill = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto above = std::upper_bound(boundaries_.begin(), boundaries_.end(), from[i]);
        to[i] = static_cast<int32_t>(above - boundaries_.begin());
      }
    };
    cpu::ForBlocks(n, threads, fill, kWorkOfElement);
  }

  const std::vector<float> boundaries_;
};

template <typename T, typename Index>
void Search(const Tensor& sequence, const Tensor& values, bool right, Tensor& out) {
  const int64_t n = sequence.shape().dim(1), m = values.shape().dim(1);
  const T* from = values.data<T>();
  Index* to = out.data<Index>();
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const T* begin = sequence.data<T>() + i / m * n;
    const T* place = right ? std::upper_bound(begin, begin + n, from[i]) : std::lower_bound(begin, begin + n, from[i]);
    to[i] = static_cast<Index>(place - begin);
  }
}

void SearchSorted(KernelContext& ctx) {
  const Tensor &sequence = ctx.input(0), &values = ctx.input(1);
  if (sequence.shape().rank() != 2 || values.shape().rank() != 2 || sequence.shape().dim(0) != values.shape().dim(0)) {
    throw InvalidArgumentError(
        StrCat("expected matrices with equal numbers of rows; got shapes ", sequence.shape(), " and ", values.shape()));
  }
  Tensor& out = ctx.AllocateOutput(0, values.shape());
  const bool right = ctx.node().op_name() == "UpperBound";
  cpu::ForNumbers(values.dtype(), "LowerBound", [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, bfloat16>) {
      if (out.dtype() == DType::kInt32) {
        Search<T, int32_t>(sequence, values, right, out);
      } else {
        Search<T, int64_t>(sequence, values, right, out);
      }
    }
    return 0;
  });
}

}  // namespace

void RegisterLookupKernels(KernelRegistry& registry) {
  registry.Register<HashFastKernel>("StringToHashBucketFast", "CPU");
  registry.Register<HashStrongKernel>("StringToHashBucketStrong", "CPU");
  registry.RegisterFn("AsString", "CPU", AsString);
  registry.Register("VocabularyLookup", "CPU", [](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    if (c.node.input(0).dtype() == DType::kString) return std::make_unique<VocabularyKernel<std::string>>(c);
    return std::make_unique<VocabularyKernel<int64_t>>(c);
  });
  registry.Register<BucketizeKernel>("Bucketize", "CPU");
  registry.RegisterFn("LowerBound", "CPU", SearchSorted);
  registry.RegisterFn("UpperBound", "CPU", SearchSorted);
}

}  // namespace cohort
