#include "cohort/cluster/local_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The tests set COHORT_ALLOW_INSECURE; the fixture restores the value that the process had.
class LocalAddressTest : public ::testing::Test {
 protected:
  static constexpr char kVariable[] = "COHORT_ALLOW_INSECURE";

  void SetUp() override {
    const char* text = std::getenv(kVariable);
    if (text != nullptr) before_ = text;
    unsetenv(kVariable);
  }
  void TearDown() override {
    if (before_) {
      setenv(kVariable, before_->c_str(), 1);
    } else {
      unsetenv(kVariable);
    }
  }
  static std::string ErrorOf(const std::function<void()>& call) {
    try {
      call();
      return "no error";
    } catch (const Error& e) {
      return std::string(CodeName(e.code())) + ": " + e.what();
    }
  }
  // 192.0.2.0/24 is for documents: no machine has it.
  static std::string Dial(bool allow_insecure = false) {
    return ErrorOf([&] { CheckDialAddress({"192.0.2.7", 2222}, allow_insecure); });
  }
  static std::string ListenEverywhere(bool allow_insecure = false) {
    return ErrorOf([&] { CheckListenAddress({"0.0.0.0", 0}, allow_insecure); });
  }

 private:
  std::optional<std::string> before_;
};

TEST_F(LocalAddressTest, WithoutTheVariableTheErrorSaysWhatToDoOnWhichHost) {
  const auto told =
      AllOf(HasSubstr("PermissionDenied"), HasSubstr("COHORT_ALLOW_INSECURE=1"), HasSubstr("every other host"),
            HasSubstr("~/.config/cohort/token"), HasSubstr("COHORT_TOKEN_FILE"), HasSubstr("cohort certificates"),
            HasSubstr("allow_insecure"));
  EXPECT_THAT(Dial(), AllOf(told, HasSubstr("to connect to"), HasSubstr("got 192.0.2.7:2222"),
                            HasSubstr("on this host, on 192.0.2.7 and")));
  EXPECT_THAT(ListenEverywhere(), AllOf(told, HasSubstr("to listen on"), HasSubstr("got 0.0.0.0:0"),
                                        HasSubstr("on this host, 0.0.0.0, and")));
  for (const char* off : {"", "0", "false"}) {
    setenv(kVariable, off, 1);
    EXPECT_THAT(Dial(), told) << "'" << off << "'";
  }
}

TEST_F(LocalAddressTest, TheVariableAllowsWhatTheOptionAllows) {
  EXPECT_EQ(Dial(true), "no error");
  EXPECT_EQ(ListenEverywhere(true), "no error");
  for (const char* on : {"1", "true"}) {
    setenv(kVariable, on, 1);
    EXPECT_EQ(Dial(), "no error");
    EXPECT_EQ(ListenEverywhere(), "no error");
  }
}

TEST_F(LocalAddressTest, AnotherValueIsAnErrorThatShowsIt) {
  setenv(kVariable, "yes", 1);
  EXPECT_THAT(Dial(), AllOf(HasSubstr("InvalidArgument"), HasSubstr("COHORT_ALLOW_INSECURE"), HasSubstr("'yes'")));
  EXPECT_EQ(ErrorOf([] { CheckDialAddress({"127.0.0.1", 1}, true); }), "no error");  // nothing asks for the variable
}

}  // namespace
}  // namespace cohort
