// Windows: memory that two processes of one host share. A large message is copied into the window by the sender and out
// of it by the receiver. Through a socket there would be four copies and many system calls. gRPC still carries the
// small frames that say which bytes are in the window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cohort {

// The default size of a window, which serves one direction of a connection. With 4 MiB instead, an all-reduce of 100 MB
// took a third longer if there were more processes than cores.
inline constexpr size_t kWindowBytes = 8 << 20;

// A mapped part of this process's address space, or nothing. The destructor unmaps it. It can be moved and not copied.
class Mapping {
 public:
  Mapping() = default;
  // Takes over memory that mmap has returned.
  Mapping(void* data, size_t size) : data_(static_cast<char*>(data)), size_(size) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

// The sender's side of a window. It hands out the memory in contiguous pieces, one behind the other, and begins again
// at the front when it has reached the end. The receiver gives pieces back in the order in which they were reserved. A
// GrpcConnection owns it; the destructor unmaps the memory. Not thread-safe.
class SendWindow {
 public:
  // Returns nullptr if the system cannot provide such memory. `bytes` must be at least 1. The system allocates each
  // page when it is first written.
  static std::unique_ptr<SendWindow> Make(size_t bytes = kWindowBytes);
  ~SendWindow();

  // Returns the bytes that the peer needs to open the window; docs/formats.md has the layout. The peer can use them
  // until CloseOffer is called.
  std::string Offer() const;
  // Closes the file descriptor by which the peer opens the window. The memory stays mapped. Must be called when the
  // peer has opened the window, or has answered that it cannot.
  void CloseOffer();

  // A piece of the window into which the caller may write.
  struct Room {
    char* data;
    size_t offset;  // offset of `data` in the window
    size_t size;
  };
  // Returns a piece of `size` bytes. Returns nullopt if no such piece is free; one may be free after GiveBack.
  // Requires: `size` is at least 1.
  std::optional<Room> Reserve(size_t size);
  // Frees the `count` oldest pieces, which the peer has read. Throws DataLossError if fewer are reserved.
  void GiveBack(uint64_t count);

 private:
  SendWindow(int fd, Mapping memory, uint64_t word);

  struct Reserved {
    size_t begin;
    size_t end;
  };
  int fd_;
  const Mapping memory_;  // a random word, which proves to the peer that it is the right memory, and then the window
  const uint64_t word_;
  std::deque<Reserved> reserved_;
};

// The receiver's side of a window. A GrpcConnection owns it. The object never changes, so all threads may use it. The
// destructor unmaps the memory.
class ReceiveWindow {
 public:
  // Opens the window that a peer of this host has offered. Returns nullptr if that is not possible: the peer belongs to
  // another user or is in another container, or the memory is not what the offer says. Throws DataLossError if the
  // bytes are not an offer.
  static std::unique_ptr<ReceiveWindow> Open(std::string_view offer);
  // Returns a view of the `size` bytes at `offset` in the window. The view is valid as long as this object. The peer
  // may change the bytes after their piece was given back. Throws DataLossError if the bytes lie outside of the window.
  std::string_view At(uint64_t offset, uint64_t size) const;
  size_t size() const;

 private:
  explicit ReceiveWindow(Mapping memory) : memory_(std::move(memory)) {}
  const Mapping memory_;
};

}  // namespace cohort
