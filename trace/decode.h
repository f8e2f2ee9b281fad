// From what was logged to the accesses.
#pragma once

#include "trace/trace_data.h"

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

namespace trace {

class GroupDecoder {
public:
  // Of a file; groups are numbered as they come, from file.first_group on.
  void add(const TracedFile &file, std::span<const Group> groups);
  void add(const TracedMapping &mapping);

  const std::vector<profile::AccessSite> &sites() const { return sites_; }

  // Bytes at the beginning of `data` that are whole groups; behind them, zeros or nothing that could be read.
  uint64_t whole_groups(std::span<const std::byte> data) const;

  // Decodes whole groups of `data` from `from` up to `to` or a little further, and appends their accesses; returns where it
  // stopped. Where there are many, `take` is called meanwhile: it uses them and empties the list. Throws Failure for what cannot be a
  // group.
  using Accesses = std::vector<profile::Access>;
  using Take = std::function<void(Accesses &)>;
  uint64_t decode(const TracedStream &stream, std::span<const std::byte> data, uint64_t from,
                  uint64_t to, Accesses &accesses, const Take &take) const;

private:
  struct Template { // an access, ready to be computed
    uint64_t offset;
    uint32_t site;
    uint32_t file;
    uint16_t size;
    bool write, in_image, thread_local_;
    uint8_t terms, times, left;
    AddressTerm term[2];
  };
  struct Shape {
    uint32_t first = 0, count = 0; // in templates_
    uint32_t bytes = 0;            // of the group; 0: there is no such group
    uint32_t loop = UINT32_MAX;    // in loops_
  };
  void expand(const Shape &shape, const std::byte *values, uint64_t image, uint64_t thread_base,
              Accesses &accesses, const Take &take) const;
  uint64_t bias_of(uint32_t program, uint32_t file) const;
  void repeat(const Template *first, const Template *end, const std::byte *values, uint64_t image,
              uint64_t thread_base, Accesses &accesses, const Take &take) const;

  std::vector<Shape> shapes_; // by number of the group
  std::vector<Template> templates_;
  std::vector<LoopOfGroup> loops_;
  std::vector<profile::AccessSite> sites_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> biases_; // by program and file
};

} // namespace trace
