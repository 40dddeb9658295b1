// SPDX-License-Identifier: Apache-2.0
#include "keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "affinity.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "options.hpp"
#include "real_time.hpp"
#include "recording_process.hpp"

namespace latenz::agent {
namespace {

using probe::Failure;
using probe::File;
using probe::nanoseconds_a_second;
using probe::read_clock_ns;

constexpr std::int64_t first_lease_s = 120;
constexpr std::int64_t longest_lease_s = 7LL * 24 * 3600;
constexpr std::int64_t longest_grace_ms = 600'000;
constexpr std::ptrdiff_t most_children = 256;

/// Goes on while the machine sleeps: a lease is about the other side's time.
std::int64_t now_ns() { return read_clock_ns(CLOCK_BOOTTIME); }

/// A socket's name that no file system holds.
sockaddr_un address(const std::string& token, socklen_t& length) {
  sockaddr_un made{};
  made.sun_family = AF_UNIX;
  const std::string name = "latenz-agent-" + token;
  if (name.size() + 1 > sizeof made.sun_path) throw Failure("the token is too long");
  std::ranges::copy(name, static_cast<char*>(made.sun_path) + 1);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return made;
}

File unix_socket() {
  File made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.is_open()) throw Failure(std::string("no Unix socket: ") + std::strerror(errno));
  return made;
}

bool is_our_user(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

std::string list(const cpu_set_t& set) {
  std::string text;
  for (const unsigned cpu : probe::cpus_of(set)) {
    text += (text.empty() ? "" : ",") + std::to_string(cpu);
  }
  return text;
}

cpu_set_t cpu_set(const std::string& text) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned cpu : probe::parse_cpus("cpus", text, probe::enterable_cpus())) {
    CPU_SET(cpu, &set);
  }
  return set;
}

/// Removes the folder once this process and all supervisors are gone.
[[noreturn]] void clean_up_after(int others, const std::string& folder) {
  close_others({others});
  sigset_t every;
  sigfillset(&every);
  sigprocmask(SIG_SETMASK, &every, nullptr);
  char nothing = 0;
  while (read(others, &nothing, 1) > 0 || errno == EINTR) {
  }
  remove_folder(folder);
  _exit(0);
}

using FileVerb = Fields (*)(const Fields&);

/// What answers a verb that only looks at files; null: it is none.
FileVerb file_verb(const std::string& verb) {
  static const std::map<std::string, FileVerb, std::less<>> verbs{
      {"read", read_files},  {"match", read_matching}, {"modes", modes},       {"names", names},
      {"link", link_target}, {"access", access_of},    {"find", find_program},
  };
  const auto found = verbs.find(verb);
  return found == verbs.end() ? nullptr : found->second;
}

}  // namespace

File listen_for_links(const std::string& token) {
  File listening = unix_socket();
  socklen_t length = 0;
  const sockaddr_un name = address(token, length);
  if (bind(listening.descriptor(), reinterpret_cast<const sockaddr*>(&name), length) != 0 ||
      listen(listening.descriptor(), 4) != 0) {
    throw Failure(std::string("cannot listen: ") + std::strerror(errno));
  }
  return listening;
}

File connect_to_keeper(const std::string& token) {
  File connection = unix_socket();
  socklen_t length = 0;
  const sockaddr_un name = address(token, length);
  if (connect(connection.descriptor(), reinterpret_cast<const sockaddr*>(&name), length) != 0) {
    throw Failure(std::string("there is no agent: ") + std::strerror(errno));
  }
  if (!is_our_user(connection.descriptor())) throw Failure("the agent is another user's");
  return connection;
}

Keeper::Keeper(File listening, const std::string& begun)
    : listening_(std::move(listening)),
      home_(begun),
      mirror_(home_.path()),
      lease_ns_(first_lease_s * nanoseconds_a_second),
      last_heard_ns_(now_ns()) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched, number);
  sigprocmask(SIG_SETMASK, &watched, nullptr);
  signals_ = File(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  probe::ignore_output_signals();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (home_.is_folder()) start_janitor();
}

Keeper::~Keeper() {
  for (auto& [number, child] : children_) child->stop();
  const auto running = [](const auto& entry) { return !entry.second->status(); };
  while (std::ranges::any_of(children_, running)) {
    pollfd waiting{signals_.descriptor(), POLLIN, 0};
    poll(&waiting, 1, 100);
    reap();
  }
  kill_descendants();  // the janitor, too
  if (home_.is_folder()) remove_folder(home_.folder());
}

void Keeper::start_janitor() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Failure(std::strerror(errno));
  const File reading(ends[0]);
  janitor_ = File(ends[1]);
  const pid_t janitor = fork();
  if (janitor < 0) throw Failure(std::strerror(errno));
  if (janitor == 0) clean_up_after(reading.descriptor(), home_.folder());
}

void Keeper::serve() {
  while (!over_) {
    wait_for_something();
    reap();
    if (link_.is_open()) send();
    if (now_ns() - last_heard_ns_ > lease_ns_) over_ = true;
  }
  if (link_.is_open()) send();
}

