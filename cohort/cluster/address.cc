#include <arpa/inet.h>

#include <cctype>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

[[noreturn]] void Refuse(std::string_view address, const std::string& why) {
  throw InvalidArgumentError(StrCat("[ClusterSpec] expected an address \"host:port\"; got \"", address, "\": ", why));
}

bool IsIpv6(const std::string& host) {
  // inet_pton does not accept the scope of an address ("fe80::1%eth0").
  in6_addr parsed;
  return inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &parsed) == 1;
}

int ParsePort(std::string_view address, std::string_view text) {
  if (text.empty()) Refuse(address, "the port is missing");
  int port = 0;
  for (const char c : text) {
    if (!std::isdigit(static_cast<unsigned char>(c))) {
      Refuse(address, StrCat("the port \"", text, "\" is not a number"));
    }
    port = port * 10 + (c - '0');
    if (port > 65535) Refuse(address, StrCat("the port \"", text, "\" is above 65535"));
  }
  return port;
}

void CheckHostName(std::string_view address, const std::string& host) {
  if (host.empty()) Refuse(address, "the host is missing");
  if (host.find(':') != std::string::npos) {
    Refuse(address, IsIpv6(host) ? StrCat("an IPv6 address stands in brackets: write \"[", host, "]:port\"")
                                 : std::string("there is more than one ':'"));
  }
  for (const char c : host) {
    const auto byte = static_cast<unsigned char>(c);
    if (!std::isalnum(byte) && c != '-' && c != '.' && c != '_' && byte < 0x80) {
      Refuse(address, StrCat("the host \"", host, "\" has a character that no host name has: '", c, "'"));
    }
  }
}

}  // namespace

HostPort ParseAddress(std::string_view address) {
  if (address.empty()) Refuse(address, "it is empty");
  const size_t scheme = address.find("://");
  if (scheme != std::string_view::npos) {
    Refuse(address,
           StrCat("a cluster's addresses have no protocol; leave out \"", address.substr(0, scheme + 3), "\""));
  }
  if (address.find(',') != std::string_view::npos) {
    Refuse(address, "a ',' joins several addresses; give each one its own entry");
  }
  if (address[0] == '[') {
    const size_t close = address.find(']');
    if (close == std::string_view::npos) Refuse(address, "there is no ']' after '['");
    const std::string host(address.substr(1, close - 1));
    if (!IsIpv6(host)) Refuse(address, StrCat("\"", host, "\" is not an IPv6 address"));
    if (close + 1 >= address.size() || address[close + 1] != ':') Refuse(address, "the port is missing");
    return {host, ParsePort(address, address.substr(close + 2))};
  }
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) Refuse(address, "the port is missing");
  const std::string host(address.substr(0, colon));
  if (IsIpv6(std::string(address))) {  // "::1" would otherwise be host ":" and port 1
    Refuse(address, StrCat("an IPv6 address stands in brackets: write \"[", address, "]:port\""));
  }
  CheckHostName(address, host);
  return {host, ParsePort(address, address.substr(colon + 1))};
}

}  // namespace cohort
