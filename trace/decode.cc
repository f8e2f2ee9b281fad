// When a file comes, its groups become flat templates: an access is then a sum of an offset, a base
// and at most two logged values. A stream holds either a group, which its number names, or what the
// skeleton that runs takes; the position says which. A long loop is handed on as a whole, so that a
// sink may count it without its iterations.
//
// The trap is the end of a stream. Buffers are zeros until they are written, and who was killed may
// have logged half a group. A group's number is written last: so number 0 means that nothing
// follows, and behind a number missing bytes are zeros.
//
// A trace may be damaged: what no program can have logged is a Failure, such as a group that does
// not exist or a loop of more than 2^40 iterations.

#include "trace/decode.h"

#include "base/fail.h"

#include <algorithm>
#include <cstring>

namespace trace {
namespace {

// Of one program: where its files lie. Most accesses are of few files.
class ImageBases {
public:
  ImageBases(const GroupDecoder &decoder, uint32_t program)
      : decoder_(decoder), program_(program) {}

  uint64_t of(uint32_t file) {
    Known &known = known_[file % std::size(known_)];
    if (known.file != file)
      known = {file, decoder_.bias_of(program_, file)};
    return known.base;
  }

private:
  struct Known {
    uint32_t file = UINT32_MAX;
    uint64_t base = 0;
  };
  const GroupDecoder &decoder_;
  const uint32_t program_;
  Known known_[8];
};

// Bytes that a thread may have written behind its position, where it ended: of one group.
constexpr uint64_t kMaxTornBytes = 4096;

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

// Decodes a part of a stream.
class GroupDecoder::Run {
public:
  Run(const GroupDecoder &decoder, const TracedStream &stream, StreamPosition &position,
      std::span<const std::byte> data, AccessOutput &output)
      : decoder_(decoder), stream_(stream), position_(position), data_(data), output_(output),
        images_(decoder, stream.program) {}

  uint64_t run(uint64_t from, uint64_t to) {
    at_ = from;
    while (at_ < to) {
      if (position_.is_at_end)
        base::fail("the trace is damaged: stream {} goes on behind its end", stream_.number);
      if (position_.skeleton.skeleton)
        skeleton(to);
      else
        group();
    }
    return at_;
  }

private:
  // What the skeleton that runs takes of the bytes up to `to`.
  void skeleton(uint64_t to) {
    at_ += run_skeleton(position_.skeleton, data_.subspan(at_, to - at_), false, output_);
    if (!position_.skeleton.skeleton || at_ == to)
      return;
    // A value that goes on behind `to`, or whose upper bytes are zeros, behind which nothing was
    // logged.
    const uint64_t left = data_.size() - at_, wanted = position_.skeleton.wanted;
    run_skeleton(position_.skeleton, padded(wanted), false, output_);
    at_ += std::min(left, wanted);
    position_.is_at_end = left < wanted;
  }

  void group() {
    uint32_t number = 0;
    std::memcpy(&number, data_.data() + at_, std::min<uint64_t>(sizeof number, data_.size() - at_));
    const auto &shapes = decoder_.shapes_;
    const bool is_known = number != 0 && number <= shapes.size() && shapes[number - 1].bytes;
    // The thread was ended while it wrote this, or had written it behind its position.
    if (number == 0 || (!is_known && data_.size() - at_ <= kMaxTornBytes)) {
      position_.is_at_end = true;
      at_ = data_.size();
      return;
    }
    if (!is_known)
      base::fail("the trace is damaged: stream {} has no group {} at byte {} of a buffer",
                 stream_.number, number, at_);
    const Shape &shape = shapes[number - 1];
    position_.skeleton.taken.values += (shape.bytes - 4) / 8;
    if (position_.executed)
      (*position_.executed)[number - 1] = true;
    // The number is written last: what lacks behind it are zeros, which the end of a stream is told
    // from by nothing.
    const bool is_whole = shape.bytes <= data_.size() - at_;
    values_ = (is_whole ? data_.data() + at_ : padded(shape.bytes).data()) + 4;
    at_ = std::min<uint64_t>(at_ + shape.bytes, data_.size());
    const Template *first = decoder_.templates_.data() + shape.first;
    if (shape.start != UINT32_MAX)
      begin_skeleton(decoder_.starts_[shape.start]);
    else if (shape.loop != UINT32_MAX)
      loop(decoder_.loops_[shape.loop], {first, shape.count});
    else if (shape.count && first->times != GroupAccess::kOnce) // they have a group of their own
      string_instruction({first, shape.count});
    else
      for (const Template &each : std::span(first, shape.count))
        output_.add({address_of(each), each.site, each.size, each.write});
  }

