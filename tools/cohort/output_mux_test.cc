// Tests LineSplitter first, and then OutputMux with pipes and with a pseudo-terminal: whole lines with prefixes, log
// files, slow and closed outputs, and lines that are overwritten after '\r'.
#include "tools/cohort/output_mux.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"

namespace cohort::tools {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Split(const std::vector<std::string>& reads) {
  LineSplitter splitter;
  std::vector<std::string> lines;
  const auto emit = [&](std::string_view line, bool complete) {
    lines.push_back(std::string(line) + (complete ? "" : "<cut>"));
  };
  for (const std::string& bytes : reads) splitter.Append(bytes, emit);
  splitter.Finish(emit);
  return lines;
}

TEST(LineSplitterTest, LinesAcrossReads) {
  EXPECT_THAT(Split({"a\nb", "c\n", "", "\n", "d"}), ElementsAre("a", "bc", "", "d"));
  EXPECT_TRUE(Split({}).empty());
  EXPECT_THAT(Split({"\n\n"}), ElementsAre("", ""));
  EXPECT_THAT(Split({std::string("x\0y\r\n\xff", 6)}), ElementsAre(std::string("x\0y\r", 4), "\xff"));
}

TEST(LineSplitterTest, LongLinesComeInPieces) {
  const size_t max = LineSplitter::kMaxLine;
  for (const size_t size : {max - 1, max}) {
    EXPECT_THAT(Split({std::string(size, 'a') + "\n"}), ElementsAre(std::string(size, 'a')));
    EXPECT_THAT(Split({std::string(size, 'a'), "\n"}), ElementsAre(std::string(size, 'a')));
  }
  EXPECT_THAT(Split({std::string(max + 1, 'a'), "\nb\n"}), ElementsAre(std::string(max, 'a') + "<cut>", "a", "b"));
  EXPECT_THAT(Split({std::string(max, 'a'), std::string(2 * max, 'b')}),
              ElementsAre(std::string(max, 'a') + "<cut>", std::string(max, 'b') + "<cut>", std::string(max, 'b')));
}

TEST(LineSplitterTest, OfALineThatIsWrittenAnewTheLastWritingIsKept) {
  EXPECT_THAT(Split({"\r1/2\r2/2\n"}), ElementsAre("2/2"));
  EXPECT_THAT(Split({"1/2\r2/2\r\nnext\r\n"}), ElementsAre("2/2\r", "next\r"));
  EXPECT_THAT(Split({"\r\n", "\r\r\n", "a\r\rb"}), ElementsAre("\r", "\r\r", "b"));
  EXPECT_THAT(Split({"at the end\r"}), ElementsAre("at the end\r"));
  // Text that was overwritten does not count, neither as text nor as length.
  const size_t max = LineSplitter::kMaxLine;
  EXPECT_THAT(Split({std::string(max, 'a') + "\rb\n"}), ElementsAre(std::string(max, 'a') + "<cut>", "b"));
  EXPECT_THAT(Split({std::string(max - 1, 'a') + "\r", std::string(max, 'b') + "\n"}),
              ElementsAre(std::string(max, 'b')));
}

TEST(LineSplitterTest, WhatIsSeenBeforeTheNewline) {
  LineSplitter splitter;
  const auto seen = [&](std::string_view bytes) {
    splitter.Append(bytes, [](std::string_view, bool) {});
    return splitter.rewritten() ? std::string(splitter.begun()) : "none";
  };
  EXPECT_EQ(seen("a prompt"), "none");
  EXPECT_EQ(seen("\n\r1"), "1");
  EXPECT_EQ(seen("/2"), "1/2");
  EXPECT_EQ(seen("\r"), "1/2");
  EXPECT_EQ(seen("2"), "2");
  EXPECT_EQ(seen("\nnext"), "none");
  EXPECT_EQ(seen("\r\r"), "next");
}

TEST(LineSplitterTest, BarsOfALongEpochTakeNoMemory) {
  LineSplitter splitter;
  const auto emit = [](std::string_view line, bool) { EXPECT_EQ(line, "end"); };
  const std::string bars = "\r1/2 [>.]\r2/2 [==]";
  for (size_t size = 0; size < 2 * LineSplitter::kMaxLine; size += bars.size()) splitter.Append(bars, emit);
  EXPECT_EQ(splitter.begun(), "2/2 [==]");
  splitter.Append("\rend\n", emit);
}

TEST(LineSplitterTest, EveryCuttingGivesTheSameLines) {
  const std::string text = "one\n\ntwo three\r\n\r1/2\r2/2\r\r\n4\r5\nlast";
  for (size_t i = 0; i <= text.size(); ++i) {
    for (size_t j = i; j <= text.size(); ++j) {
      ASSERT_THAT(Split({text.substr(0, i), text.substr(i, j - i), text.substr(j)}),
                  ElementsAre("one", "", "two three\r", "2/2\r\r", "5", "last"));
    }
  }
}

TEST(LinePrefixTest, ColoursDiffer) {
  EXPECT_EQ(LinePrefix("worker/0", 3, false), "[worker/0] ");
  EXPECT_EQ(LinePrefix("worker/0", 0, true), "\033[36m[worker/0]\033[0m ");
  EXPECT_NE(LinePrefix("ps/0", 0, true), LinePrefix("ps/0", 1, true));
}

struct Pipe {
  explicit Pipe(int flags = 0) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) std::abort();
    read_fd = fds[0];
    write_fd = fds[1];
    if (flags != 0) fcntl(read_fd, F_SETFL, flags);
  }
  int read_fd, write_fd;
};

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(count));
  return text;
}

