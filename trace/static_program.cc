// Nothing of the program moves, and nothing in it is overwritten, but for three things: its header
// says where the new program headers and the new entry are; its thread-local image has a copy with
// the runtime's in front of it; and relocations that a position-independent program applies to that
// image are led to the copy.
//
// The image of thread-local storage ends where fs points to, so what is put in front of it moves
// nothing: its distance from fs is known here, and the same in each thread.
//
// Refused: to write the moved code into the file as well. What is moved, and what it logs, is
// chosen when a recording begins.

#include "trace/static_program.h"

#include "abi/carried_runtime.h"
#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "image/carried_note.h"
#include "image/elf.h"
#include "image/executable.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <elf.h>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace trace {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr uint64_t kPage = 4096;
// Moved code has its tables behind it, and logs: of large programs it is six times the original.
constexpr uint64_t kRoomForCode = 32, kMinRoom = 1 << 20, kMaxRoom = 512 << 20;
constexpr uint64_t kMaxProgram = 1 << 30; // instructions reach 2 GiB
// A frame may become several.
constexpr uint64_t kRoomForFrames = 4, kMinFrames = 4096;

uint64_t up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

std::span<const std::byte> bytes_at(std::span<const std::byte> file, uint64_t offset,
                                    uint64_t size) {
  if (offset > file.size() || file.size() - offset < size)
    base::fail("a table of the file ends early; copy or build it again");
  return file.subspan(offset, size);
}

template <class Row> Row row_at(std::span<const std::byte> file, uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<Row>);
  Row row;
  std::memcpy(&row, bytes_at(file, offset, sizeof row).data(), sizeof row);
  return row;
}

template <class Row> void put(Bytes &bytes, uint64_t offset, const Row &row) {
  std::memcpy(bytes.data() + offset, &row, sizeof row);
}

template <class Row> void append(Bytes &bytes, const Row &row) {
  const auto *begin = reinterpret_cast<const std::byte *>(&row);
  bytes.insert(bytes.end(), begin, begin + sizeof row);
}

// An ELF file with its program headers.
struct Elf {
  explicit Elf(const fs::path &path) : file(path.string()) {
    header = row_at<Elf64_Ehdr>(file.bytes(), 0);
    for (uint64_t i = 0; i < header.e_phnum; i++)
      headers.push_back(row_at<Elf64_Phdr>(file.bytes(), header.e_phoff + i * sizeof(Elf64_Phdr)));
  }
  const Elf64_Phdr *find(uint32_t type) const {
    const auto at = std::ranges::find(headers, type, &Elf64_Phdr::p_type);
    return at == headers.end() ? nullptr : &*at;
  }
  // Behind all that is loaded, in memory or in the file.
  uint64_t end(Elf64_Addr Elf64_Phdr::*begin, Elf64_Xword Elf64_Phdr::*size) const {
    uint64_t end = 0;
    for (const Elf64_Phdr &each : headers)
      if (each.p_type == PT_LOAD)
        end = std::max(end, each.*begin + each.*size);
    return end;
  }
  uint64_t end_in_memory() const { return end(&Elf64_Phdr::p_vaddr, &Elf64_Phdr::p_memsz); }
  uint64_t end_in_file() const { return end(&Elf64_Phdr::p_offset, &Elf64_Phdr::p_filesz); }
  uint64_t size_in_memory() const {
    uint64_t begin = UINT64_MAX;
    for (const Elf64_Phdr &each : headers)
      if (each.p_type == PT_LOAD)
        begin = std::min(begin, each.p_vaddr);
    return end_in_memory() - begin;
  }
  uint64_t offset_of(uint64_t address) const {
    for (const Elf64_Phdr &each : headers)
      if (each.p_type == PT_LOAD && address >= each.p_vaddr &&
          address - each.p_vaddr < each.p_filesz)
        return address - each.p_vaddr + each.p_offset;
    base::fail("an address of the file's tables is not in the file; copy or build it again");
  }

  base::MappedFile file;
  Elf64_Ehdr header;
  std::vector<Elf64_Phdr> headers;
};

Elf64_Phdr header_of(uint32_t type, uint32_t flags, uint64_t align) {
  Elf64_Phdr header = {};
  header.p_type = type;
  header.p_flags = flags;
  header.p_align = align;
  return header;
}

constexpr AssayUnwindHeader kUsualUnwind = {1, ASSAY_UNWIND_ENCODINGS, 0, 0};

class Writer {
public:
  Writer(const fs::path &program, const fs::path &runtime)
      : path_(program.string()), executable_(check(path_)), program_(program), runtime_(runtime) {}

