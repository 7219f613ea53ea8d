// The subcommands of `cohort`. To add a subcommand, write <name>_command.cc with its run function, and add a line here
// and a line in main.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cohort::tools {

// The words after the subcommand's name. Flags are spelt --snake_case here. The user may write dashes instead.
struct Arguments {
  std::vector<std::string> flags;  // the words before the first "--", or all words
  std::vector<std::string> rest;   // the words after it, unchanged
  bool has_rest = false;           // whether there was a "--"
};

struct Command {
  const char* name;
  const char* summary;                     // one line, for `cohort --help`
  int (*run)(const Arguments& arguments);  // returns the exit code
};

int LaunchCommand(const Arguments& arguments);
int ServeCommand(const Arguments& arguments);
int CertificatesCommand(const Arguments& arguments);
int StatusCommand(const Arguments& arguments);
int TopCommand(const Arguments& arguments);
int DevicesCommand(const Arguments& arguments);
int InspectCommand(const Arguments& arguments);
int VersionCommand(const Arguments& arguments);

// The exit code for a wrong command line.
constexpr int kUsageError = 2;

// Splits the words at the first "--". Replaces dashes in the names of flags before it: --max-restarts=a-b becomes
// --max_restarts=a-b. Flags with a single dash, and values, do not change.
Arguments SplitArguments(const std::vector<std::string>& words);

// Parses `flags` with `app`. Returns nullopt if the command shall go on. Otherwise returns its exit code: 0 after
// --help, which is printed to stdout, or kUsageError after a mistake, which is printed to stderr.
std::optional<int> ParseFlags(CLI::App* app, const std::vector<std::string>& flags);
// Prints a mistake to stderr as ParseFlags does, and returns kUsageError. `command` is for example "cohort launch".
int UsageError(const std::string& command, const std::string& message);

}  // namespace cohort::tools
