#include "tools/cohort/output_mux.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "cohort/core/error.h"

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

TEST(LineSplitterTest, EveryCuttingGivesTheSameLines) {
  const std::string text = "one\n\ntwo three\nlast";
  for (size_t i = 0; i <= text.size(); ++i) {
    for (size_t j = i; j <= text.size(); ++j) {
      ASSERT_THAT(Split({text.substr(0, i), text.substr(i, j - i), text.substr(j)}),
                  ElementsAre("one", "", "two three", "last"));
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

// Runs `mux` until `done`, with its output read by a thread.
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
          for (size_t at = 0; at < all.size();) {  // in pieces that cut lines
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
  // Nobody reads: after some megabytes the mux has to stop reading too.
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
  close(out.read_fd);  // EPIPE (ignored signal): the rest is thrown away
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
  const std::string path = ::testing::TempDir() + "output_mux_test-" + std::to_string(getpid()) + ".log";
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
  std::filesystem::remove(path);
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