  void write(const fs::path &to) {
    place();
    describe();
    out_.assign(program_.file.bytes().begin(), program_.file.bytes().end());
    const auto runtime = runtime_.file.bytes().first(runtime_.end_in_file());
    out_.resize(runtime_offset_);
    out_.insert(out_.end(), runtime.begin(), runtime.end());
    out_.resize(own_offset_);
    put_carried();
    put_headers();
    lead_relocations();
    out_.insert(out_.end(), own_.begin(), own_.end());
    base::OutputFile file(to.string());
    file.write(out_);
    file.commit();
    std::error_code failed;
    fs::permissions(to, fs::status(path_).permissions() & fs::perms::all, failed);
    if (failed)
      base::fail("{}: it cannot be made executable: {}", to.string(), failed.message());
  }

private:
  // What no table of the file says otherwise is believed from here on.
  static image::Executable check(const std::string &path) {
    image::Executable executable(path);
    if (executable.carries_runtime())
      base::fail("{}: it can be traced as it is (assay trace record)", path);
    if (image::needs_loader(path))
      base::fail("{}: it is not linked statically, and can be traced as it is (assay trace record)",
                 path);
    if (!executable.entry())
      base::fail("{}: it has no entry; name a program", path);
    if (executable.patches_code())
      base::fail("{}: its functions are changed as it runs (XRay), and moved ones would not be; "
                 "build it without -fxray-instrument",
                 path);
    if (std::ranges::any_of(executable.functions(), [](const image::CodeRange &range) {
          return range.found_by == image::FoundBy::go;
        }))
      base::fail("{}: it is a program in Go, whose functions cannot be moved (they find their "
                 "frames by return addresses)",
                 path);
    return executable;
  }

  // Where everything lies, in memory and in the file.
  void place() {
    if (const Elf64_Phdr *threads = program_.find(PT_TLS))
      threads_ = *threads;
    const uint64_t align = std::max<uint64_t>(threads_.p_align, 1);
    if (std::has_single_bit(align) && align > kPage)
      base::fail("{}: it has thread-local data that is aligned to more than {} bytes, which a copy "
                 "cannot have; lower the alignment",
                 path_, kPage);
    if (!std::has_single_bit(align) || threads_.p_memsz > kMaxProgram ||
        threads_.p_filesz > threads_.p_memsz)
      base::fail("{}: its thread-local storage is described wrongly; copy or build it again",
                 path_);
    if (threads_.p_vaddr % align)
      base::fail("{}: its thread-local storage does not begin where it says; link it with another "
                 "linker (-fuse-ld=bfd, -fuse-ld=lld)",
                 path_);
    runtime_address_ = up(program_.end_in_memory(), kPage);
    if (program_.size_in_memory() > kMaxProgram)
      base::fail(
          "{}: it takes more than 1 GiB of addresses, so its moved code would be out of reach",
          path_);
    runtime_offset_ = up(program_.file.bytes().size(), kPage);
    own_address_ = up(runtime_address_ + runtime_.end_in_memory(), kPage);
    own_offset_ = up(runtime_offset_ + runtime_.end_in_file(), kPage);
    const Elf64_Phdr &own_threads = *runtime_.find(PT_TLS);
    thread_align_ = std::max(align, own_threads.p_align);
    const uint64_t program_bytes = up(threads_.p_memsz, align); // up to where fs points to
    carried_.self = runtime_address_ + carried_symbol();
    carried_.entry = *executable_.entry();
    carried_.thread_template = runtime_address_ + own_threads.p_vaddr;
    carried_.thread_template_bytes = own_threads.p_filesz;
    thread_bytes_ = up(own_threads.p_memsz + program_bytes, thread_align_) - program_bytes;
    carried_.thread_offset = -static_cast<int64_t>(thread_bytes_ + program_bytes);
  }

  uint64_t carried_symbol() const {
    for (const image::DataSymbol &symbol : image::data(runtime_path()).symbols)
      if (symbol.linkage_name == "assay_carried_runtime" && symbol.size == sizeof carried_)
        return symbol.address;
    base::fail("{}: it is of another version of Assay; build or install Assay again",
               runtime_path());
  }
  std::string runtime_path() const { return runtime_.file.path(); }

