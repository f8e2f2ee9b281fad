// The framing: header, then records, each with a checksum.
//
// The problem: a profile may be cut short by a kill or a full disk, damaged in transit, written by
// another version, or not be a profile at all, and each of these wants another sentence. The idea:
// what is wrong with the file as a whole throws; what is wrong with its tail ends the reading, and
// the caller is told how much is missing. Searching for the next intact record after a damaged one
// was refused: deltas that follow a hole would be joined as if nothing were missing.

#include "profile/container.h"

#include "abi/version.h"
#include "base/units.h"

#include <cstring>

namespace profile {

ContainerReader::ContainerReader(std::span<const std::byte> bytes, std::string path, uint32_t kind)
    : bytes_(bytes), path_(std::move(path)) {
  constexpr size_t kMagicSize = sizeof(header_.magic);
  const char magic[] = ASSAY_FILE_MAGIC;
  static_assert(sizeof(magic) == kMagicSize + 1);
  if (bytes.size() < 5 || std::memcmp(bytes.data(), magic, 5) != 0)
    base::fail("{}: it is not a profile of assay; name a .assay file or a run's folder", path_);
  if (bytes.size() >= kMagicSize && std::memcmp(bytes.data(), magic, kMagicSize) != 0)
    base::fail("{}: its line ends were changed in a transfer; copy it again in binary mode", path_);
  if (bytes.size() < sizeof(header_))
    base::fail("{}: it ends within the file header ({} of {} bytes); run the program again", path_,
               bytes.size(), sizeof(header_));
  std::memcpy(&header_, bytes.data(), sizeof(header_));
  if (header_.version > ASSAY_ABI_VERSION)
    base::fail(
        "{}: it was written by a newer assay (format {}, this one reads {}); read it with that "
        "version",
        path_, header_.version, ASSAY_ABI_VERSION);
  // Every version so far only added to the one before.
  if (header_.version < 1)
    base::fail("{}: it states format 0, which never was; run the program again", path_);
  if (header_.checksum != assay_checksum(&header_, offsetof(AssayFileHeader, checksum), 0))
    base::fail("{}: its file header is damaged; copy it again, or run the program again", path_);
  if (header_.kind != kind && header_.kind == ASSAY_FILE_TRACE)
    base::fail("{}: it is a trace, not a profile; use `assay trace`", path_);
  if (header_.kind != kind && header_.kind == ASSAY_FILE_PROFILE)
    base::fail("{}: it is a profile, not a trace; use `assay report`, or `assay values report` for "
               "what `assay values record` wrote",
               path_);
  if (header_.kind != kind)
    base::fail(
        "{}: it is of kind {}, which this version does not know; read it with the assay that "
        "wrote it",
        path_, header_.kind);
  if (header_.header_size < sizeof(header_) || header_.header_size > bytes.size() ||
      header_.header_size % 8 != 0)
    base::fail("{}: its file header states an impossible size ({}); run the program again", path_,
               base::with_noun(header_.header_size, "byte"));
  position_ = header_.header_size;
}

bool ContainerReader::stop(uint64_t lost, std::string reason) {
  lost_bytes_ = lost;
  damage_ =
      fmt::format("{}: {}, so its last {} left out; what came before {} is shown", path_, reason,
                  base::with_noun(lost, "byte was", "bytes were"), lost == 1 ? "it" : "them");
  position_ = bytes_.size();
  return false;
}

bool ContainerReader::cut_off(uint64_t lost) {
  return stop(lost, fmt::format("it ends within a record at offset {}", position_));
}

bool ContainerReader::damaged(uint64_t lost, const char *how) {
  is_damaged_ = true;
  return stop(lost, fmt::format("the record at offset {} {}", position_, how));
}

bool ContainerReader::next(RecordView &record) {
  uint64_t left = bytes_.size() - position_;
  if (left == 0)
    return false;
  AssayRecordHeader header;
  if (left < sizeof(header))
    return cut_off(left);
  std::memcpy(&header, bytes_.data() + position_, sizeof(header));
  if (header.length > ASSAY_RECORD_MAX || header.fixed_size > header.length)
    return damaged(left, "has an impossible length");
  if (header.length > left - sizeof(header))
    return cut_off(left);
  const std::byte *body = bytes_.data() + position_ + sizeof(header);
  if (header.checksum != assay_record_checksum(&header, body, body + header.fixed_size))
    return damaged(left, "has a wrong checksum");
  record.kind = header.kind & ~ASSAY_RECORD_SPARSE;
  record.offset = position_;
  record.fixed = {body, header.fixed_size};
  record.tail = {body + header.fixed_size, header.length - header.fixed_size};
  if (header.kind & ASSAY_RECORD_SPARSE) {
    const size_t size = assay_make_whole(body, header.fixed_size, whole_.data());
    if (size == 0)
      return damaged(left, "states words that it does not have");
    record.fixed = {whole_.data(), size};
  }
  uint64_t size = sizeof(header) + header.length + assay_padding(header.length);
  position_ += std::min(size, left); // the padding of the very last record may be missing
  return true;
}

ContainerWriter::ContainerWriter(uint32_t pid, uint64_t start_unix_ns, uint32_t kind) {
  AssayFileHeader header = {};
  std::memcpy(header.magic, ASSAY_FILE_MAGIC, sizeof(header.magic));
  header.version = ASSAY_ABI_VERSION;
  header.header_size = sizeof(header);
  header.kind = kind;
  header.pid = pid;
  header.start_unix_ns = start_unix_ns;
  header.checksum = assay_checksum(&header, offsetof(AssayFileHeader, checksum), 0);
  auto raw = std::as_bytes(std::span(&header, 1));
  bytes_.assign(raw.begin(), raw.end());
}

ContainerWriter::ContainerWriter(const std::string &path, uint32_t pid, uint64_t start_unix_ns,
                                 uint32_t kind, base::Written written)
    : ContainerWriter(pid, start_unix_ns, kind) {
  file_ = std::make_unique<base::OutputFile>(path, written);
}

void ContainerWriter::raw_record(uint32_t kind, std::span<const std::byte> fixed,
                                 std::span<const std::byte> tail) {
  constexpr size_t kBuffered = 1 << 20;
  std::array<std::byte, 2 * ASSAY_SPARSE_MAX> sparse;
  if (fixed.size() >= ASSAY_SPARSE_MIN && fixed.size() <= ASSAY_SPARSE_MAX)
    if (size_t stored = assay_make_sparse(fixed.data(), fixed.size(), sparse.data())) {
      fixed = std::span(sparse).first(stored);
      kind |= ASSAY_RECORD_SPARSE;
    }
  uint64_t length = fixed.size() + tail.size();
  if (length > ASSAY_RECORD_MAX)
    base::fail("a record of {} bytes is longer than the format allows; split what it describes",
               length);
  AssayRecordHeader header = {kind, 0, static_cast<uint32_t>(length),
                              static_cast<uint32_t>(fixed.size())};
  size_t start = bytes_.size();
  bytes_.resize(start + sizeof(header));
  bytes_.insert(bytes_.end(), fixed.begin(), fixed.end());
  bytes_.insert(bytes_.end(), tail.begin(), tail.end());
  header.checksum = assay_record_checksum(&header, fixed.data(), tail.data());
  std::memcpy(bytes_.data() + start, &header, sizeof(header));
  bytes_.resize(bytes_.size() + assay_padding(length));
  if (file_ && bytes_.size() > kBuffered) {
    file_->write(bytes_);
    bytes_.clear();
  }
}

void ContainerWriter::flush() {
  file_->write(bytes_);
  bytes_.clear();
  file_->flush();
}

void ContainerWriter::commit() {
  file_->write(bytes_);
  bytes_.clear();
  file_->commit();
}

std::vector<std::byte> string_tail(std::span<const std::string> strings) {
  std::vector<std::byte> tail;
  for (const std::string &string : strings) {
    auto raw = std::as_bytes(std::span(string.c_str(), std::strlen(string.c_str()) + 1));
    tail.insert(tail.end(), raw.begin(), raw.end());
  }
  return tail;
}

} // namespace profile
