// The program `cohort`. It finds the command of `cohort COMMAND [FLAGS]` and runs it.
#include <fcntl.h>

#include <exception>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "cohort/core/text/nearest_names.h"
#include "tools/cohort/command.h"

namespace cohort::tools {
namespace {

constexpr Command kCommands[] = {
    {"launch", "Start the tasks of a cluster on this machine", LaunchCommand},
    {"serve", "Run a task that only serves the sessions of other tasks", ServeCommand},
    {"certificates", "Make certificates for TLS between the tasks of a cluster on several hosts", CertificatesCommand},
    {"status", "Say what the tasks of a running cluster do", StatusCommand},
    {"top", "Show again and again what the tasks of a running cluster do", TopCommand},
    {"devices", "List the devices of this machine", DevicesCommand},
    {"inspect", "List the contents of a checkpoint, an event file or a TFRecord file", InspectCommand},
    {"version", "Print the version", VersionCommand},
};

void PrintHelp(std::ostream& out) {
  out << "Usage: cohort COMMAND [FLAGS]\n\nDistributed deep-learning training.\n\nCommands:\n";
  for (const Command& command : kCommands)
    out << "  " << std::left << std::setw(14) << command.name << command.summary << "\n";
  out << "\n'cohort COMMAND --help' describes a command.\n";
}

// Opens the descriptors 0 to 2 if they are closed. Otherwise a pipe could get one of these numbers, and output to
// stdout or stderr would go into the pipe.
void OpenStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return;
  }
}

int Run(const std::vector<std::string>& words) {
  if (words.empty()) {
    PrintHelp(std::cerr);
    return kUsageError;
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    PrintHelp(std::cout);
    return 0;
  }
  const std::string name = words[0] == "--version" ? "version" : words[0];
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run(SplitArguments({words.begin() + 1, words.end()}));
  }
  std::vector<std::string> known;
  for (const Command& command : kCommands) known.push_back(command.name);
  return UsageError("cohort", "there is no command '" + name + "'" + DidYouMean(name, known));
}

}  // namespace
}  // namespace cohort::tools

int main(int argc, char** argv) {
  cohort::tools::OpenStandardDescriptors();
  try {
    return cohort::tools::Run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::cerr << "cohort: " << e.what() << "\n";
    return 1;
  }
}