  // The segment behind the runtime.
  void describe() {
    const auto loads =
        static_cast<uint64_t>(std::ranges::count(runtime_.headers, PT_LOAD, &Elf64_Phdr::p_type));
    carried_.header_count = program_.headers.size() + loads + 2; // its own segment, the note
    for (const uint32_t type : {PT_GNU_EH_FRAME, PT_TLS})
      carried_.header_count += program_.find(type) ? 0 : 1;
    carried_.headers = own_address_;
    own_.resize(carried_.header_count * sizeof(Elf64_Phdr));
    put_note();
    put_thread_image();
    put_unwind_header();
    uint64_t code = 0;
    for (const auto &[begin, end] : executable_.code_regions())
      code += end - begin;
    carried_.code_room = up(carried_.unwind_header + sizeof(AssayUnwindHeader) +
                                carried_.unwind_room * sizeof(AssayUnwindEntry),
                            kPage);
    carried_.code_room_bytes = up(std::clamp(kRoomForCode * code, kMinRoom, kMaxRoom), kPage);
  }

  void put_note() {
    const Elf64_Phdr *unwind = program_.find(PT_GNU_EH_FRAME);
    const image::CarriedNote note = {runtime_address_, carried_.entry,
                                     unwind ? unwind->p_vaddr : 0};
    note_begin_ = own_.size();
    append(own_, Elf64_Nhdr{sizeof image::kCarriedNoteName, sizeof note, image::kCarriedNoteType});
    append(own_, image::kCarriedNoteName);
    own_.resize(up(own_.size(), 4));
    append(own_, note);
    note_end_ = own_.size();
  }

  void put_thread_image() {
    own_.resize(up(own_address_ + own_.size(), thread_align_) - own_address_);
    carried_.thread_image = own_address_ + own_.size();
    own_.resize(own_.size() + thread_bytes_);
    const auto image = bytes_at(program_.file.bytes(), threads_.p_offset, threads_.p_filesz);
    own_.insert(own_.end(), image.begin(), image.end());
    own_.resize(up(own_.size(), 8));
  }

  void put_unwind_header() {
    std::vector<std::pair<uint64_t, uint64_t>> entries; // code, frame; addresses
    uint64_t frames = add_entries(runtime_, runtime_address_, entries);
    if (program_.find(PT_GNU_EH_FRAME)) {
      const auto of_runtime = std::exchange(entries, {});
      frames = add_entries(program_, 0, entries);
      entries.insert(entries.end(), of_runtime.begin(), of_runtime.end());
    }
    const uint64_t at = own_address_ + own_.size();
    AssayUnwindHeader header = kUsualUnwind;
    header.frames = static_cast<int32_t>(frames - (at + offsetof(AssayUnwindHeader, frames)));
    header.count = static_cast<uint32_t>(entries.size());
    append(own_, header);
    for (const auto &[code, frame] : entries)
      append(own_,
             AssayUnwindEntry{static_cast<int32_t>(code - at), static_cast<int32_t>(frame - at)});
    carried_.unwind_header = at;
    carried_.unwind_room =
        entries.size() + kRoomForFrames * executable_.unwind_ranges().size() + kMinFrames;
  }

  // Of the file's own table; returns where its .eh_frame lies.
  uint64_t add_entries(const Elf &elf, uint64_t bias,
                       std::vector<std::pair<uint64_t, uint64_t>> &entries) const {
    const Elf64_Phdr &table = *elf.find(PT_GNU_EH_FRAME);
    const auto header = row_at<AssayUnwindHeader>(elf.file.bytes(), table.p_offset);
    if (header.version != kUsualUnwind.version ||
        !std::ranges::equal(header.encodings, kUsualUnwind.encodings))
      base::fail("{}: its .eh_frame_hdr is not as linkers write it; link it with another linker "
                 "(-fuse-ld=bfd, -fuse-ld=lld)",
                 path_);
    const uint64_t at = bias + table.p_vaddr;
    auto far = [&](int32_t distance) { return at + static_cast<uint64_t>(int64_t{distance}); };
    for (uint64_t i = 0; i < header.count; i++) {
      const auto entry = row_at<AssayUnwindEntry>(
          elf.file.bytes(), table.p_offset + sizeof header + i * sizeof(AssayUnwindEntry));
      entries.emplace_back(far(entry.code), far(entry.frame));
    }
    return far(header.frames) + offsetof(AssayUnwindHeader, frames);
  }

  void put_carried() {
    put(out_, runtime_offset_ + runtime_.offset_of(carried_symbol()), carried_);
  }

