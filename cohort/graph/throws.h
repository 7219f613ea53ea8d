// For tests: the message of the error that a call throws.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace cohort {

// The message, after a failure where nothing or something else than E is thrown.
template <typename E, typename Call>
std::string MessageOf(Call call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "another error was thrown: " << other.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace cohort
