#include "values/published_code.h"

#include <algorithm>
#include <atomic>

namespace values {

void PublishedCode::begin_page(uint32_t number, uint64_t link, bool is_stable) {
  pages_[number].link = link;
  pages_[number].is_stable = is_stable;
}

void PublishedCode::make_unstable(uint32_t number) {
  std::atomic_ref<uint32_t>(pages_[number].is_stable).store(0, std::memory_order_release);
}

bool PublishedCode::add(uint32_t number, uint64_t offset, std::span<const assay_uop> entries) {
  if (entry_count_ + entries.size() > entries_.size())
    return false;
  std::copy(entries.begin(), entries.end(),
            entries_.begin() + static_cast<ptrdiff_t>(entry_count_));
  std::atomic_ref<uint32_t>(pages_[number].first[offset])
      .store(static_cast<uint32_t>(entry_count_), std::memory_order_release);
  entry_count_ += entries.size();
  return true;
}

const assay_code_head *PublishedCode::head_at(uint32_t where) const {
  const uint32_t number = assay_page_of(where);
  if (number == 0 || number >= pages_.size())
    return nullptr;
  const uint32_t first = pages_[number].first[assay_offset_in_page(where)];
  return first ? reinterpret_cast<const assay_code_head *>(&entries_[first]) : nullptr;
}

KeptPage PublishedCode::kept(uint32_t number, const assay_code_key &key) const {
  KeptPage page;
  page.key = key;
  for (uint32_t offset = 0; offset < ASSAY_CODE_PAGE_BYTES; offset++) {
    const assay_code_head *head = head_at(assay_place_in_page(number, offset));
    if (!head)
      continue;
    const auto entries = entries_.subspan(pages_[number].first[offset], 1u + head->uops);
    page.instructions.push_back({offset, static_cast<uint32_t>(entries.size())});
    page.entries.insert(page.entries.end(), entries.begin(), entries.end());
  }
  return page;
}

void PublishedCode::publish_again(uint32_t number, const KeptPage &page) {
  std::span<const assay_uop> rest = page.entries;
  for (const KeptPage::Instruction &instruction : page.instructions) {
    if (!add(number, instruction.offset, rest.first(instruction.entries)))
      return;
    rest = rest.subspan(instruction.entries);
  }
}

} // namespace values
