// CommandLine reads the flags of an example program.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace examples {

// Checks the text that the user has given to a flag. Returns a message that says what is wrong, or "" if it is right.
using Check = std::function<std::string(const std::string& text)>;
// Accepts numbers of at least `least`.
Check AtLeast(double least);
// Accepts the words.
Check OneOf(const std::vector<std::string>& words);

// The flags of a program. The variable of a flag holds its default value, and Parse sets it to the value that the user
// has given. The variable must live until Parse has returned. Not thread-safe.
class CommandLine {
 public:
  // `summary` is the first line of --help.
  explicit CommandLine(const std::string& summary);
  ~CommandLine();

  // Adds the flag `name` ("--task_index"). `text` describes it in --help. An empty `check` accepts every value.
  void Add(const std::string& name, std::string* value, const std::string& text, const Check& check = {});
  void Add(const std::string& name, int* value, const std::string& text, const Check& check = {});
  void Add(const std::string& name, std::optional<int>* value, const std::string& text, const Check& check = {});
  void Add(const std::string& name, int64_t* value, const std::string& text, const Check& check = {});
  void Add(const std::string& name, double* value, const std::string& text, const Check& check = {});
  // The value is given in seconds, as a number that may have a fraction.
  void Add(const std::string& name, std::chrono::milliseconds* value, const std::string& text, const Check& check = {});
  void Add(const std::string& name, std::optional<std::chrono::milliseconds>* value, const std::string& text,
           const Check& check = {});
  // Adds a flag without a value. It sets *value to true.
  void AddSwitch(const std::string& name, bool* value, const std::string& text);
  // Sets the last lines of --help.
  void SetFooter(const std::string& text);

  // Reads the flags. Dashes in a flag's name count as underscores (--task-index). Returns nullopt if the program shall
  // go on. Otherwise returns its exit code: 0 after --help, or 2 after a mistake, which it prints to stderr. If the
  // program goes on, SIGUSR1 makes it print what it does (DumpStateOnSignal).
  std::optional<int> Parse(int argc, char** argv);

 private:
  const std::unique_ptr<CLI::App> app_;
};

}  // namespace examples
