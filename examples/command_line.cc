#include "examples/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "cohort/cluster/status/state_dump.h"
#include "cohort/core/text/nearest_names.h"

namespace examples {
namespace {

// Accepts the numbers between -most and most.
Check AtMost(double most) {
  return [most](const std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && std::abs(value) <= most) return std::string();
    std::ostringstream error;
    error << "expected a number of at most " << most << "; got '" << text << "'";
    return error.str();
  };
}

// Returns what to say of a word that is no flag of the program: the flags with the nearest names, if there are any.
std::string Unknown(const CLI::App& app, const std::string& word) {
  if (!word.starts_with("--")) return "there is no argument '" + word + "'\n";
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) names.push_back(option->get_name());
  const std::string name = word.substr(0, word.find('='));
  return "there is no flag " + name + cohort::DidYouMean(name, names) + "\n";
}

// The name of a long flag with '_' for '-'.
std::string Underscored(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  std::replace(argument.begin() + 2, argument.begin() + static_cast<std::ptrdiff_t>(end), '-', '_');
  return argument;
}

void AddCheck(const Check& check, CLI::Option* option) {
  if (check) option->check(CLI::Validator([check](const std::string& given) { return check(given); }, ""));
}

template <typename T>
void AddOption(CLI::App& app, const std::string& name, T* value, const std::string& text, const Check& check) {
  AddCheck(check, app.add_option(name, *value, text));
}

// `T`: std::chrono::milliseconds, or an optional of it.
template <typename T>
CLI::Option* AddSeconds(CLI::App& app, const std::string& name, T* value, const std::string& text, const Check& check) {
  const auto set = [value](double seconds) {
    *value = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  };
  CLI::Option* option = app.add_option_function<double>(name, set, text);
  AddCheck(check, option);
  AddCheck(AtMost(1e9), option);  // 30 years, as for the flags of train/task.h
  return option;
}

}  // namespace

Check AtLeast(double least) {
  return [least](const std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least) return std::string();
    std::ostringstream error;
    error << "expected a number of at least " << least << "; got '" << text << "'";
    return error.str();
  };
}

Check OneOf(const std::vector<std::string>& words) {
  return [words](const std::string& text) {
    if (std::count(words.begin(), words.end(), text) > 0) return std::string();
    std::string error = "expected one of";
    for (const std::string& word : words) error += " " + word;
    return error + "; got '" + text + "'";
  };
}

CommandLine::CommandLine(const std::string& summary) : app_(std::make_unique<CLI::App>(summary)) {}
CommandLine::~CommandLine() = default;

void CommandLine::Add(const std::string& name, std::string* value, const std::string& text, const Check& check) {
  AddOption(*app_, name, value, text, check);
}
void CommandLine::Add(const std::string& name, int* value, const std::string& text, const Check& check) {
  AddOption(*app_, name, value, text, check);
}
void CommandLine::Add(const std::string& name, std::optional<int>* value, const std::string& text, const Check& check) {
  AddOption(*app_, name, value, text, check);
}
void CommandLine::Add(const std::string& name, int64_t* value, const std::string& text, const Check& check) {
  AddOption(*app_, name, value, text, check);
}
void CommandLine::Add(const std::string& name, double* value, const std::string& text, const Check& check) {
  AddOption(*app_, name, value, text, check);
}

void CommandLine::Add(const std::string& name, std::chrono::milliseconds* value, const std::string& text,
                      const Check& check) {
  std::ostringstream seconds;
  seconds << std::chrono::duration<double>(*value).count();
  AddSeconds(*app_, name, value, text, check)->default_str(seconds.str());
}
void CommandLine::Add(const std::string& name, std::optional<std::chrono::milliseconds>* value, const std::string& text,
                      const Check& check) {
  AddSeconds(*app_, name, value, text, check);
}

void CommandLine::AddSwitch(const std::string& name, bool* value, const std::string& text) {
  app_->add_flag(name, *value, text);
}

void CommandLine::SetFooter(const std::string& text) { app_->footer(text); }

std::optional<int> CommandLine::Parse(int argc, char** argv) {
  app_->name(std::filesystem::path(argv[0]).filename().string());
  for (CLI::Option* option : app_->get_options()) option->capture_default_str();  // for --help
  std::vector<std::string> arguments;                                             // CLI11 takes them from the back
  for (int i = argc - 1; i > 0; --i) {
    std::string argument = Underscored(argv[i]);
    if (argument.starts_with("--") && argument.ends_with('=')) {  // CLI11 would take the next word for an empty value
      argument.pop_back();
      arguments.emplace_back();
    }
    arguments.push_back(std::move(argument));
  }
  try {
    app_->parse(arguments);
  } catch (const CLI::ExtrasError&) {
    for (const std::string& word : app_->remaining()) std::cerr << app_->get_name() << ": " << Unknown(*app_, word);
    std::cerr << "Run with --help for all flags.\n";
    return 2;
  } catch (const CLI::ParseError& e) {
    return app_->exit(e) == 0 ? 0 : 2;
  }
  cohort::DumpStateOnSignal();
  return std::nullopt;
}

}  // namespace examples
