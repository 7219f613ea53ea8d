#include "tools/cohort/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

namespace cohort::tools {

Arguments SplitArguments(const std::vector<std::string>& words) {
  Arguments arguments;
  const auto separator = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != separator; ++word) {
    std::string flag = *word;
    if (flag.rfind("--", 0) == 0) {
      const auto value = std::find(flag.begin(), flag.end(), '=');
      std::replace(flag.begin() + 2, value, '-', '_');
      if (value != flag.end() && value + 1 == flag.end()) {  // CLI11 would take the next word for an empty value
        flag.pop_back();
        arguments.flags.push_back(std::move(flag));
        flag.clear();
      }
    }
    arguments.flags.push_back(std::move(flag));
  }
  arguments.has_rest = separator != words.end();
  if (arguments.has_rest) arguments.rest.assign(separator + 1, words.end());
  return arguments;
}

std::optional<int> ParseFlags(CLI::App* app, const std::vector<std::string>& flags) {
  try {
    app->parse(std::vector<std::string>(flags.rbegin(), flags.rend()));  // CLI11 takes them from the back
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::cout << app->help();
    return 0;
  } catch (const CLI::ParseError& e) {
    return UsageError(app->get_name(), e.what());
  }
}

int UsageError(const std::string& command, const std::string& message) {
  std::cerr << command << ": " << message << "\nTry '" << command << " --help'.\n";
  return kUsageError;
}

}  // namespace cohort::tools
