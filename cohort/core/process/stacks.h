// The stacks of the threads of this process.
#pragma once

#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

namespace cohort {

// What one thread does at a moment.
struct ThreadStack {
  int thread = 0;    // the system's number of the thread; that of the main thread is the number of the process
  std::string name;  // as SetThreadName has set it, or the program's name
  // The functions, the innermost first: "cohort::ThreadPool::Loop()", or "0x55d0c0ffee in libfoo.so" if there is no
  // symbol. Empty if the thread did not answer.
  std::vector<std::string> frames;
  std::string why_not;  // if the thread did not answer: "it blocks signals"
  // Whether the thread waits for work, as far as its functions show: it is in a loop of Cohort or in a library, and in
  // a function of the system that waits.
  bool idle = false;
};

// Returns the stacks of all threads. Sends each thread a signal, whose handler takes the stack, also of a thread that
// never returns from a function. A thread that blocks signals does not answer. Waits at most `limit` for all threads
// together. The signal is a real-time signal that had no handler when the function was first called; the handler stays
// from then on. A call of the system that a signal interrupts, such as poll, may return EINTR, as for any signal. One
// thread at a time takes stacks; others wait for it. Thread-safe.
std::vector<ThreadStack> ThreadStacks(std::chrono::milliseconds limit = std::chrono::seconds(2));

// Returns the stacks as text, one line for each frame. Threads with equal stacks share one entry.
std::string DescribeStacks(const std::vector<ThreadStack>& stacks);

// Returns the system's number of the calling thread. After the first call of a thread it costs a few instructions.
inline int ThisThread() {
  static thread_local int number = 0;
  if (number == 0) number = gettid();
  return number;
}

}  // namespace cohort
