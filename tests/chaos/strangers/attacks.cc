// The attacks: first the bytes of HTTP/2 and of our handshake, then those of TLS, then whole TLS handshakes, and last
// the list.
#include "tests/chaos/strangers/attacks.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <ostream>
#include <utility>

#include "cohort/cluster/tls/certificates.h"
#include "cohort/cluster/tls/subject.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::testing {
namespace {

// A frame of HTTP/2.
std::string Http2Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame.push_back(static_cast<char>(payload.size() >> shift));
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  return frame + payload;
}

std::string Literal(const std::string& text) { return StrCat(std::string(1, static_cast<char>(text.size())), text); }

// The request of a gRPC stream: POST, http, path, authority, content type, te.
std::string OpenStream(uint32_t stream, const std::string& path) {
  return Http2Frame(1, 4, stream,
                    StrCat("\x83\x86\x04", Literal(path), "\x01", Literal("localhost"), "\x0f\x10",
                           Literal("application/grpc"), std::string(1, '\0'), Literal("te"), Literal("trailers")));
}

constexpr char kControl[] = "/cohort.Transport/Control";

std::string Preface() { return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2Frame(4, 0, 0, ""); }

// What one connection sends.
std::string ManyStreams(const std::string& path) {
  std::string bytes = Preface();
  for (uint32_t i = 0; i < 2000; ++i) bytes += OpenStream(2 * i + 1, path);
  return bytes;
}
std::string ManyResets() {
  std::string bytes = Preface();
  for (uint32_t i = 0; i < 2000; ++i) {
    bytes += OpenStream(2 * i + 1, kControl) + Http2Frame(3, 0, 2 * i + 1, std::string("\0\0\0\x08", 4));
  }
  return bytes;
}
std::string LargeHello() {
  std::string bytes = Preface() + OpenStream(1, kControl);
  for (int i = 0; i < 256; ++i) bytes += Http2Frame(0, 0, 1, std::string(16384, 'h'));
  return bytes;
}
// The beginning of a message of the largest size, and of one that is too large.
std::string HeldHello() { return std::string("\0\x10\0\0", 4) + std::string(4000, '\x01'); }
std::string EndlessHello() { return std::string("\0\0\x40\0", 4) + std::string(4 << 20, '\x01'); }

// The beginning of a TLS handshake that does not go on, and one whose first message is as long as a record can be.
std::string HeldTlsHello() { return std::string("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 11); }
std::string LargeTlsHello() {
  return std::string("\x16\x03\x01\x40\0\x01\0\x3f\xfc\x03\x03", 11) + std::string(16373, 'h');
}

void SendAll(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;  // the task has closed the connection, or reads nothing for some time
    at += static_cast<size_t>(sent);
  }
}

std::function<Talk()> Sends(std::string (*bytes)()) {
  return [bytes] { return [all = bytes()](int fd) { SendAll(fd, all); }; };
}

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* made) const { kFree(made); }
};

// A stranger that makes TLS handshakes as gRPC does. Thread-safe.
class TlsStranger {
 public:
  // `shown` is its certificate, if it has one.
  explicit TlsStranger(const std::optional<KeyedCertificate>& shown) : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_OFF);
    constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    SSL_CTX_set_alpn_protos(context_.get(), kHttp2, sizeof(kHttp2));
    if (!shown) return;
    const std::unique_ptr<BIO, Freed<BIO, BIO_free_all>> pem(BIO_new(BIO_s_mem()));
    BIO_puts(pem.get(), (shown->certificate + shown->key).c_str());
    const std::unique_ptr<X509, Freed<X509, X509_free>> certificate(
        PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr));
    const std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>> key(
        PEM_read_bio_PrivateKey(pem.get(), nullptr, nullptr, nullptr));
    if (SSL_CTX_use_certificate(context_.get(), certificate.get()) != 1 ||
        SSL_CTX_use_PrivateKey(context_.get(), key.get()) != 1) {
      throw InternalError("[test] OpenSSL does not take the certificate of the stranger");
    }
  }

  // Makes a handshake, sends `bytes`, and reads until the task ends the connection.
  void Talk(int fd, const std::string& bytes) const {
    const Connection connection = Make();
    SSL_set_fd(connection.get(), fd);
    if (SSL_connect(connection.get()) != 1) return;
    if (!bytes.empty()) SSL_write(connection.get(), bytes.data(), static_cast<int>(bytes.size()));
    char sink[4096];
    while (SSL_read(connection.get(), sink, sizeof(sink)) > 0) {
    }
  }
  // Returns the first message of a handshake.
  std::string Hello() const {
    const Connection connection = Make();
    BIO* sent = BIO_new(BIO_s_mem());
    SSL_set_bio(connection.get(), BIO_new(BIO_s_mem()), sent);  // takes both
    SSL_connect(connection.get());                              // waits for an answer
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(sent, &bytes);
    return std::string(bytes, static_cast<size_t>(size));
  }

 private:
  using Connection = std::unique_ptr<SSL, Freed<SSL, SSL_free>>;
  Connection Make() const { return Connection(SSL_new(context_.get())); }

  const std::unique_ptr<SSL_CTX, Freed<SSL_CTX, SSL_CTX_free>> context_;
};

