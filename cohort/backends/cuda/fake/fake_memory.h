// The memory of a FakeDriver, which is memory of the host. For tests only.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <new>

namespace cohort::cuda {

// The value of every byte of memory that nobody has written: floats are then NaN.
inline constexpr unsigned char kFakePoison = 0xff;
inline constexpr std::align_val_t kFakeAlignment{256};

// Pinned memory and arguments of kernels, which a card and its host share. Returns poisoned memory, or null if there is
// not enough.
inline void* NewFakeMemory(size_t bytes) {
  void* data = ::operator new(bytes, kFakeAlignment, std::nothrow);
  if (data != nullptr) std::memset(data, kFakePoison, bytes);
  return data;
}
inline void DeleteFakeMemory(void* data) { ::operator delete(data, kFakeAlignment); }

// Returns whether one of the blocks, which are sizes by address, has all of these bytes.
inline bool Contains(const std::map<void*, size_t>& blocks, const void* data, size_t bytes) {
  auto after = blocks.upper_bound(const_cast<void*>(data));
  if (after == blocks.begin()) return false;
  const auto& [begin, size] = *--after;
  return static_cast<const char*>(data) + bytes <= static_cast<const char*>(begin) + size;
}

// The memory of a card. A thread of the host that reads or writes it ends the process with a line that says so, as it
// would end on a machine with a card. This needs memory protection keys (pkeys(7)), which most processors for servers
// have; on others such a mistake is not seen. A page behind the memory cannot be touched by anybody. Returns poisoned
// memory, or null if there is not enough.
void* NewCardMemory(size_t bytes);
// `bytes` are those of NewCardMemory.
void DeleteCardMemory(void* data, size_t bytes);
// Whether memory of a card is kept from threads of the host on this machine.
bool CardMemoryIsGuarded();
// Makes this thread one of a card's. Threads that it starts are, too.
void BecomeThreadOfCard();
// While it lives, a test may look into memory of a card on the thread that made it, as into the fake's own state.
class CardMemoryAccess {
 public:
  CardMemoryAccess();
  ~CardMemoryAccess();
  CardMemoryAccess(const CardMemoryAccess&) = delete;

 private:
  const int before_;  // the rights of the thread
};

}  // namespace cohort::cuda
