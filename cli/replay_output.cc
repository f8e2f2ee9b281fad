// A trace has an instruction's read and write as two accesses, one behind the other; people and
// tools know them as one that modifies. So the last read waits until it is known whether a write of
// the same instruction to the same bytes follows. Each format then writes one access after the
// other, in constant memory.

#include "cli/replay_output.h"

#include "abi/replay_record.h"
#include "base/fail.h"
#include "trace/nests.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

namespace cli {
namespace {

class TextOutput : public ReplayOutput {
public:
  using ReplayOutput::ReplayOutput;

private:
  void begin(const profile::AccessOrigin &origin) override { put("# thread {}\n", origin.thread); }
  // A trace has millions: a format string would be read for each.
  void write(const profile::AccessOrigin &, const profile::Access &access, char kind) override {
    char line[64]; // two numbers of 16 digits and one of 5 at most
    char *at = std::to_chars(line, std::end(line), site_of(access).offset, 16).ptr;
    *at++ = ' ';
    *at++ = kind;
    *at++ = ' ';
    at = std::to_chars(at, std::end(line), access.address, 16).ptr;
    *at++ = ',';
    at = std::to_chars(at, std::end(line), access.size).ptr;
    *at++ = '\n';
    text().append(line, at);
  }
};

class BinaryOutput : public ReplayOutput {
public:
  BinaryOutput(const trace::Trace &trace, std::FILE *to) : ReplayOutput(trace, to) {
    AssayReplayHeader header = {};
    std::memcpy(header.magic, ASSAY_REPLAY_MAGIC, sizeof header.magic);
    header.version = ASSAY_REPLAY_VERSION;
    header.record_bytes = sizeof(AssayReplayRecord);
    append(header);
  }

private:
  void begin(const profile::AccessOrigin &) override {}
  void write(const profile::AccessOrigin &origin, const profile::Access &access,
             char kind) override {
    const profile::AccessSite &site = site_of(access);
    const AssayReplayRecord record = {access.address,
                                      site.offset,
                                      site.file,
                                      origin.process,
                                      origin.thread,
                                      access.size,
                                      static_cast<uint8_t>(kind),
                                      origin.in_handler};
    append(record);
  }
  template <class T> void append(const T &bytes) {
    text().append(reinterpret_cast<const char *>(&bytes), sizeof bytes);
  }
};

// Loops as such: "loop N", and behind it its body, two columns further in; behind each access how
// far it goes in each iteration of the loops around it, the outermost first.
class NestsOutput : public ReplayOutput {
public:
  NestsOutput(const trace::Trace &trace, std::FILE *to)
      : ReplayOutput(trace, to), folder_([this](const trace::Nest &nest) {
          at_ = 0;
          print(nest, {}, 0);
        }) {}

private:
  void begin(const profile::AccessOrigin &origin) override {
    folder_.flush();
    put("# thread {}\n", origin.thread);
  }
  void write(const profile::AccessOrigin &, const profile::Access &access, char kind) override {
    trace::Nest nest;
    nest.site = access.site;
    nest.address = access.address;
    nest.size = access.size;
    nest.kind = kind;
    folder_.push(std::move(nest));
  }
  void end() override { folder_.flush(); }

  // `around`: the strides of each loop around it, by the number of the access in the outermost one.
  void print(const trace::Nest &nest, const std::vector<std::vector<int64_t>> &around,
             size_t depth) {
    const std::string margin(2 * depth, ' ');
    if (!nest.is_loop()) {
      put("{}{:x} {} {:x},{}", margin, site_at(nest.site).offset, nest.kind, nest.address,
          nest.size);
      for (const auto &strides : around)
        put(" {:+}", strides[at_]);
      put("\n");
      at_++;
      return;
    }
    put("{}loop {}\n", margin, nest.count);
    // The loop's own list begins with its first access.
    std::vector<std::vector<int64_t>> inner = around;
    inner.emplace_back(at_, 0);
    inner.back().insert(inner.back().end(), nest.strides.begin(), nest.strides.end());
    for (const trace::Nest &part : nest.body)
      print(part, inner, depth + 1);
  }

  trace::NestFolder folder_;
  size_t at_ = 0; // of the accesses of the outermost nest
};

} // namespace

void ReplayOutput::accesses(const profile::AccessOrigin &origin,
                            std::span<const profile::Access> batch) {
  if (origin.stream != origin_.stream || !has_origin_) {
    write_read();
    begin(origin);
  }
  origin_ = origin;
  has_origin_ = true;
  for (const profile::Access &each : batch) {
    if (read_ && each.is_write && each.address == read_->address && each.size == read_->size &&
        site_of(each) == site_of(*read_)) {
      read_.reset();
      write(origin_, each, 'M');
      continue;
    }
    write_read();
    if (each.is_write)
      write(origin_, each, 'S');
    else
      read_ = each;
  }
  constexpr size_t kMuch = 1 << 16; // bytes
  if (text_.size() > kMuch)
    write_text();
}

void ReplayOutput::write_text() {
  std::fwrite(text_.data(), 1, text_.size(), to_);
  text_.clear();
}

void ReplayOutput::write_read() {
  if (read_)
    write(origin_, *read_, 'L');
  read_.reset();
}

void ReplayOutput::finish() {
  write_read();
  end();
  write_text();
  if (std::fflush(to_) != 0 || std::ferror(to_))
    base::fail("accesses cannot be written: {}", std::strerror(errno));
}

std::unique_ptr<ReplayOutput> replay_output(const std::string &format, const trace::Trace &trace,
                                            std::FILE *to) {
  if (format == "text")
    return std::make_unique<TextOutput>(trace, to);
  if (format == "binary")
    return std::make_unique<BinaryOutput>(trace, to);
  if (format == "nests")
    return std::make_unique<NestsOutput>(trace, to);
  base::fail("--format {}: choose text, binary or nests", format);
}

} // namespace cli
