// For tests: the errors that calls throw.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

#include "cohort/core/error.h"

namespace cohort {

// The message of the E that `call` throws; a failure of the test where nothing or something else is thrown.
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

// How `call` ends: "CodeName: message" of the Error that it throws, the message alone of another exception, or
// "no error".
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