void Keeper::wait_for_something() {
  const std::int64_t left_ns = lease_ns_ - (now_ns() - last_heard_ns_);
  const auto left_ms =
      std::clamp<std::int64_t>(left_ns / probe::nanoseconds_a_millisecond + 1, 0, 60'000);
  const auto wanted = static_cast<short>(outgoing_.empty() ? POLLIN : POLLIN | POLLOUT);
  std::array<pollfd, 3> waiting{pollfd{listening_.descriptor(), POLLIN, 0},
                                pollfd{signals_.descriptor(), POLLIN, 0},
                                pollfd{link_.is_open() ? link_.descriptor() : -1, wanted, 0}};
  poll(waiting.data(), waiting.size(), static_cast<int>(left_ms));
  if (waiting[2].revents != 0) take_requests();
  if (waiting[0].revents != 0) take_link();
}

/// A new link takes the place of the old one, which may hang for minutes.
void Keeper::take_link() {
  File arrived(accept4(listening_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!arrived.is_open() || !is_our_user(arrived.descriptor())) return;
  lose_link();
  link_ = std::move(arrived);
  last_heard_ns_ = now_ns();
  ++links_;
}

void Keeper::lose_link() {
  link_.close();
  inbox_.clear();
  outgoing_.clear();
}

void Keeper::take_requests() {
  std::array<char, 65536> part{};
  const ssize_t got = read(link_.descriptor(), part.data(), part.size());
  if (got <= 0) {
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) lose_link();
    return;
  }
  received_bytes_ += got;
  last_heard_ns_ = now_ns();
  inbox_.add({part.data(), static_cast<std::size_t>(got)});
  try {
    while (const auto request = inbox_.next()) outgoing_ += answer(*request);
  } catch (const Failure&) {
    lose_link();
  }
}

void Keeper::send() {
  while (!outgoing_.empty()) {
    const ssize_t sent = write(link_.descriptor(), outgoing_.data(), outgoing_.size());
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) lose_link();
      return;
    }
    sent_bytes_ += sent;
    outgoing_.erase(0, static_cast<std::size_t>(sent));
  }
}

void Keeper::reap() {
  signalfd_siginfo arrived{};
  while (read(signals_.descriptor(), &arrived, sizeof arrived) == sizeof arrived) {
    if (arrived.ssi_signo != SIGCHLD) over_ = true;
  }
  int wait_status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    for (auto& [number, child] : children_) {
      if (child->supervisor() == ended) child->ended(wait_status);
    }
  }
}

std::string Keeper::answer(const Request& request) {
  static const std::map<std::string, Verb, std::less<>> verbs{
      {"hello", &Keeper::hello},       {"lease", &Keeper::lease}, {"beat", &Keeper::beat},
      {"clocks", &Keeper::clocks},     {"usage", &Keeper::usage}, {"leave", &Keeper::leave},
      {"priority", &Keeper::priority}, {"start", &Keeper::start}, {"status", &Keeper::status},
      {"stop", &Keeper::stop},         {"news", &Keeper::news},   {"call", &Keeper::call},
      {"end", &Keeper::end},
  };
  try {
    if (const auto own = verbs.find(request.verb); own != verbs.end()) {
      return reply(request.id, 0, (this->*own->second)(request.fields));
    }
    if (const FileVerb looks = file_verb(request.verb); looks != nullptr) {
      return reply(request.id, 0, looks(request.fields));
    }
    return reply(request.id, ENOSYS, {"the agent knows no '" + request.verb + "'"});
  } catch (const std::exception& error) {
    return reply(request.id, EINVAL, {error.what()});
  }
}

/// Pairs of a name and what it is.
Fields Keeper::hello(const Fields& /*none*/) {
  utsname system{};
  uname(&system);
  timespec resolution{};
  clock_getres(CLOCK_MONOTONIC, &resolution);
  return {"protocol",
          std::to_string(protocol_version),
          "version",
          LATENZ_VERSION,
          "process",
          std::to_string(getpid()),
          "user",
          std::to_string(geteuid()),
          "home",
          home_.path(),
          "kept_in",
          home_.is_folder() ? "folder" : "memory",
          "release",
          static_cast<const char*>(system.release),
          "kernel",
          static_cast<const char*>(system.version),
          "machine",
          static_cast<const char*>(system.machine),
          "started_on",
          list(probe::inherited_cpus()),
          "enterable",
          list(probe::enterable_cpus()),
          "ticks_a_second",
          std::to_string(sysconf(_SC_CLK_TCK)),
          "clock_resolution_ns",
          std::to_string(resolution.tv_nsec)};
}

/// SECONDS: how long it stays without hearing anything.
Fields Keeper::lease(const Fields& fields) {
  require(fields, 1);
  lease_ns_ = number("lease", fields[0], 1, longest_lease_s) * nanoseconds_a_second;
  return {};
}

// NOLINTNEXTLINE(readability-convert-member-functions-to-static): a verb like the others
Fields Keeper::beat(const Fields& /*none*/) { return {}; }

