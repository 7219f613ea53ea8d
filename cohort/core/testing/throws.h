// MessageOf() and ErrorOf(): the errors that calls throw, for tests.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

#include "cohort/core/error.h"

namespace cohort {

// Returns the message of the E that `call` throws. If `call` throws nothing or a std::exception that is no E, fails the
// test and returns "".
template <typename E, typename Call>
std::string MessageOf(Call&& call) {
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

// Calls `call`. Returns "CodeName: message" if it throws an Error, only the message if it throws another exception, and
// "no error" if it throws nothing.
template <typename Call>
std::string ErrorOf(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(CodeName(error.code())) + ": " + error.what();
  } catch (const std::exception& other) {
    return other.what();
  }
  return "no error";
}

}  // namespace cohort
