// MetricsServer: the pages /metrics and /healthz of a task, over HTTP on 127.0.0.1.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace cohort {

// What a page has.
struct MetricsPages {
  // Each is called on the thread of the server, one at a time. If it throws, the client gets 500 with the error's text.
  std::function<std::string()> metrics;  // returns the page /metrics
  std::function<std::string()> reason;   // returns why the task is not well, or "": /healthz is then 200, else 503
};

// Serves the two pages to any program of this machine, without a token: they say nothing secret. One thread serves all
// clients, at most 32 at once; others wait. A client that is silent for 5 s is disconnected, and a request may have 16
// KiB. Other methods than GET and HEAD get 405, other pages 404. A Host header that names another host gets 403, so
// that a web page cannot read the pages through a name of its own. The program owns the server; its destructor ends the
// thread and closes all connections.
class MetricsServer {
 public:
  // Listens on `port` of 127.0.0.1; 0: a free port. Throws UnavailableError if the port is in use or the system has no
  // thread, and InvalidArgumentError if it is no port.
  MetricsServer(int port, MetricsPages pages);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const { return port_; }

 private:
  struct Daemon;  // libmicrohttpd's server

  const MetricsPages pages_;
  int port_ = 0;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace cohort
