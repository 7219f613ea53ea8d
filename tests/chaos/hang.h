// Lets the code of a training under test hang, as a user's code may.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "cohort/core/file.h"

namespace cohort::testing {

// If the file exists and holds the name of this task ("worker/1"), removes it, prints "hangs", and waits for ever. The
// process that replaces this one finds no file.
inline void HangIfAsked(const std::string& file, const std::string& task) {
  if (file.empty() || !FileExists(file) || ReadFile(file) != task) return;
  RemoveFile(file);
  std::printf("hangs\n");
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace cohort::testing
