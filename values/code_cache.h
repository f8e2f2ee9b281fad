// Decoded code for the interpreters: pages and entries (abi/published_code.h) in memory that they
// see, filled when a sample comes to code that is not there yet.
#pragma once

#include "abi/published_code.h"
#include "abi/samples.h"
#include "binary/decoder.h"
#include "profile/values.h"
#include "values/code_files.h"
#include "values/kernel_code.h"
#include "values/publish.h"
#include "values/published_code.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace values {

// What one cache leaves to the next: opened files, and the pages that most samples began in.
struct KeptCode {
  CodeFiles files;
  std::vector<KeptPage> pages;
  std::set<std::string> met_words; // of CodeCache::record_callers_in()
};

class CodeCache {
public:
  // Both spans are zero, and live as long as the cache. `pages[0]` and `entries[0]` are not used.
  CodeCache(std::span<assay_code_page> pages, std::span<assay_uop> entries, Kinds kinds);
  ~CodeCache();

  // The interpreters must learn the number of each page.
  using Announce = std::function<void(const assay_code_key &key, uint32_t page)>;
  // Goes on with what another cache has left. To be called first of all.
  void publish_again(KeptCode kept, const Announce &announce);
  // For another cache: this one is over.
  KeptCode take_kept();

  // The running kernel's code, and how its bytes are read; without it, its misses are not filled.
  using ReadKernel = std::function<std::vector<std::byte>(uint64_t address, size_t size)>;
  void decode_kernel(const KernelCode &kernel, ReadKernel read);
  // Of functions whose linkage name contains one of these words, the caller is recorded at each
  // instruction; "all" is of all. To be called before anything is filled.
  void record_callers_in(std::vector<std::string> functions);
  // Those of the words that no function had from which anything was decoded so far.
  std::vector<std::string> words_without_callers() const;

  enum class Filled { added, is_there, no_room, unreadable };
  struct Answer {
    Filled filled = Filled::unreadable;
    uint32_t page = 0;        // its number
    bool is_new_page = false; // the interpreters must learn that the miss's key means it
    // Where control goes from there in other pages of the same function: as misses, which no sample has had yet.
    std::vector<assay_miss> ahead;
  };
  // Decodes what a sample missed, and what follows it up to the end of its function or page. Reads
  // the file, or the process's memory where there is none.
  Answer fill(const assay_miss &miss);
  // The same of what no sample has missed: a place of a file, and only as the file says it.
  Answer fill_ahead(const assay_miss &miss);

  using Place = CodePlace;
  // Of a value's or a sample's `where`; nothing of 0.
  std::optional<Place> place(uint32_t where) const;
  // That began there: so its page is worth keeping.
  void count_sample(uint32_t where);
  // The bytes of the instruction there; none if it is not known.
  profile::InstructionBytes bytes(uint32_t where) const;
  struct Shape {
    unsigned length = 0; // bytes; 0: nothing is known
    bool jumps = false;  // the next instruction is not the one behind it, or is itself
  };
  Shape shape(uint32_t where) const;
  // Of a file, so that the instruction there stays what it is.
  bool is_stable(uint32_t where) const;
  // Where its page is linked, with the offset in it; 0: nothing is known.
  uint64_t linked(uint32_t where) const;
  // The place at a linked address in the same file; 0: its page is not there.
  uint32_t beside(uint32_t where, uint64_t linked) const;
  // What lies so many bytes behind an instruction that is there, in the same file; 0: its page is not there.
  uint32_t behind(uint32_t where, unsigned length) const;
  // What a sample calls an address of a process, if anything of its page is known, decoded or not; else 0.
  uint32_t where_at(uint32_t pid, uint64_t address);
  // Where an address of a process is, if it lies in a mapped file that is known.
  std::optional<Place> place_in(uint32_t pid, uint64_t address);

  const std::vector<CodeFile> &files() const;
  std::string path_of_build(const CodeFile &file) const; // CodeFiles::path_of_build()
  size_t open_files() const;
  // The share of its room that is taken, of pages or of entries.
  double fullness() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace values