void Step(OutputMux* mux) {
  std::vector<pollfd> entries;
  mux->AddPollEntries(&entries);
  poll(entries.data(), entries.size(), 1000);
  mux->HandleEvents(entries);
}

TEST(OutputMuxTest, LinesOfManyWritersStayWhole) {
  constexpr int kTasks = 6, kLines = 2000;
  Pipe out;
  std::string text;
  std::thread reader([&] { text = ReadAll(out.read_fd); });
  std::vector<std::thread> writers;
  {
    OutputMux mux(out.write_fd, out.write_fd, ColorMode::kNever);
    for (int t = 0; t < kTasks; ++t) {
      const size_t task = mux.AddTask("worker/" + std::to_string(t), "");
      for (const bool is_stderr : {false, true}) {
        Pipe pipe(O_NONBLOCK);
        mux.AddStream(task, is_stderr, pipe.read_fd);
        writers.emplace_back([t, is_stderr, fd = pipe.write_fd] {
          std::mt19937 random(static_cast<unsigned>(t * 2 + is_stderr));
          std::string all;
          for (int i = 0; i < kLines; ++i) {
            all += std::string(random() % 300, static_cast<char>('a' + t)) + (is_stderr ? "E" : "O") + "\n";
          }
          for (size_t at = 0; at < all.size();) {  // the pieces end inside lines
            const size_t size = std::min<size_t>(1 + random() % 500, all.size() - at);
            at += static_cast<size_t>(std::max<ssize_t>(0, write(fd, all.data() + at, size)));
          }
          close(fd);
        });
      }
    }
    std::vector<pollfd> entries;
    do {
      Step(&mux);
      entries.clear();
      mux.AddPollEntries(&entries);
    } while (!entries.empty());
    EXPECT_TRUE(mux.flushed());
  }
  for (auto& w : writers) w.join();
  close(out.write_fd);
  reader.join();
  std::istringstream lines(text);
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    ASSERT_THAT(line, ::testing::MatchesRegex("\\[worker/[0-5]\\] [a-f]*[EO]"));
    const char letter = static_cast<char>('a' + (line[8] - '0'));
    ASSERT_EQ(line.find_first_not_of(letter, 11), line.size() - 1) << line;
  }
  EXPECT_EQ(count, kTasks * 2 * kLines);
}

