// A thread logs both ways at once, into a pair of streams, and their buffers come at different
// times. So decoded accesses wait in a queue for each side; what stands in front of both is
// compared and dropped. The memory is what one side is ahead of the other. Accesses are compared by
// file and offset of their instructions, because each log numbers its own. Refused: to compare two
// runs, in which addresses and the work of threads differ.
//
// What follows from the last bytes of a stream is decoded only if its thread has surely gone on:
// not in a program that was killed (but in its handlers that had returned), and not where a handler
// interrupted the stream at its end and may have jumped out.

#include "trace/compare.h"

#include "base/fail.h"
#include "base/units.h"

#include <filesystem>

namespace trace {

void Comparison::file(const TracedFile &file, const MovedModule &moved) {
  files_.push_back(file);
  decoder_.add_skeletons(file, moved.skeletons);
  decoder_.add(file, moved.groups);
}

void Comparison::mapping(const TracedMapping &mapping) {
  decoder_.add(mapping);
}

void Comparison::stream(const TracedStream &stream) {
  streams_[stream.number].of = stream;
  if (stream.in_handler())
    handlers_[stream.parent].add(stream);
}

void Comparison::buffer(const TracedBuffer &buffer) {
  if (difference_)
    return;
  Stream &stream = streams_[buffer.stream];
  stream.bytes = buffer.offset + buffer.data.size();
  decoded_ = &stream.of;
  try {
    decoder_.decode(stream.of, stream.position, buffer.data, 0, buffer.data.size(), output_);
  } catch (const base::Failure &failure) {
    difference_ = failure.what();
  }
}

// What was decoded of a stream is compared with what there is of its other log; the rest waits.
void Comparison::take(std::span<const profile::Access> accesses) {
  if (difference_)
    return;
  const bool is_of_singles = decoded_->is_of_singles();
  auto &[groups, singles] = pairs_[decoded_->pair].sides;
  auto &own = is_of_singles ? singles : groups, &other = is_of_singles ? groups : singles;
  for (; !other.empty() && !accesses.empty(); accesses = accesses.subspan(1)) {
    const profile::Access &there = other.front(), &here = accesses.front();
    if (!is_same(here, there)) {
      difference_ = fmt::format("thread {}, after {}: {} was regenerated where {} was made",
                                decoded_->thread, base::with_noun(compared_, "access", "accesses"),
                                describe(is_of_singles ? there : here),
                                describe(is_of_singles ? here : there));
      return;
    }
    compared_++;
    other.pop_front();
  }
  own.insert(own.end(), accesses.begin(), accesses.end());
}

bool Comparison::is_same(const profile::Access &a, const profile::Access &b) const {
  return a.address == b.address && a.size == b.size && a.is_write == b.is_write &&
         decoder_.sites()[a.site] == decoder_.sites()[b.site];
}

void Comparison::end(const TraceEnd &end) {
  untraced_threads_ = end.untraced_threads;
  const auto may_have_been_left = [&](uint32_t number, const Stream &stream) {
    const auto handlers = handlers_.find(number);
    return handlers != handlers_.end() && handlers->second.may_have_left(stream.bytes);
  };
  // A handler behind which its thread has logged on has returned, however the program ended.
  const auto has_gone_on = [&](const Stream &stream) {
    const auto parent = streams_.find(stream.of.parent);
    return stream.of.in_handler() &&
           (stream.of.has_returned() ||
            (parent != streams_.end() && parent->second.bytes > stream.of.parent_bytes));
  };
  for (auto &[number, stream] : streams_)
    if (!difference_ && (!end.was_killed() || has_gone_on(stream)) &&
        !may_have_been_left(number, stream)) {
      try {
        decoded_ = &stream.of;
        decoder_.finish(stream.position, output_);
      } catch (const base::Failure &failure) {
        difference_ = failure.what();
      }
    }
  for (const auto &[number, pair] : pairs_)
    unpaired_ += pair.sides[0].size() + pair.sides[1].size();
}

std::string Comparison::describe(const profile::Access &access) const {
  const profile::AccessSite &site = decoder_.sites()[access.site];
  std::string name = "?";
  for (const TracedFile &file : files_)
    if (file.number == site.file)
      name = std::filesystem::path(file.path).filename().string();
  return fmt::format("a {} of {} at {:#x} by {:#x} of {}", access.is_write ? "write" : "read",
                     base::with_noun(access.size, "byte"), access.address, site.offset, name);
}

} // namespace trace
