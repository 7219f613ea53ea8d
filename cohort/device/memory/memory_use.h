// MemoryUse: how much of a device's memory the buffers of this process use.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace cohort {

// Counts the bytes of the buffers that lie in the memory of one logical device. All sessions and servers of the process
// share the counter of a device, which lives as long as the process. The allocator of a device that has memory of its
// own calls Add and Remove. Thread-safe.
class MemoryUse {
 public:
  // Returns the counter of the device, a name such as "GPU:0". The first call for a name makes it.
  static MemoryUse& Of(const std::string& device);
  // Returns the same, or null if no device of this name has been made.
  static MemoryUse* Find(const std::string& device);

  void Add(size_t bytes);
  void Remove(size_t bytes) { current_.fetch_sub(bytes, std::memory_order_relaxed); }
  size_t current() const { return current_.load(std::memory_order_relaxed); }
  // Returns the largest value of current() since the start or since the last call of ResetPeak.
  size_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void ResetPeak() { peak_.store(current(), std::memory_order_relaxed); }

 private:
  std::atomic<size_t> current_{0};
  std::atomic<size_t> peak_{0};
};

}  // namespace cohort
