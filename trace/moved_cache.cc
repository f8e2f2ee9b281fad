// A file for each content:
//
//   +------+--------+------------------------------------------------+
//   | hash | Header | skeletons, groups, functions, code; compressed |
//   +------+--------+------------------------------------------------+
//
// The program executes what is read here, so a hash of all of it is checked each time, and files
// that others may have written are left alone. There is no version of the form: the name has a hash
// of the executable that wrote it.

#include "trace/moved_cache.h"

#include "base/byte_reader.h"
#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "image/content_hash.h"
#include "trace/trace_data.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace trace {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxBytes = 512 << 20; // of all files
constexpr const char *kExtension = ".moved";

constexpr size_t kHashSize = 32; // of all that follows it

struct Header {
  uint32_t skeletons, groups, functions, singles;
  uint64_t skeleton_bytes, group_bytes, function_bytes, code_bytes; // before they were compressed
};

// A file of this type that nobody else may write.
bool is_only_ours(const fs::path &path, mode_t type) {
  struct stat about = {};
  return stat(path.c_str(), &about) == 0 && (about.st_mode & S_IFMT) == type &&
         about.st_uid == geteuid() && !(about.st_mode & (S_IWGRP | S_IWOTH));
}

std::vector<std::byte> decompressed(std::span<const std::byte> bytes, uint64_t size) {
  std::vector<std::byte> raw(size);
  const size_t got = ZSTD_decompress(raw.data(), raw.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got) || got != size)
    base::fail("it cannot be decompressed");
  return raw;
}

MovedModule read_module(std::span<const std::byte> file) {
  base::ByteReader reader(file, "moved code");
  if (reader.text(kHashSize) != image::content_hash(reader.rest()))
    base::fail("moved code is damaged");
  const auto header = reader.read<Header>();
  const std::vector<std::byte> raw =
      decompressed(reader.rest(), header.skeleton_bytes + header.group_bytes +
                                      header.function_bytes + header.code_bytes);
  base::ByteReader parts(raw, "moved code");
  MovedModule moved;
  moved.skeletons = decode_skeletons(parts.bytes(header.skeleton_bytes), header.skeletons);
  moved.groups = decode_groups(parts.bytes(header.group_bytes), header.groups);
  moved.functions = decode_functions(parts.bytes(header.function_bytes), header.functions);
  moved.singles = header.singles;
  const auto code = parts.bytes(header.code_bytes);
  moved.file.assign(code.begin(), code.end());
  return moved;
}

} // namespace

MovedCache::MovedCache(fs::path folder, const MoveSettings &settings) : folder_(std::move(folder)) {
  if (folder_.empty())
    return;
  try {
    const base::MappedFile self("/proc/self/exe");
    suffix_ = fmt::format("-{}{}{}-{}{}", settings.log, settings.plans ? "p" : "",
                          settings.each_iteration ? "i" : "", image::content_hash(self.bytes()),
                          kExtension);
  } catch (const base::Failure &) { // no /proc
    folder_.clear();
  }
}

fs::path MovedCache::path_of(std::span<const std::byte> file) const {
  return folder_ / (image::content_hash(file) + suffix_);
}

std::optional<MovedModule> MovedCache::find(std::span<const std::byte> file) const {
  if (folder_.empty() || !is_only_ours(folder_, S_IFDIR))
    return std::nullopt;
  const fs::path path = path_of(file);
  if (!is_only_ours(path, S_IFREG))
    return std::nullopt;
  try {
    MovedModule moved = read_module(base::MappedFile(path.string()).bytes());
    std::error_code ignored;
    fs::last_write_time(path, fs::file_time_type::clock::now(), ignored); // used
    return moved;
  } catch (const base::Failure &) {
    return std::nullopt;
  }
}

void MovedCache::keep(std::span<const std::byte> file, const MovedModule &moved) const {
  if (folder_.empty())
    return;
  const std::vector<std::byte> skeletons = encode(moved.skeletons), groups = encode(moved.groups),
                               functions = encode(moved.functions);
  std::vector<std::byte> raw;
  for (const auto &part :
       {std::span(skeletons), std::span(groups), std::span(functions), std::span(moved.file)})
    raw.insert(raw.end(), part.begin(), part.end());
  const Header header = {static_cast<uint32_t>(moved.skeletons.size()),
                         static_cast<uint32_t>(moved.groups.size()),
                         static_cast<uint32_t>(moved.functions.size()),
                         moved.singles,
                         skeletons.size(),
                         groups.size(),
                         functions.size(),
                         moved.file.size()};
  std::vector<std::byte> contents(sizeof header + ZSTD_compressBound(raw.size()));
  std::memcpy(contents.data(), &header, sizeof header);
  const size_t size = ZSTD_compress(contents.data() + sizeof header,
                                    contents.size() - sizeof header, raw.data(), raw.size(), 1);
  if (ZSTD_isError(size))
    return;
  contents.resize(sizeof header + size);
  const std::string hash = image::content_hash(contents);
  try {
    std::error_code ignored;
    if (fs::create_directories(folder_, ignored))
      fs::permissions(folder_, fs::perms::owner_all, ignored);
    if (!is_only_ours(folder_, S_IFDIR))
      return;
    base::OutputFile to(path_of(file).string());
    to.write(std::as_bytes(std::span(hash)));
    to.write(contents);
    to.commit();
    make_room();
  } catch (const base::Failure &) { // the next recording analyses the file again
  }
}

void MovedCache::make_room() const {
  struct Kept {
    fs::file_time_type used;
    uintmax_t bytes;
    fs::path path;
  };
  std::vector<Kept> all;
  uintmax_t bytes = 0;
  std::error_code ignored;
  for (const auto &entry : fs::directory_iterator(folder_, ignored)) {
    // Also what was not finished.
    if (entry.path().filename().string().find(kExtension) == std::string::npos ||
        !entry.is_regular_file(ignored))
      continue;
    all.push_back({entry.last_write_time(ignored), entry.file_size(ignored), entry.path()});
    bytes += all.back().bytes;
  }
  std::sort(all.begin(), all.end(), [](const Kept &a, const Kept &b) { return a.used < b.used; });
  for (auto each = all.begin(); each != all.end() && bytes > kMaxBytes; ++each) {
    fs::remove(each->path, ignored);
    bytes -= each->bytes;
  }
}

} // namespace trace