TEST(OutputMuxTest, AReaderThatWaitsHoldsTheWritersBack) {
  Pipe out, in(O_NONBLOCK);
  OutputMux mux(out.write_fd, out.write_fd, ColorMode::kNever);
  mux.AddStream(mux.AddTask("ps/0", ""), false, in.read_fd);
  fcntl(in.write_fd, F_SETFL, O_NONBLOCK);
  const std::string line = std::string(999, 'x') + "\n";
  size_t accepted = 0;
  // Nothing reads the output, so after some megabytes the mux has to stop reading, too.
  bool stopped = false;
  for (int i = 0; i < 100000 && !stopped; ++i) {
    const ssize_t count = write(in.write_fd, line.data(), line.size());
    if (count > 0) accepted += static_cast<size_t>(count);
    std::vector<pollfd> entries;
    mux.AddPollEntries(&entries);
    stopped = poll(entries.data(), entries.size(), 0) == 0;
    mux.HandleEvents(entries);
  }
  EXPECT_TRUE(stopped);
  EXPECT_LT(accepted, 8u << 20);
  close(in.write_fd);
  close(out.read_fd);  // the write fails with EPIPE, and the rest is dropped
  signal(SIGPIPE, SIG_IGN);
  mux.CloseStreams();
  EXPECT_TRUE(mux.flushed());
  close(out.write_fd);
}

TEST(OutputMuxTest, StdoutAndStderrApart) {
  Pipe out, err, task_out(O_NONBLOCK), task_err(O_NONBLOCK);
  {
    OutputMux mux(out.write_fd, err.write_fd, ColorMode::kAlways);
    const size_t task = mux.AddTask("ps/0", "");
    mux.AddStream(task, false, task_out.read_fd);
    mux.AddStream(task, true, task_err.read_fd);
    ASSERT_EQ(write(task_out.write_fd, "to out\nrest", 11), 11);
    ASSERT_EQ(write(task_err.write_fd, "to err\n", 7), 7);
    mux.DrainTask(task);
    mux.Say("hello");
    close(task_out.write_fd);
    close(task_err.write_fd);
    mux.CloseStreams();
    EXPECT_TRUE(mux.flushed());
  }
  close(out.write_fd);
  close(err.write_fd);
  EXPECT_EQ(ReadAll(out.read_fd), "\033[36m[ps/0]\033[0m to out\n\033[36m[ps/0]\033[0m rest\n");
  EXPECT_EQ(ReadAll(err.read_fd), "\033[36m[ps/0]\033[0m to err\ncohort launch: hello\n");
}