  // What is left of the data, with zeros behind it.
  std::span<const std::byte> padded(uint64_t bytes) {
    const uint64_t left = std::min(data_.size() - at_, bytes);
    padded_.assign(data_.begin() + static_cast<ptrdiff_t>(at_),
                   data_.begin() + static_cast<ptrdiff_t>(at_ + left));
    padded_.resize(bytes);
    return padded_;
  }

  uint64_t value(unsigned which) const {
    uint64_t value;
    std::memcpy(&value, values_ + 8 * which, sizeof value);
    return value;
  }

  // Without what values add to it.
  uint64_t base_of(const Template &access) {
    return access.offset + (access.in_image ? images_.of(access.file) : 0) +
           (access.thread_local_ ? stream_.thread_base : 0);
  }
  uint64_t address_of(const Template &access) {
    uint64_t address = base_of(access);
    for (uint8_t t = 0; t < access.terms; t++)
      address += value(access.term[t].value) << access.term[t].shift;
    return address;
  }

  void begin_skeleton(const Start &start) {
    SkeletonPosition &to = position_.skeleton;
    to.skeleton = &decoder_.skeletons_[start.skeleton];
    to.block = start.block;
    to.step = 0;
    to.variables[ASSAY_REG_FS] = stream_.thread_base;
    to.variables[ASSAY_REG_BIAS] = images_.of(start.file);
    for (unsigned v = 0; v < start.registers.size(); v++)
      to.variables[start.registers[v]] = value(v);
  }

  // All repetitions: its accesses take turns.
  void string_instruction(std::span<const Template> accesses) {
    uint64_t times = value(accesses.front().times);
    if (const uint8_t left = accesses.front().left; left != GroupAccess::kOnce)
      times -= value(left);
    check_repetitions(times);
    auto &body = output_.new_body();
    for (const Template &each : accesses)
      body.push_back({{address_of(each), each.site, each.size, each.write}, each.size});
    output_.loop(body, times);
  }

  // All iterations: of each access the address in the first one, and how far it goes in each.
  void loop(const LoopOfGroup &loop, std::span<const Template> accesses) {
    constexpr uint64_t kMax = uint64_t{1} << 40;
    const auto step = static_cast<uint64_t>(loop.steps[loop.counter]);
    const uint64_t distance = value(loop.counter) - value(0);
    const bool is_down = loop.steps[loop.counter] < 0;
    const uint64_t times = is_down ? (0 - distance) / (0 - step) : distance / step;
    if (times == 0 || times > kMax)
      base::fail("the trace has a loop of {} iterations: it is damaged", times);
    auto &body = output_.new_body();
    for (const Template &each : accesses) {
      uint64_t address = base_of(each), by = 0;
      for (uint8_t t = 0; t < each.terms; t++) {
        const AddressTerm &term = each.term[t];
        const auto of_term = static_cast<uint64_t>(loop.steps[term.value]);
        address += (value(term.value) - times * of_term) << term.shift;
        by += of_term << term.shift;
      }
      body.push_back({{address, each.site, each.size, each.write}, by});
    }
    output_.loop(body, times);
  }

  const GroupDecoder &decoder_;
  const TracedStream &stream_;
  StreamPosition &position_;
  const std::span<const std::byte> data_;
  AccessOutput &output_;
  ImageBases images_;
  uint64_t at_ = 0;
  const std::byte *values_ = nullptr; // of the group
  std::vector<std::byte> padded_;
};

uint64_t GroupDecoder::decode(const TracedStream &stream, StreamPosition &position,
                              std::span<const std::byte> data, uint64_t from, uint64_t to,
                              AccessOutput &output) const {
  const uint64_t end =
      Run(*this, stream, position, data, output).run(from, std::min<uint64_t>(to, data.size()));
  output.flush();
  return end;
}

void GroupDecoder::finish(StreamPosition &position, AccessOutput &output) const {
  if (position.skeleton.skeleton)
    run_skeleton(position.skeleton, {}, true, output);
  position.skeleton.skeleton = nullptr;
  output.flush();
}

} // namespace trace
