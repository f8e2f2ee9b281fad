// When a file comes, its groups become flat templates: an access is then a sum of an offset, a base and at most two logged values. A stream
// holds either a group, which its number names, or what the skeleton that runs takes; the position says which. A long loop is handed on
// as a whole, so that a sink may count it without its iterations.
//
// The trap is the end of a stream. Buffers are zeros until they are written, and who was killed may have logged half a group. A group's
// number is written last: so number 0 means that nothing follows, and behind a number missing bytes are zeros.
//
// A trace may be damaged: what no program can have logged is a Failure, such as a group that does not exist or a loop of more than 2^40
// iterations.

#include "trace/decode.h"

#include "base/fail.h"

#include <algorithm>
#include <cstring>

namespace trace {
namespace {

uint64_t value_at(const std::byte *values, unsigned which) {
  uint64_t value;
  std::memcpy(&value, values + 8 * which, sizeof value);
  return value;
}

} // namespace

void GroupDecoder::add_skeletons(const TracedFile &file, std::span<const Skeleton> skeletons) {
  auto [of, is_new] =
      skeletons_of_.try_emplace(file.number, static_cast<uint32_t>(skeletons_.size()), 0);
  of->second.second += static_cast<uint32_t>(skeletons.size());
  for (const Skeleton &skeleton : skeletons)
    skeletons_.emplace_back(skeleton, file.number, sites_);
}

void GroupDecoder::add(const TracedFile &file, std::span<const Group> groups) {
  if (shapes_.size() < size_t{file.first_group} + groups.size())
    shapes_.resize(size_t{file.first_group} + groups.size());
  uint64_t last = 0;
  for (size_t g = 0; g < groups.size(); g++) {
    Shape &shape = shapes_[file.first_group + g];
    shape.first = static_cast<uint32_t>(templates_.size());
    shape.count = static_cast<uint32_t>(groups[g].accesses.size());
    shape.bytes = groups[g].bytes();
    if (groups[g].loop) {
      if (groups[g].accesses.empty())
        base::fail("group {} is a loop without accesses", file.first_group + g);
      shape.loop = static_cast<uint32_t>(loops_.size());
      loops_.push_back(*groups[g].loop);
    }
    if (const auto &start = groups[g].start) {
      const auto &[first, count] = skeletons_of_[file.number];
      if (start->skeleton >= count ||
          start->block >= skeletons_[first + start->skeleton].blocks.size())
        base::fail("group {} begins block {} of skeleton {}, which does not exist",
                   file.first_group + g, start->block, start->skeleton);
      shape.start = static_cast<uint32_t>(starts_.size());
      Start &to = starts_.emplace_back();
      to.skeleton = first + start->skeleton;
      to.block = start->block;
      to.file = file.number;
      for (const GroupValue &value : groups[g].values)
        to.registers.push_back(value.reg);
    }
    for (const GroupAccess &access : groups[g].accesses) {
      if (sites_.empty() || last != access.pc || sites_.back().file != file.number)
        sites_.push_back({file.number, access.pc});
      last = access.pc;
      Template &to = templates_.emplace_back();
      to.offset = static_cast<uint64_t>(access.offset);
      to.site = static_cast<uint32_t>(sites_.size() - 1);
      to.file = file.number;
      to.size = access.size;
      to.write = access.write;
      to.in_image = access.in_image;
      to.thread_local_ = access.thread_local_;
      to.terms = access.terms;
      to.times = access.times;
      to.left = access.left;
      std::copy(std::begin(access.term), std::end(access.term), to.term);
    }
  }
}

void GroupDecoder::add(const TracedMapping &mapping) {
  biases_[{mapping.program, mapping.file}] = mapping.bias;
}

uint64_t GroupDecoder::bias_of(uint32_t program, uint32_t file) const {
  auto found = biases_.find({program, file});
  return found == biases_.end() ? 0 : found->second;
}

// The accesses of one string instruction take turns.
void GroupDecoder::repeat(const Template *first, const Template *end, const std::byte *values,
                          uint64_t image, uint64_t thread_base, AccessOutput &output) const {
  constexpr uint64_t kMax = uint64_t{1} << 47; // more bytes than a process has addresses
  uint64_t times = value_at(values, first->times);
  if (first->left != GroupAccess::kOnce)
    times -= value_at(values, first->left);
  if (times > kMax)
    base::fail("the trace has a string instruction of {} turns: it is damaged", times);
  std::vector<profile::AccessRun> body;
  for (const Template *each = first; each != end; each++) {
    uint64_t address =
        each->offset + (each->in_image ? image : 0) + (each->thread_local_ ? thread_base : 0);
    for (uint8_t t = 0; t < each->terms; t++)
      address += value_at(values, each->term[t].value) << each->term[t].shift;
    body.push_back({{address, each->site, each->size, each->write}, each->size});
  }
  output.loop(body, times);
}

// All iterations of a loop: of each access the address in the first one, and how far it goes in each.
void GroupDecoder::expand(const Shape &shape, const std::byte *values, uint64_t image,
                          uint64_t thread_base, AccessOutput &output) const {
  constexpr uint64_t kMax = uint64_t{1} << 40;
  const LoopOfGroup &loop = loops_[shape.loop];
  const auto step = static_cast<uint64_t>(loop.steps[loop.counter]);
  const uint64_t distance = value_at(values, loop.counter) - value_at(values, 0);
  const bool is_down = loop.steps[loop.counter] < 0;
  const uint64_t times = is_down ? (0 - distance) / (0 - step) : distance / step;
  if (times == 0 || times > kMax)
    base::fail("the trace has a loop of {} iterations: it is damaged", times);
  std::vector<profile::AccessRun> body;
  for (const Template *each = templates_.data() + shape.first, *end = each + shape.count;
       each != end; each++) {
    uint64_t address =
        each->offset + (each->in_image ? image : 0) + (each->thread_local_ ? thread_base : 0);
    uint64_t by = 0;
    for (uint8_t t = 0; t < each->terms; t++) {
      const AddressTerm &term = each->term[t];
      const auto of_term = static_cast<uint64_t>(loop.steps[term.value]);
      address += (value_at(values, term.value) - times * of_term) << term.shift;
      by += of_term << term.shift;
    }
    body.push_back({{address, each->site, each->size, each->write}, by});
  }
  output.loop(body, times);
}

void GroupDecoder::begin(const Start &start, const TracedStream &stream, const std::byte *values,
                         SkeletonPosition &position) const {
  position.skeleton = &skeletons_[start.skeleton];
  position.block = start.block;
  position.step = 0;
  position.variables[ASSAY_REG_FS] = stream.thread_base;
  position.variables[ASSAY_REG_BIAS] = bias_of(stream.program, start.file);
  for (unsigned v = 0; v < start.registers.size(); v++)
    position.variables[start.registers[v]] = value_at(values, v);
}

// Bytes that a thread may have written behind its position, where it ended: of one group.
constexpr uint64_t kMaxTornBytes = 4096;

uint64_t GroupDecoder::decode(const TracedStream &stream, StreamPosition &position,
                              std::span<const std::byte> data, uint64_t from, uint64_t to,
                              Accesses &accesses, const Take &take,
                              const TakeLoop &take_loop) const {
  AccessOutput output(accesses, take, take_loop);
  uint32_t file = 0;
  uint64_t image = 0;
  uint64_t at = from;
  to = std::min<uint64_t>(to, data.size());
  while (at < to) {
    if (position.is_at_end)
      base::fail("the trace is damaged: stream {} goes on behind its end", stream.number);
    if (position.skeleton.skeleton) {
      at += run_skeleton(position.skeleton, data.subspan(at, to - at), false, output);
      if (!position.skeleton.skeleton || at == to)
        continue;
      // A value that goes on behind `to`, or whose upper bytes are zeros, behind which nothing was logged.
      const uint64_t left = data.size() - at, wanted = position.skeleton.wanted;
      std::vector<std::byte> value(data.begin() + static_cast<ptrdiff_t>(at),
                                   data.begin() +
                                       static_cast<ptrdiff_t>(at + std::min(left, wanted)));
      value.resize(wanted);
      run_skeleton(position.skeleton, value, false, output);
      at += std::min(left, wanted);
      position.is_at_end = left < wanted;
      continue;
    }
    uint32_t number = 0;
    std::memcpy(&number, data.data() + at, std::min<uint64_t>(sizeof number, data.size() - at));
    const bool is_known = number != 0 && number <= shapes_.size() && shapes_[number - 1].bytes;
    // The thread was ended while it wrote this, or had written it behind its position.
    if (number == 0 || (!is_known && data.size() - at <= kMaxTornBytes)) {
      position.is_at_end = true;
      return data.size();
    }
    if (!is_known)
      base::fail("the trace is damaged: stream {} has no group {} at byte {} of a buffer, behind "
                 "what {:#x} of "
                 "file {} logged",
                 stream.number, number, at,
                 accesses.empty() ? 0 : sites_[accesses.back().site].offset,
                 accesses.empty() ? 0 : sites_[accesses.back().site].file);
    const Shape &shape = shapes_[number - 1];
    position.skeleton.taken.values += (shape.bytes - 4) / 8;
    if (position.executed)
      (*position.executed)[number - 1] = true;
    const std::byte *values = data.data() + at + 4;
    // The number is written last: what lacks behind it are zeros, which the end of a stream is told from by nothing.
    std::vector<std::byte> padded;
    if (shape.bytes > data.size() - at) {
      padded.assign(data.begin() + static_cast<ptrdiff_t>(at), data.end());
      padded.resize(shape.bytes);
      values = padded.data() + 4;
    }
    at = std::min<uint64_t>(at + shape.bytes, data.size());
    if (shape.start != UINT32_MAX) {
      begin(starts_[shape.start], stream, values, position.skeleton);
      continue;
    }
    const Template *end = templates_.data() + shape.first + shape.count;
    if (shape.loop != UINT32_MAX) {
      expand(shape, values, bias_of(stream.program, templates_[shape.first].file),
             stream.thread_base, output);
      continue;
    }
    for (const Template *each = templates_.data() + shape.first; each != end; each++) {
      if (each->file != file) {
        file = each->file;
        image = bias_of(stream.program, file);
      }
      if (each->times != GroupAccess::kOnce) {
        repeat(each, end, values, image, stream.thread_base,
               output); // they have a group of their own
        break;
      }
      uint64_t address = each->offset + (each->in_image ? image : 0) +
                         (each->thread_local_ ? stream.thread_base : 0);
      for (uint8_t t = 0; t < each->terms; t++)
        address += value_at(values, each->term[t].value) << each->term[t].shift;
      output.add({address, each->site, each->size, each->write});
    }
  }
  return at;
}

void GroupDecoder::finish(StreamPosition &position, Accesses &accesses, const Take &take) const {
  const TakeLoop none;
  AccessOutput output(accesses, take, none);
  if (position.skeleton.skeleton)
    run_skeleton(position.skeleton, {}, true, output);
  position.skeleton.skeleton = nullptr;
}

} // namespace trace
