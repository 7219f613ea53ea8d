#include "tools/cohort/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cohort/core/text/nearest_names.h"

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

namespace {

// Returns "; did you mean --workers?" for the first of `words` that begins with dashes, or "".
std::string NearestFlags(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const std::string& word : words) {
    if (word.rfind("--", 0) == 0) return DidYouMean(word.substr(0, word.find('=')), known);
  }
  return "";
}

}  // namespace

std::optional<int> ParseFlags(CLI::App* app, const std::vector<std::string>& flags) {
  try {
    app->parse(std::vector<std::string>(flags.rbegin(), flags.rend()));  // CLI11 takes them from the back
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::cout << app->help();
    return 0;
  } catch (const CLI::ExtrasError& e) {
    return UsageError(app->get_name(), e.what() + NearestFlags(*app, app->remaining()));
  } catch (const CLI::ParseError& e) {
    return UsageError(app->get_name(), e.what());
  }
}

int UsageError(const std::string& command, const std::string& message) {
  std::cerr << command << ": " << message << "\nTry '" << command << " --help'.\n";
  return kUsageError;
}

}  // namespace cohort::tools
