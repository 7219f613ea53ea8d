// StopSignal: lets a training loop end in good order when this process gets SIGTERM, or SIGINT from Ctrl-C.
#pragma once

#include <functional>
#include <memory>

#include "cohort/core/export.h"

namespace cohort {

// While at least one object exists, SIGTERM and SIGINT (Ctrl-C) do not end this process: the first one calls the
// objects' functions. The loops that own them then finish their step, save and return. A second signal, of either kind,
// ends the process at once. So does the first one if the loops have not ended COHORT_STOP_GRACE seconds after it (60 by
// default): the process ends by SIGALRM. If the program has a handler for one of the signals of its own, or ignores it,
// the objects do nothing about it. Thread-safe.
class COHORT_EXPORT StopSignal {
 public:
  // `on_stop` is called at most once: on a thread of this class, or by this constructor if that thread has called the
  // other objects' functions before. It must not throw.
  explicit StopSignal(std::function<void()> on_stop);
  // Waits until a running call of `on_stop` has ended.
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Returns whether the process has got a signal while an object existed.
  static bool Received();
  // Returns the name of that signal for messages, "SIGTERM" or "SIGINT"; "SIGTERM" if there was none.
  static const char* Name();

 private:
  const std::function<void()> on_stop_;
};

}  // namespace cohort
