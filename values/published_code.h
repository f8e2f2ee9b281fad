// The memory in which interpreters find decoded code: pages and entries (abi/published_code.h).
// They may look at a page while it is filled. So entries are written first, and `first` afterwards,
// with release; what an interpreter may be reading is never written again.
#pragma once

#include "abi/published_code.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace values {

// What was published of a page of a file or of the kernel, to be published again.
struct KeptPage {
  struct Instruction {
    uint32_t offset = 0;  // in the page, bytes
    uint32_t entries = 0; // with its head
  };
  assay_code_key key = {};
  std::vector<Instruction> instructions;
  std::vector<assay_uop> entries; // of these instructions, one after the other
};

class PublishedCode {
public:
  // Both are zero. `pages[0]` and `entries[0]` are not used.
  PublishedCode(std::span<assay_code_page> pages, std::span<assay_uop> entries)
      : pages_(pages), entries_(entries) {}

  // Pages are numbered one after the other; those behind the last have no memory.
  size_t pages() const { return pages_.size(); }
  size_t entries() const { return entries_.size(); }
  const assay_code_page &page(uint32_t number) const { return pages_[number]; }
  void begin_page(uint32_t number, uint64_t link, bool is_stable);
  // From now on each instruction's bytes are compared.
  void make_unstable(uint32_t number);
  // An instruction's head and micro-ops. False: there is no room.
  bool add(uint32_t number, uint64_t offset, std::span<const assay_uop> entries);
  // Null: nothing is published there.
  const assay_code_head *head_at(uint32_t where) const;
  // The share of the entries that is taken.
  double fullness() const { return double(entry_count_) / double(entries_.size()); }

  KeptPage kept(uint32_t number, const assay_code_key &key) const;
  // What has no room is left out.
  void publish_again(uint32_t number, const KeptPage &page);

private:
  std::span<assay_code_page> pages_;
  std::span<assay_uop> entries_;
  size_t entry_count_ = 1;
};

} // namespace values
