// `cohort status` and `cohort top`: find the cluster, ask it, and print the answers once or again and again.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "cohort/cluster/status/cluster_file.h"
#include "cohort/cluster/status/cluster_report.h"
#include "cohort/cluster/status/status_client.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/registration.h"
#include "tools/cohort/command.h"
#include "tools/cohort/status/status_text.h"
#include "tools/cohort/status/terminal_screen.h"

namespace cohort::tools {
namespace {

using Seconds = std::chrono::duration<double>;

// The flags of both commands.
struct ClusterFlags {
  std::string address;
  std::string logdir;
  double timeout = 5;
  double stuck_after = 5;
  bool allow_insecure = false;
};

std::chrono::milliseconds ToMilliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
}

void AddSeconds(CLI::App* app, const char* name, double* value, double least, double most, const char* text) {
  app->add_option(name, *value, text)->check(CLI::Range(least, most).description(""))->type_name("SECONDS");
}

void DeclareClusterFlags(CLI::App* app, ClusterFlags* flags) {
  app->set_help_flag("-h,--help", "Print this text");
  app->add_option("ADDRESS", flags->address, "host:port of any task of the cluster");
  app->add_option("--logdir", flags->logdir, "Folder of the training, in which the chief has written cluster.json")
      ->type_name("FOLDER");
  AddSeconds(app, "--timeout", &flags->timeout, 0.1, 3600, "Time that each task has to answer (5)");
  AddSeconds(app, "--stuck_after", &flags->stuck_after, 0.1, 1e6,
             "A step that waits for another task so long without progress is not well (5)");
  app->add_flag("--allow_insecure", flags->allow_insecure, "Ask tasks beyond this machine, although there is no TLS");
}

// Returns what is wrong with the flags, or "".
std::string MistakeIn(const ClusterFlags& flags) {
  if (flags.address.empty() == flags.logdir.empty()) return "expected either ADDRESS or --logdir=FOLDER";
  if (flags.address.empty()) return "";
  try {
    ParseAddress(flags.address);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Also accepts the target of a server, "grpc://host:port".
void RemoveScheme(std::string* address) {
  constexpr std::string_view kScheme = "grpc://";
  if (address->starts_with(kScheme)) address->erase(0, kScheme.size());
}

std::unique_ptr<StatusClient> Connect(const ClusterFlags& flags) {
  const StatusClientOptions options{.time_limit = ToMilliseconds(flags.timeout),
                                    .allow_insecure = flags.allow_insecure};
  if (flags.logdir.empty()) return std::make_unique<StatusClient>(flags.address, options);
  const ClusterFile file = ReadClusterFile(flags.logdir);
  const bool has_token = std::getenv("COHORT_TOKEN") != nullptr || std::getenv("COHORT_TOKEN_FILE") != nullptr;
  if (!has_token && !file.token_file.empty()) setenv("COHORT_TOKEN_FILE", file.token_file.c_str(), 1);
  return std::make_unique<StatusClient>(file.cluster, options);
}

Verdict Judge(const ClusterReport& report, const ClusterFlags& flags) {
  VerdictLimits limits;
  limits.waiting = ToMilliseconds(flags.stuck_after);
  return JudgeCluster(report, limits);
}

int PrintDump(const ClusterFlags& flags, const std::string& task) {
  const auto name = ParseTaskName(task);
  if (!name)
    return UsageError("cohort status", StrCat("expected a task such as worker/1 for --dump; got '", task, "'"));
  std::cout << Connect(flags)->Dump(name->first, name->second) << std::flush;
  return 0;
}

int PrintStatus(const ClusterFlags& flags, bool json) {
  const ClusterReport report = Connect(flags)->Ask();
  const Verdict verdict = Judge(report, flags);
  std::cout << (json ? StatusJson(report, verdict) : StatusText(report, verdict)) << std::flush;
  return verdict.well ? 0 : 1;
}

// Prints a table every `interval`, `count` times (0: until the user leaves). Returns the exit code for the last one.
int Watch(const ClusterFlags& flags, Seconds interval, int count) {
  TerminalScreen screen;  // first, so that the client's threads leave signals to it
  const std::unique_ptr<StatusClient> client = Connect(flags);
  for (int shown = 0;;) {
    const auto next = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(interval);
    const ClusterReport report = client->Ask();
    const Verdict verdict = Judge(report, flags);
    screen.Show(StatusText(report, verdict));
    if (++shown == count || !screen.WaitUntil(next)) return verdict.well ? 0 : 1;
  }
}

// Runs the command. An error becomes exit code 1.
int Guarded(const char* command, bool json, const std::function<int()>& run) {
  try {
    return run();
  } catch (const Error& e) {
    if (json) std::cout << StatusJson(e.what()) << std::flush;
    std::cerr << command << ": " << CodeName(e.code()) << ": " << e.what() << "\n";
    return 1;
  }
}

constexpr char kStatusFooter[] =
    "The first line says in words whether the cluster is well. docs/monitoring.md explains the columns. The exit code "
    "is\n"
    "0 if everything is well, 1 if not, and 2 for a wrong command line. The token of the job is taken from "
    "COHORT_TOKEN,\n"
    "COHORT_TOKEN_FILE, the file that cluster.json names, or ~/.config/cohort/token.\n\n"
    "Example: cohort status 127.0.0.1:2222";

}  // namespace

int StatusCommand(const Arguments& arguments) {
  CLI::App app("Says what the tasks of a running cluster do.", "cohort status");
  ClusterFlags flags;
  bool json = false;
  std::string dump;
  DeclareClusterFlags(&app, &flags);
  app.add_flag("--json", json, "Print JSON");
  app.add_option("--dump", dump, "Print what one task does, with the stacks of its threads; for example worker/1")
      ->type_name("TASK");
  app.footer(kStatusFooter);
  if (const auto done = ParseFlags(&app, arguments.flags)) return *done;
  RemoveScheme(&flags.address);
  if (const std::string mistake = MistakeIn(flags); !mistake.empty()) return UsageError(app.get_name(), mistake);
  if (json && !dump.empty()) return UsageError(app.get_name(), "expected one of --json and --dump; a dump is text");
  return Guarded("cohort status", json,
                 [&] { return dump.empty() ? PrintStatus(flags, json) : PrintDump(flags, dump); });
}

int TopCommand(const Arguments& arguments) {
  CLI::App app("Shows again and again what the tasks of a running cluster do.", "cohort top");
  ClusterFlags flags;
  double interval = 1;
  int count = 0;
  DeclareClusterFlags(&app, &flags);
  AddSeconds(&app, "--interval", &interval, 0.1, 3600, "Time between two tables (1)");
  app.add_option("--count", count, "Leave after N tables; 0 = never (0)")
      ->check(CLI::Range(0, 1'000'000'000).description(""))
      ->type_name("N");
  app.footer("On a terminal, q or Ctrl-C leaves. The exit code is that of 'cohort status' for the last table.");
  if (const auto done = ParseFlags(&app, arguments.flags)) return *done;
  RemoveScheme(&flags.address);
  if (const std::string mistake = MistakeIn(flags); !mistake.empty()) return UsageError(app.get_name(), mistake);
  return Guarded("cohort top", false, [&] { return Watch(flags, Seconds(interval), count); });
}

}  // namespace cohort::tools