/// Monotonic, boot and real time in ns, read one after the other as closely as it gets.
// NOLINTNEXTLINE(readability-convert-member-functions-to-static): a verb like the others
Fields Keeper::clocks(const Fields& /*none*/) {
  constexpr std::int64_t close_ns = 50'000;
  constexpr int most_tries = 50;
  std::array<std::int64_t, 3> read{};
  for (int i = 0; i < most_tries; ++i) {
    read = {read_clock_ns(CLOCK_MONOTONIC), read_clock_ns(CLOCK_BOOTTIME),
            read_clock_ns(CLOCK_REALTIME)};
    if (read_clock_ns(CLOCK_MONOTONIC) - read[0] <= close_ns) break;
  }
  return {std::to_string(read[0]), std::to_string(read[1]), std::to_string(read[2])};
}

/// What the agent itself took: CPU time in ns, where it may run, bytes in, bytes out, links.
// NOLINTNEXTLINE(readability-make-member-function-const): a verb like the others
Fields Keeper::usage(const Fields& /*none*/) {
  return {"cpu_time_ns",    std::to_string(read_clock_ns(CLOCK_PROCESS_CPUTIME_ID)),
          "cpus",           list(probe::inherited_cpus()),
          "received_bytes", std::to_string(received_bytes_),
          "sent_bytes",     std::to_string(sent_bytes_),
          "links",          std::to_string(links_)};
}

/// CPUS: the agent keeps off them if there are others; whether there are is the reply.
// NOLINTNEXTLINE(readability-convert-member-functions-to-static): a verb like the others
Fields Keeper::leave(const Fields& fields) {
  require(fields, 1);
  const cpu_set_t measured = cpu_set(fields[0]);
  cpu_set_t others = probe::enterable_cpus();
  cpu_set_t both;
  CPU_AND(&both, &others, &measured);
  CPU_XOR(&others, &others, &both);
  if (CPU_COUNT(&others) == 0) return {"0"};
  return {probe::stay_within(others) == 0 ? "1" : "0"};
}

/// POLICY PRIORITY: errno of taking it, which is tried in a process of its own.
// NOLINTNEXTLINE(readability-convert-member-functions-to-static): a verb like the others
Fields Keeper::priority(const Fields& fields) {
  require(fields, 2);
  const auto policy = static_cast<int>(number("policy", fields[0], 0, 7));
  const auto wanted = static_cast<int>(number("priority", fields[1], 0, 99));
  const pid_t trying = fork();
  if (trying < 0) return {std::to_string(errno)};
  if (trying == 0) {
    _exit(probe::take_policy(policy, wanted));
  }
  int wait_status = 0;
  while (waitpid(trying, &wait_status, 0) < 0 && errno == EINTR) {
  }
  return {std::to_string(exit_code(wait_status))};
}

/// CHILD CPUS GRACE_MS FOLDER OUTPUT ERRORS PROGRAM ARGUMENT...: starts it under that number. Once:
/// the other side asks again if the link was cut before the reply.
Fields Keeper::start(const Fields& fields) {
  require(fields, 7);
  const std::int64_t child = number("child", fields[0], 1, INT64_MAX);
  if (children_.contains(child)) return {};
  const auto running = [](const auto& entry) { return !entry.second->status(); };
  if (std::ranges::count_if(children_, running) >= most_children) {
    throw Failure("too many programs run already");
  }
  Order order;
  if (!fields[1].empty()) order.cpus = cpu_set(fields[1]);
  order.grace_ms = number("grace", fields[2], 0, longest_grace_ms);
  order.folder = below(home_.path(), fields[3]);
  order.output = below(order.folder, fields[4]);
  order.errors = below(order.folder, fields[5]);
  order.arguments.assign(fields.begin() + 6, fields.end());
  std::error_code error;
  std::filesystem::create_directories(order.folder, error);
  if (error) throw Failure(fields[3] + ": " + error.message());
  children_.emplace(child, std::make_unique<Child>(order));
  return {};
}

/// CHILD...: for each "" while it runs, else its exit status.
Fields Keeper::status(const Fields& fields) {
  reap();
  Fields found;
  for (const std::string& field : fields) {
    const auto child = children_.find(number("child", field, 1, INT64_MAX));
    if (child == children_.end()) throw Failure("there is no child " + field);
    const auto ended = child->second->status();
    found.push_back(ended ? std::to_string(*ended) : "");
  }
  return found;
}

/// CHILD: tells it to end; `status` tells when it has.
Fields Keeper::stop(const Fields& fields) {
  require(fields, 1);
  const auto child = children_.find(number("child", fields[0], 1, INT64_MAX));
  if (child == children_.end()) throw Failure("there is no child " + fields[0]);
  child->second->stop();
  return {};
}

Fields Keeper::news(const Fields& fields) { return mirror_.news(fields); }

Fields Keeper::call(const Fields& fields) { return system_calls_.call(fields); }

Fields Keeper::end(const Fields& /*none*/) {
  over_ = true;
  return {};
}

}  // namespace latenz::agent
