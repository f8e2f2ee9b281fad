// What an x86-64 ELF file says of its code: executable or shared object, position independent or
// not, stripped or not.
//
// Addresses are link-time addresses: those of the file at load bias 0. Everything is read when the
// object is made, from tables that are checked; the file's bytes are mapped, not copied.
#pragma once

#include "image/elf_tables.h"
#include "image/function_ranges.h"
#include "image/landing_pads.h"
#include "image/plt_stubs.h"
#include "image/relocations.h"
#include "image/segments.h"
#include "image/unwind_ranges.h"

#include "base/mapped_file.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace image {

// Instructions that the kernel begins anew where it has interrupted them (rseq).
struct RestartableSequence {
  uint64_t begin, end;
  uint64_t abort; // where the thread goes on then
};

class Executable {
public:
  // Both throw base::Failure, one sentence, for anything that is not an x86-64 ELF executable or
  // shared object. Tables that are damaged but not needed to load the file are read as far as they
  // make sense.
  explicit Executable(const std::string &path);
  Executable(std::vector<std::byte> bytes, std::string name);
  // What was handed out (spans, views, pointers) stays valid when the object moves.
  Executable(Executable &&) noexcept = default;

  const std::string &path() const { return path_; }
  // Of the bytes that were read, whatever is at path() now; empty if they have none.
  const std::vector<uint8_t> &build_id() const { return build_id_; }
  bool position_independent() const { return position_independent_; } // ET_DYN
  std::optional<uint64_t> entry() const { return entry_; }
  // Whether the file carries the runtime of `assay trace`, which nothing here shows.
  bool carries_runtime() const { return carries_runtime_; }
  // Whether the file says that its functions are changed as it runs (clang's XRay).
  bool patches_code() const { return patches_code_; }
  const std::vector<Segment> &segments() const { return segments_.all(); } // by address

  // File-backed bytes of [address, address + size) in the image; an empty span if not wholly there.
  std::span<const std::byte> bytes(uint64_t address, uint64_t size) const {
    return segments_.bytes(address, size);
  }
  // As many file-backed bytes as there are from `address` on within its segment (for decoding).
  std::span<const std::byte> bytes_from(uint64_t address) const {
    return segments_.bytes_from(address);
  }
  template <class T> std::optional<T> read(uint64_t address) const {
    static_assert(std::is_trivially_copyable_v<T>);
    auto found = bytes(address, sizeof(T));
    if (found.empty())
      return std::nullopt;
    T value;
    std::memcpy(&value, found.data(), sizeof(T));
    return value;
  }
  bool executable_at(uint64_t address) const;
  bool writable_at(uint64_t address) const;

  // The value that the 8 bytes at this address have once the loader has applied RELATIVE, RELR, 64,
  // GLOB_DAT and JUMP_SLOT relocations against symbols that this file defines, at load bias 0.
  // nullopt: the value is imported, chosen by a resolver (IRELATIVE, ifunc) or of another kind; a
  // relocated word overlaps it; or it is not in the file.
  std::optional<uint64_t> relocated_word(uint64_t address) const;

  // By begin, not overlapping, all of their bytes in the file and in executable segments. The first
  // stub-like range of a lazily bound PLT, which calls the loader, has no name.
  const std::vector<CodeRange> &functions() const { return functions_; }
  // Puts others in their place, of the same kind.
  void set_functions(std::vector<CodeRange> functions) { functions_ = std::move(functions); }
  // Where code is: executable sections, or segments of files without; by address, not overlapping.
  const std::vector<std::pair<uint64_t, uint64_t>> &code_regions() const { return code_regions_; }
  // The one that covers the address, or nullptr.
  const CodeRange *function_at(uint64_t address) const;

  // Addresses in code that relocations or, in files that are not position independent, aligned words
  // of data sections hold (function pointers, jump tables, .init_array); sorted, unique.
  const std::vector<uint64_t> &code_pointers() const { return code_pointers_; }
  // Those that data sections describe, as struct rseq_cs of <linux/rseq.h>. What a program describes on its stack is
  // not known.
  const std::vector<RestartableSequence> &restartable_sequences() const {
    return restartable_sequences_;
  }

  // "malloc" for the PLT stub that begins at this address (.plt, .plt.sec, .plt.got; lazily or now
  // bound); empty if there is none, or if it has no symbol (ifuncs of the file itself).
  std::string_view import_of_stub(uint64_t address) const;
  // "malloc" for the word that is filled with its address (GLOB_DAT, JUMP_SLOT, 64 without addend);
  // empty if none. The symbol may be one that this file defines as well.
  std::string_view import_of_slot(uint64_t address) const;

  // Frame description entries, by begin; they may overlap.
  const std::vector<UnwindRange> &unwind_ranges() const { return unwind_ranges_; }
  // By call_begin.
  const std::vector<LandingPad> &landing_pads() const { return landing_pads_; }
  // For who keeps many files and asks for functions alone: unwind_ranges(), landing_pads() and
  // code_pointers() are empty from then on, and their memory is given back, a third of what is kept
  // of a large C++ library.
  void drop_unwinding();

private:
  void release_pages() const {
    if (mapped_)
      mapped_->release_pages();
  }
  void read(std::span<const std::byte> file);
  void find_code_pointers(const ElfTables &tables);
  void note_restartable(uint64_t word, uint64_t abort);
  void add_go_functions(const ElfTables &tables);

  std::string path_;
  std::optional<base::MappedFile> mapped_; // either this
  std::vector<std::byte> owned_;           // or this
  std::vector<uint8_t> build_id_;
  bool position_independent_ = false, carries_runtime_ = false, patches_code_ = false;
  std::optional<uint64_t> entry_;
  Segments segments_;
  SymbolTable dynamic_symbols_;
  std::vector<RelocatedWord> relocated_words_;
  std::vector<CodeRange> functions_;
  std::vector<PltStub> stubs_;
  std::vector<std::pair<uint64_t, uint64_t>> code_regions_; // begin, end
  std::vector<uint64_t> code_pointers_;
  std::vector<RestartableSequence> restartable_sequences_;
  std::vector<UnwindRange> unwind_ranges_;
  std::vector<LandingPad> landing_pads_;
};

} // namespace image