// Whole handshakes without a certificate, and `bytes` behind each.
std::function<Talk()> Handshakes(std::string (*bytes)()) {
  return [bytes]() -> Talk {
    return [stranger = std::make_shared<TlsStranger>(std::nullopt), all = bytes()](int fd) { stranger->Talk(fd, all); };
  };
}

// Whole handshakes with the certificate of the same task, which another authority has signed.
Talk ForeignHandshakes() {
  const CertificateAuthority other("test", ValidForDays(1));
  const auto stranger = std::make_shared<TlsStranger>(other.Issue(SubjectOf("worker", 0), ValidForDays(1)));
  return [stranger](int fd) { stranger->Talk(fd, ""); };
}

// The whole first message of a handshake, and nothing more.
Talk WholeTlsHellos() {
  return [hello = TlsStranger(std::nullopt).Hello()](int fd) { SendAll(fd, hello); };
}

std::string ControlStreams() { return ManyStreams(kControl); }
std::string UnknownMethods() { return ManyStreams("/no/such"); }
std::string Nothing() { return ""; }

}  // namespace

std::ostream& operator<<(std::ostream& out, const Attack& attack) { return out << attack.name; }

std::vector<Attack> AllAttacks() {
  std::vector<Attack> all = {{"streams", Sends(ControlStreams)},
                             {"unknown_methods", Sends(UnknownMethods)},
                             {"resets", Sends(ManyResets)},
                             {"large_hellos", Sends(LargeHello)},
                             {"endless_hellos", Sends(EndlessHello)},
                             {"held_hellos", Sends(HeldHello), kIdle},
                             {"idle_connections", Sends(Nothing), kIdle}};
  const std::vector<Attack> tls = {{"streams_tls", Sends(ControlStreams)},
                                   {"large_hellos_tls", Sends(LargeTlsHello)},
                                   {"held_hellos_tls", Sends(HeldTlsHello), kIdle},
                                   {"idle_connections_tls", Sends(Nothing), kIdle},
                                   // The task begins the handshake of each, and tens of them stay under way.
                                   {"held_whole_hellos_tls", WholeTlsHellos, 300},
                                   {"whole_hellos_tls", WholeTlsHellos},
                                   {"handshakes_tls", Handshakes(Nothing), 0, true, 4},
                                   {"foreign_handshakes_tls", ForeignHandshakes, 0, true, 4},
                                   {"unknown_methods_tls", Handshakes(UnknownMethods), 0, true, 4},
                                   {"resets_tls", Handshakes(ManyResets), 0, true, 4},
                                   {"large_messages_tls", Handshakes(LargeHello), 0, true, 4}};
  for (Attack attack : tls) {
    attack.tls = true;
    all.push_back(std::move(attack));
  }
  // Trainings that use all the time that they get.
  for (const Attack& attack : std::vector<Attack>(all)) {
    if (attack.name != "streams" && attack.name != "handshakes_tls") continue;
    all.push_back(attack);
    all.back().name += "_without_pause";
    all.back().pause_ms = 0;
  }
  return all;
}

}  // namespace cohort::testing
