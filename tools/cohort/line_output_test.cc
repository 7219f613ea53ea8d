#include "tools/cohort/line_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>

namespace cohort::tools {
namespace {

TEST(CutToColumnsTest, CharactersAndColours) {
  EXPECT_EQ(CutToColumns("", 3), "");
  EXPECT_EQ(CutToColumns("abc", 3), "abc");
  EXPECT_EQ(CutToColumns("abcd", 3), "abc");
  EXPECT_EQ(CutToColumns("abcd", 0), "");
  EXPECT_EQ(CutToColumns("\033[1;32mab\033[0m", 2), "\033[1;32mab\033[0m");
  EXPECT_EQ(CutToColumns("\033[32mabc\033[0m", 2), "\033[32mab\033[0m");
  EXPECT_EQ(CutToColumns("━━━\u00e9", 2), "━━");
  EXPECT_EQ(CutToColumns("━━\u00e9", 3), "━━\u00e9");
}

TEST(CutToColumnsTest, WhatMovesTheCursorIsLeftOut) {
  EXPECT_EQ(CutToColumns("a\tb\bc\x7f\033[2Kd\033[Ae\0337f\u0085g", 80), "a bcdefg");
  EXPECT_EQ(CutToColumns("a\033", 80), "a");
  EXPECT_EQ(CutToColumns("a\033[3", 80), "a");
  EXPECT_EQ(CutToColumns("ab\xe2\x94", 80), "ab");  // "━" without its last byte
  EXPECT_EQ(CutToColumns("a\xff\x80"
                         "b\xe2"
                         "c",
                         80),
            "abc");
}

TEST(LineOutputTest, NothingIsDrawnWhereThereIsNoTerminal) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  LineOutput output(fds[1]);
  EXPECT_FALSE(output.draws());
  output.Write("bar");
  output.PrintLine("a ", "line");
  output.Write("bar");
  char text[64];
  EXPECT_EQ(std::string(text, static_cast<size_t>(read(fds[0], text, sizeof(text)))), "a line\n");
  close(fds[0]);
  close(fds[1]);
}

TEST(LineOutputTest, ATerminalThatTakesNothingGetsTheNewestDrawingLater) {
  setenv("TERM", "xterm", 1);
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_EQ(grantpt(terminal) | unlockpt(terminal), 0);
  const int fd = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  LineOutput output(fd);
  EXPECT_TRUE(output.draws());
  for (int i = 0; i < 100'000; ++i) {
    output.Write("bar " + std::to_string(i));
    ASSERT_LT(output.sink().pending(), 100u);
  }
  std::string text;
  char buffer[4096];
  pollfd entry{terminal, POLLIN, 0};
  for (int i = 0; i < 1000 && text.find("bar 99999\033[K") == std::string::npos; ++i) {
    if (poll(&entry, 1, 100) == 1) {
      const ssize_t count = read(terminal, buffer, sizeof(buffer));
      ASSERT_GT(count, 0);
      text.append(buffer, static_cast<size_t>(count));
    }
    output.Write("bar 99999");
  }
  EXPECT_NE(text.find("\rbar 99999\033[K"), std::string::npos);
  EXPECT_EQ(text.find("bar 99998"), std::string::npos);
  close(fd);
  close(terminal);
}

}  // namespace
}  // namespace cohort::tools
