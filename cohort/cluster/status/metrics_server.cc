// Answers with libmicrohttpd: its thread calls HandleRequest for each request, and all limits are options of it.
#include "cohort/cluster/status/metrics_server.h"

#include <microhttpd.h>
#include <signal.h>

#include <exception>
#include <string_view>
#include <utility>

#include "cohort/cluster/grpc/socket.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr unsigned kMostMetricsClients = 32;
constexpr unsigned kMetricsSilence = 5;             // seconds
constexpr size_t kMetricsClientMemory = 16 * 1024;  // for the request of a client

struct Page {
  unsigned code = MHD_HTTP_OK;
  std::string text;
  const char* type = "text/plain; charset=utf-8";
};

Listener ListenForMetrics(int port) {
  try {
    return ListenOn(StrCat("127.0.0.1:", port), /*allow_insecure=*/false);
  } catch (const UnavailableError& e) {
    throw UnavailableError(StrCat("[metrics] expected to listen on 127.0.0.1:", port, "; got: ", e.what(),
                                  "; choose another port, or 0 for any"));
  }
}

// Returns whether a Host header names this machine. A request of HTTP/1.0 may have none.
bool IsLocalHost(const char* header) {
  if (header == nullptr) return true;
  std::string_view host(header);
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) host = host.substr(0, colon);
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

Page PageOf(const MetricsPages& pages, std::string_view url, std::string_view method, const char* host) {
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    return {MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET\n"};
  }
  if (!IsLocalHost(host)) return {MHD_HTTP_FORBIDDEN, "expected the host 127.0.0.1 or localhost\n"};
  try {
    if (url == "/metrics") return {MHD_HTTP_OK, pages.metrics(), "text/plain; version=0.0.4; charset=utf-8"};
    if (url != "/healthz") return {MHD_HTTP_NOT_FOUND, "expected /metrics or /healthz\n"};
    const std::string reason = pages.reason();
    if (reason.empty()) return {MHD_HTTP_OK, "ok\n"};
    return {MHD_HTTP_SERVICE_UNAVAILABLE, reason + "\n"};
  } catch (const std::exception& e) {
    return {MHD_HTTP_INTERNAL_SERVER_ERROR, StrCat(e.what(), "\n")};
  }
}

// Called by libmicrohttpd when the head of a request has come, again for each part of its body, and at its end.
MHD_Result HandleRequest(void* pages, MHD_Connection* connection, const char* url, const char* method, const char*,
                         const char*, size_t* body_size, void** seen) {
  static int mark;
  if (*seen == nullptr) {
    *seen = &mark;
    return MHD_YES;
  }
  if (*body_size > 0) {  // it is not used
    *body_size = 0;
    return MHD_YES;
  }
  const char* host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  Page page = PageOf(*static_cast<const MetricsPages*>(pages), url, method, host);
  MHD_Response* response = MHD_create_response_from_buffer(page.text.size(), page.text.data(), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.type);
  if (page.code == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  const MHD_Result result = MHD_queue_response(connection, page.code, response);
  MHD_destroy_response(response);
  return result;
}

}  // namespace

struct MetricsServer::Daemon {
  explicit Daemon(MHD_Daemon* started) : daemon(started) {}
  ~Daemon() { MHD_stop_daemon(daemon); }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  MHD_Daemon* const daemon;
};

MetricsServer::MetricsServer(int port, MetricsPages pages) : pages_(std::move(pages)) {
  if (port < 0 || port > 65535) {
    throw InvalidArgumentError(StrCat("[metrics] expected a port from 0 to 65535; got ", port));
  }
  Listener listener = ListenForMetrics(port);
  port_ = listener.port;
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  MHD_Daemon* daemon =
      MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, nullptr, nullptr, HandleRequest,
                       const_cast<MetricsPages*>(&pages_), MHD_OPTION_LISTEN_SOCKET, listener.sockets.front().get(),
                       MHD_OPTION_CONNECTION_LIMIT, kMostMetricsClients, MHD_OPTION_CONNECTION_TIMEOUT, kMetricsSilence,
                       MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMetricsClientMemory, MHD_OPTION_END);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (daemon == nullptr) {
    throw UnavailableError("[metrics] expected a thread and memory for the server of the metrics; got none");
  }
  listener.sockets.front().Release();  // the daemon closes it
  daemon_ = std::make_unique<Daemon>(daemon);
}

MetricsServer::~MetricsServer() = default;

}  // namespace cohort
