// The subcommands of `cohort`. Adding one: a file <name>_command.cc with its run function, a line here and
// one in main.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cohort::tools {

// What stands behind the subcommand's name. Flags are spelt --snake_case here; the user may write dashes.
struct Arguments {
  std::vector<std::string> flags;  // before a "--" of its own, or all
  std::vector<std::string> rest;   // behind it, untouched
  bool has_rest = false;           // whether there was a "--"
};

struct Command {
  const char* name;
  const char* summary;                     // one line, for `cohort --help`
  int (*run)(const Arguments& arguments);  // returns the exit code
};

int LaunchCommand(const Arguments& arguments);
int ServeCommand(const Arguments& arguments);
int InspectCommand(const Arguments& arguments);
int VersionCommand(const Arguments& arguments);

// Exit code for a command line that is wrong.
constexpr int kUsageError = 2;

// --max-restarts=a-b -> --max_restarts=a-b, up to the first "--"; single-dash flags and values stay.
Arguments SplitArguments(const std::vector<std::string>& words);

// Parses `flags` with `app`. A result means that the command is over: 0 after --help (to stdout), kUsageError
// after a mistake (named on stderr).
std::optional<int> ParseFlags(CLI::App* app, const std::vector<std::string>& flags);
// Reports a mistake on stderr as ParseFlags does and returns kUsageError. `command` is "cohort launch".
int UsageError(const std::string& command, const std::string& message);

}  // namespace cohort::tools