TEST(OutputMuxTest, LogFilesHaveTheBytesWithoutPrefix) {
  const testing::TempFolder folder;
  const std::string path = folder / "task.log";
  std::ofstream(path) << "from an earlier launch\n";
  Pipe out, in(O_NONBLOCK);
  const std::string big(LineSplitter::kMaxLine + 5, 'x');
  std::string text;
  std::thread reader([&] { text = ReadAll(out.read_fd); });
  {
    OutputMux mux(out.write_fd, out.write_fd, ColorMode::kNever);
    mux.AddStream(mux.AddTask("ps/0", path), false, in.read_fd);
    const std::string all = std::string("a\0b\n", 4) + big + "\nlast";
    std::thread writer([&] {
      EXPECT_EQ(write(in.write_fd, all.data(), all.size()), static_cast<ssize_t>(all.size()));
      close(in.write_fd);
    });
    std::vector<pollfd> entries;
    do {
      Step(&mux);
      entries.clear();
      mux.AddPollEntries(&entries);
    } while (!entries.empty());
    writer.join();
  }
  close(out.write_fd);
  reader.join();
  std::ostringstream file;
  file << std::ifstream(path).rdbuf();
  EXPECT_EQ(file.str(), std::string("a\0b\n", 4) + big + "\nlast\n");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST(OutputMuxTest, WhereThereIsNoTerminalALineIsPrintedAsItIsInTheEnd) {
  const testing::TempFolder folder;
  const std::string path = folder / "task.log";
  Pipe out, in(O_NONBLOCK);
  {
    OutputMux mux(out.write_fd, out.write_fd, ColorMode::kNever);
    EXPECT_FALSE(mux.shows_bars());
    const size_t task = mux.AddTask("ps/0", path);
    mux.AddStream(task, false, in.read_fd);
    for (const std::string bytes : {"\r1/2 [>.]", "\r2/2 [=", "=]\nplain\r", "\n\rend"}) {
      ASSERT_EQ(write(in.write_fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
      mux.DrainTask(task);
    }
    close(in.write_fd);
    mux.CloseStreams();
  }
  close(out.write_fd);
  EXPECT_EQ(ReadAll(out.read_fd), "[ps/0] 2/2 [==]\n[ps/0] plain\r\n[ps/0] end\n");
  std::ostringstream file;
  file << std::ifstream(path).rdbuf();
  EXPECT_EQ(file.str(), "2/2 [==]\nplain\r\nend\n");
}

// Returns the rows that a terminal shows of `bytes`. The terminal is wide enough for every row. Colours are ignored.
std::vector<std::string> Shown(const std::string& bytes) {
  std::vector<std::string> rows{""};
  size_t column = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\n') {
      rows.emplace_back();  // a new row below the cursor; the terminal driver adds the '\r'
    } else if (bytes[i] == '\r') {
      column = 0;
    } else if (bytes[i] == '\033') {
      i = bytes.find_first_of("Km", i);
      if (i < bytes.size() && bytes[i] == 'K') rows.back().resize(std::min(column, rows.back().size()));
    } else {
      rows.back().resize(std::max(rows.back().size(), column + 1), ' ');
      rows.back()[column++] = bytes[i];
    }
  }
  return rows;
}

// An OutputMux on a terminal, and tasks that write to it.
class TerminalMuxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TERM", "xterm", 1);
    terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_EQ(grantpt(terminal_) | unlockpt(terminal_), 0);
    fd_ = open(ptsname(terminal_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_GE(fd_, 0);
    Begin();
  }
  void TearDown() override {
    End();
    close(fd_);
    close(terminal_);
  }
  void Begin() { mux_ = std::make_unique<OutputMux>(fd_, fd_, ColorMode::kNever); }
  void End() {
    for (const int fd : tasks_) close(fd);
    tasks_.clear();
    mux_.reset();
  }
  void AddTask(const std::string& name) {
    Pipe pipe(O_NONBLOCK);
    mux_->AddStream(mux_->AddTask(name, ""), false, pipe.read_fd);
    tasks_.push_back(pipe.write_fd);
  }
  void SetColumns(unsigned short columns) {
    const winsize size{24, columns, 0, 0};
    ASSERT_EQ(ioctl(fd_, TIOCSWINSZ, &size), 0);
  }
  // Writes the task's `bytes`. Returns the bytes that the terminal got since the last Begin.
  const std::string& Write(size_t task, const std::string& bytes) {
    EXPECT_EQ(write(tasks_[task], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    if (!bytes.empty()) mux_->DrainTask(task);
    return Read();
  }
  const std::string& Read() {
    EXPECT_TRUE(mux_->flushed());
    EXPECT_EQ(write(fd_, "\a", 1), 1);  // this byte comes last
    char byte;
    pollfd entry{terminal_, POLLIN, 0};
    while (poll(&entry, 1, 60'000) == 1 && read(terminal_, &byte, 1) == 1 && byte != '\a') sent_.push_back(byte);
    return sent_;
  }
  void CloseStreams() {
    for (const int fd : tasks_) close(fd);
    tasks_.clear();
    mux_->CloseStreams();
  }

  int terminal_ = -1, fd_ = -1;
  std::unique_ptr<OutputMux> mux_;
  std::vector<int> tasks_;
  std::string sent_;
};

TEST_F(TerminalMuxTest, ALineThatIsWrittenAnewIsShownBelowTheOthers) {
  AddTask("w/0");
  AddTask("w/1");
  EXPECT_TRUE(mux_->shows_bars());
  EXPECT_THAT(Shown(Write(0, "one\n\r1/3 [>..]")), ElementsAre("[w/0] one", "[w/0] 1/3 [>..]"));
  EXPECT_THAT(Shown(Write(0, "\r2/3 [")), ElementsAre("[w/0] one", "[w/0] 2/3 ["));
  EXPECT_THAT(Shown(Write(0, "=>.]")), ElementsAre("[w/0] one", "[w/0] 2/3 [=>.]"));
  EXPECT_THAT(Shown(Write(1, "two\nno newline")), ElementsAre("[w/0] one", "[w/1] two", "[w/0] 2/3 [=>.]"));
  mux_->Say("hello");
  EXPECT_THAT(Shown(Read()), ElementsAre("[w/0] one", "[w/1] two", "cohort launch: hello", "[w/0] 2/3 [=>.]"));
  const size_t before = sent_.size();
  EXPECT_EQ(Write(0, "\r2/3 [=>.]").size(), before);  // it is drawn already
  EXPECT_THAT(Shown(Write(0, "\r3/3 [===]\nthree\n")),
              ElementsAre("[w/0] one", "[w/1] two", "cohort launch: hello", "[w/0] 3/3 [===]", "[w/0] three", ""));
  CloseStreams();
  EXPECT_THAT(Shown(Read()), ElementsAre("[w/0] one", "[w/1] two", "cohort launch: hello", "[w/0] 3/3 [===]",
                                         "[w/0] three", "[w/1] no newline", ""));
}

TEST_F(TerminalMuxTest, OfSeveralTheOneThatChangedLast) {
  for (const char* name : {"w/0", "w/1", "w/2"}) AddTask(name);
  EXPECT_THAT(Shown(Write(0, "\r1/9")), ElementsAre("[w/0] 1/9"));
  EXPECT_THAT(Shown(Write(1, "\r2/9")), ElementsAre("[w/1] 2/9"));
  EXPECT_THAT(Shown(Write(2, "\r3/9")), ElementsAre("[w/2] 3/9"));
  EXPECT_THAT(Shown(Write(0, "\r4/9")), ElementsAre("[w/0] 4/9"));
  EXPECT_THAT(Shown(Write(0, "\r9/9\n")), ElementsAre("[w/0] 9/9", "[w/2] 3/9"));
  EXPECT_THAT(Shown(Write(1, "\n")), ElementsAre("[w/0] 9/9", "[w/1] 2/9", "[w/2] 3/9"));
  CloseStreams();
  EXPECT_THAT(Shown(Read()), ElementsAre("[w/0] 9/9", "[w/1] 2/9", "[w/2] 3/9", ""));
}

TEST_F(TerminalMuxTest, EveryCuttingShowsTheSameInTheEnd) {
  const std::string text = "one\r\n\r1/2 [>.] 3s\r2/2 [==]\n\ntwo\rthree\r\n\rlast";
  for (size_t cut = 0; cut <= text.size() + 1; ++cut) {
    if (cut > 0) Begin();
    sent_.clear();
    AddTask("w/0");
    if (cut <= text.size()) {
      Write(0, text.substr(0, cut));
      Write(0, text.substr(cut));
    } else {
      for (const char byte : text) Write(0, std::string(1, byte));
    }
    CloseStreams();
    ASSERT_THAT(Shown(Read()), ElementsAre("[w/0] one", "[w/0] 2/2 [==]", "[w/0] ", "[w/0] three", "[w/0] last", ""));
    End();
  }
}

TEST_F(TerminalMuxTest, AnUnfinishedLineIsCutToTheTerminalsWidth) {
  AddTask("w/0");
  const std::string bar = "1/2 " + std::string(100, '=');
  SetColumns(30);
  EXPECT_THAT(Shown(Write(0, "\r" + bar)), ElementsAre("[w/0] 1/2 " + std::string(19, '=')));
  SetColumns(12);  // the user makes the window smaller
  EXPECT_THAT(Shown(Write(0, "=")), ElementsAre("[w/0] 1/2 ="));
  EXPECT_THAT(Shown(Write(0, "\n")), ElementsAre("[w/0] " + bar + "=", ""));
}

TEST(OutputMuxTest, AFileThatCannotBeWrittenIsNamed) {
  OutputMux mux(STDOUT_FILENO, STDERR_FILENO, ColorMode::kNever);
  try {
    mux.AddTask("ps/0", "/nowhere/ps-0.log");
    FAIL();
  } catch (const UnavailableError& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("/nowhere/ps-0.log; got: No such file"));
  }
}

}  // namespace
}  // namespace cohort::tools
