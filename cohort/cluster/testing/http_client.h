// Fetch: a small client of HTTP/1.1 for tests, over a socket of its own.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "cohort/core/str_cat.h"

namespace cohort::testing {

// A connection to a port of 127.0.0.1. Each read and write ends after 20 s.
class HttpSocket {
 public:
  explicit HttpSocket(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~HttpSocket() { close(fd_); }
  HttpSocket(const HttpSocket&) = delete;
  HttpSocket& operator=(const HttpSocket&) = delete;

  bool connected() const { return connected_; }
  void Write(std::string_view text) { send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Returns what comes until the server closes the connection or the time limit has passed.
  std::string ReadToEnd() {
    std::string all;
    char buffer[4096];
    for (ssize_t count; (count = recv(fd_, buffer, sizeof(buffer), 0)) > 0;) all.append(buffer, buffer + count);
    return all;
  }

 private:
  const int fd_;
  bool connected_ = false;
};

struct HttpAnswer {
  int code = 0;  // 0: no answer
  std::string head;
  std::string body;
};

inline HttpAnswer Fetch(int port, const std::string& path, const std::string& method = "GET",
                        const std::string& host = "localhost") {
  HttpSocket connection(port);
  if (!connection.connected()) return {};
  connection.Write(StrCat(method, " ", path, " HTTP/1.1\r\nHost: ", host, "\r\nConnection: close\r\n\r\n"));
  const std::string all = connection.ReadToEnd();
  const size_t end = all.find("\r\n\r\n");
  if (!all.starts_with("HTTP/1.1 ") || end == std::string::npos) return {};
  return {std::atoi(all.c_str() + std::string_view("HTTP/1.1 ").size()), all.substr(0, end), all.substr(end + 4)};
}

}  // namespace cohort::testing
