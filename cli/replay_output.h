// What `assay trace replay` writes: the accesses of a trace, as lines or as records of one size.
#pragma once

#include "profile/access_stream.h"
#include "trace/trace_file.h"

#include <cstdio>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace cli {

// An instruction's read and write of the same bytes are one access, 'M'; else 'L' and 'S'.
class ReplayOutput : public profile::AccessSink {
public:
  ReplayOutput(const trace::Trace &trace, std::FILE *to) : trace_(trace), to_(to) {}
  ~ReplayOutput() override { write_text(); } // also of a trace that turns out to be damaged
  void accesses(const profile::AccessOrigin &origin,
                std::span<const profile::Access> batch) override;
  // What it still holds; throws Failure if something could not be written.
  void finish();

protected:
  virtual void begin(const profile::AccessOrigin &origin) = 0; // another thread's accesses follow
  virtual void write(const profile::AccessOrigin &origin, const profile::Access &access,
                     char kind) = 0;
  virtual void end() {} // of all
  // What is written is appended to it, and goes out from time to time.
  std::string &text() { return text_; }
  template <class... T> void put(fmt::format_string<T...> format, T &&...arguments) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(arguments)...);
  }
  const profile::AccessSite &site_of(const profile::Access &access) const {
    return site_at(access.site);
  }
  const profile::AccessSite &site_at(uint64_t site) const { return trace_.sites()[site]; }

private:
  void write_read();
  void write_text();
  const trace::Trace &trace_;
  std::FILE *to_;
  std::string text_;
  profile::AccessOrigin origin_;
  bool has_origin_ = false;
  std::optional<profile::Access>
      read_; // of which it is not known yet whether its instruction writes as well
};

// "text": lackey's lines, pc kind address,size, and "# thread N". "binary": docs/trace-format.md.
// "nests": lines, and loops as such. Fails for another format.
std::unique_ptr<ReplayOutput> replay_output(const std::string &format, const trace::Trace &trace,
                                            std::FILE *to);

} // namespace cli
