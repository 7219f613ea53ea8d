// A task for launch_test. It makes the object that its argument names (session, server or model), prints a line, and
// waits to be ended. Only that object can have made standard output line-buffered.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cohort/cohort.h"

int main(int argc, char** argv) {
  using namespace cohort;
  alarm(300);  // in case no other process ends it
  const std::string what = argc > 1 ? argv[1] : "";
  const Graph graph;
  std::unique_ptr<Session> session;
  std::unique_ptr<Server> server;
  std::unique_ptr<keras::Sequential> model;
  if (what == "session") session = std::make_unique<Session>(graph);
  if (what == "server") server = std::make_unique<Server>(TFConfigClusterResolver().cluster_spec(), "worker", 0);
  if (what == "model") model = std::make_unique<keras::Sequential>();
  std::printf("made a %s\n", what.c_str());
  for (;;) pause();
}
