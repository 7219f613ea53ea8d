// The flags of an example program.
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

// What is wrong with the text that a flag was given, for people to read; "" where it is right.
using Check = std::function<std::string(const std::string& text)>;
Check AtLeast(double least);
Check OneOf(const std::vector<std::string>& words);

// The flags that a program knows. A flag's variable holds its default and gets what the user has given; it has to live
// until Parse has returned.
class CommandLine {
 public:
  explicit CommandLine(const std::string& summary);
  ~CommandLine();

  void Add(const std::string& name, std::string* value, const std::string& text, const Check& check = {});
  void Add(const std::string& name, int* value, const std::string& text, const Check& check = {});
  void Add(const std::string& name, std::optional<int>* value, const std::string& text, const Check& check = {});
  void Add(const std::string& name, int64_t* value, const std::string& text, const Check& check = {});
  void Add(const std::string& name, double* value, const std::string& text, const Check& check = {});
  // Given in seconds, as a number that may have a fraction.
  void Add(const std::string& name, std::chrono::milliseconds* value, const std::string& text, const Check& check = {});
  void Add(const std::string& name, std::optional<std::chrono::milliseconds>* value, const std::string& text,
           const Check& check = {});
  // A flag without a value.
  void AddSwitch(const std::string& name, bool* value, const std::string& text);
  // The end of --help.
  void SetFooter(const std::string& text);

  // Reads the words; dashes in a flag's name do for underscores (--task-index). A result means that the program is
  // over, and is its exit code: 0 after --help, 2 after a mistake, which is named on stderr.
  std::optional<int> Parse(int argc, char** argv);

 private:
  const std::unique_ptr<CLI::App> app_;
};

}  // namespace examples
