#include "cohort/core/process/line_buffering.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace cohort {

void ApplyLineBuffering() {
  static std::once_flag looked;
  std::call_once(looked, [] {
    const char* wanted = std::getenv("COHORT_LINE_BUFFERED");
    if (wanted == nullptr || std::string_view(wanted) != "1") return;
    std::fflush(stdout);  // writes out what was printed before
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
  });
}

}  // namespace cohort
