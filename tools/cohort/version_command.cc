#include <CLI/CLI.hpp>
#include <iostream>

#include "tools/cohort/command.h"

namespace cohort::tools {

int VersionCommand(const Arguments& arguments) {
  CLI::App app("Prints the version.", "cohort version");
  app.set_help_flag("-h,--help", "Print this text");
  if (const auto done = ParseFlags(&app, arguments.flags)) return *done;
  std::cout << "cohort " << COHORT_VERSION << "\n";
  return 0;
}

}  // namespace cohort::tools