  void put_headers() {
    std::vector<Elf64_Phdr> headers = program_.headers;
    // In place of the program's of this type, or behind all.
    auto replace = [&](const Elf64_Phdr &header) {
      if (const auto at = std::ranges::find(headers, header.p_type, &Elf64_Phdr::p_type);
          at != headers.end())
        *at = header;
      else
        headers.push_back(header);
    };
    const uint64_t bytes = carried_.header_count * sizeof(Elf64_Phdr);
    if (program_.find(PT_PHDR))
      replace(own_part(PT_PHDR, PF_R, 8, 0, bytes, bytes));
    for (Elf64_Phdr each : runtime_.headers)
      if (each.p_type == PT_LOAD) {
        each.p_offset += runtime_offset_;
        each.p_vaddr += runtime_address_;
        each.p_paddr += runtime_address_;
        headers.push_back(each);
      }
    headers.push_back(own_part(PT_LOAD, PF_R | PF_W, kPage, 0, own_.size(),
                               carried_.code_room + carried_.code_room_bytes - own_address_));
    headers.push_back(
        own_part(PT_NOTE, PF_R, 4, note_begin_, note_end_ - note_begin_, note_end_ - note_begin_));
    replace(own_part(PT_TLS, PF_R, thread_align_, carried_.thread_image - own_address_,
                     thread_bytes_ + threads_.p_filesz, thread_bytes_ + threads_.p_memsz));
    const uint64_t unwind = carried_.unwind_header - own_address_;
    replace(own_part(PT_GNU_EH_FRAME, PF_R, 4, unwind, own_.size() - unwind,
                     sizeof(AssayUnwindHeader) + carried_.unwind_room * sizeof(AssayUnwindEntry)));
    std::memcpy(own_.data(), headers.data(), headers.size() * sizeof(Elf64_Phdr));
    Elf64_Ehdr header = program_.header;
    header.e_phoff = own_offset_;
    header.e_phnum = static_cast<uint16_t>(headers.size());
    header.e_entry = runtime_address_ + runtime_.header.e_entry;
    put(out_, 0, header);
  }

  // A program header for what lies at `begin` in the segment behind the runtime.
  Elf64_Phdr own_part(uint32_t type, uint32_t flags, uint64_t align, uint64_t begin,
                      uint64_t file_size, uint64_t size) const {
    Elf64_Phdr header = header_of(type, flags, align);
    header.p_offset = own_offset_ + begin;
    header.p_vaddr = header.p_paddr = own_address_ + begin;
    header.p_filesz = file_size;
    header.p_memsz = size;
    return header;
  }

  // The program relocates itself: words of its thread-local image are those of the copy.
  void lead_relocations() {
    const Elf64_Phdr *dynamic = program_.find(PT_DYNAMIC);
    if (!dynamic)
      return;
    uint64_t table = 0, bytes = 0;
    for (uint64_t at = 0; at < dynamic->p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto each = row_at<Elf64_Dyn>(program_.file.bytes(), dynamic->p_offset + at);
      if (each.d_tag == DT_RELA)
        table = each.d_un.d_ptr;
      else if (each.d_tag == DT_RELASZ)
        bytes = each.d_un.d_val;
      else if (each.d_tag == DT_RELR)
        base::fail("{}: it has packed relocations, which a copy cannot have yet; link it without "
                   "them (-z nopack-relative-relocs)",
                   path_);
      else if (each.d_tag == DT_NULL)
        break;
    }
    const uint64_t distance = carried_.thread_image + thread_bytes_ - threads_.p_vaddr;
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= bytes; at += sizeof(Elf64_Rela)) {
      const uint64_t offset = program_.offset_of(table + at);
      auto each = row_at<Elf64_Rela>(out_, offset);
      if (each.r_offset - threads_.p_vaddr >= threads_.p_filesz) // not in it; none without one
        continue;
      each.r_offset += distance;
      put(out_, offset, each);
    }
  }

  std::string path_;
  image::Executable executable_;
  Elf program_, runtime_;
  Elf64_Phdr threads_ = header_of(PT_TLS, PF_R, 1);   // the program's; empty if it has none
  uint64_t thread_align_ = 0;                         // of what is in each thread
  uint64_t thread_bytes_ = 0;                         // of the runtime's there
  uint64_t runtime_address_ = 0, runtime_offset_ = 0; // of the runtime's first byte
  uint64_t own_address_ = 0, own_offset_ = 0;         // of the segment behind it
  uint64_t note_begin_ = 0, note_end_ = 0;            // within that
  AssayCarriedRuntime carried_ = {};
  Bytes own_, out_;
};

} // namespace

void write_static_program(const fs::path &program, const fs::path &runtime, const fs::path &to) {
  std::error_code ignored;
  if (fs::equivalent(program, to, ignored))
    base::fail("-o {}: it is the program itself; name another file", to.string());
  Writer(program, runtime).write(to);
}

} // namespace trace
