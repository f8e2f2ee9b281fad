// Two bytes that are no further apart than a line is long lie in one line or in two neighbouring ones;
// what lies between them lies in one of these. So of the accesses from one address, within a basic block,
// a chain of bytes is looked at whose links are as long as that allows. Alignment makes links longer: the
// bytes of a piece, as long as the address is aligned, share a line.
//
// Words are four bytes, so accesses are as long or longer, and what lies between two touched words
// may be untouched. So each touched word is checked by itself; but a check reads the marks of up to
// eight words at once, with a mask of those that it is about. Where alignment does not say in which
// word a byte lies, the words of n bytes are as many as they fill, and that of their last byte,
// which may be one more.
//
// A look spares every later one of the same bytes, along each path, up to a call or the head of a loop:
// there time may pass, and another snapshot begin.

#include "compiler/check_placement.h"

#include <algorithm>
#include <map>

#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace assay::compiler {
namespace {

constexpr size_t kClose = 4;    // accesses between looks that become one
constexpr size_t kMaxBytes = 3; // each of a look needs a register
constexpr size_t kMaxSeen = 48; // at a block's end; to forget some costs looks, no lines

// The bytes around an address, cut where its alignment says that a line may end.
class Pieces {
public:
  Pieces(uint64_t align, int64_t aligned) : align_((int64_t)align), aligned_(aligned) {}

  int64_t of(int64_t byte) const { return divideFloorSigned(byte - aligned_, align_); }
  int64_t first_byte(int64_t piece) const { return piece * align_ + aligned_; }
  int64_t last_byte(int64_t piece) const { return first_byte(piece) + align_ - 1; }

private:
  int64_t align_, aligned_;
};

// Not of those that programs call themselves: a mark or a reset ends a snapshot.
bool is_hook_of_tool(StringRef name) {
#define ASSAY_TOOL(tool, bit, is_default, question)                                                \
  if (name.starts_with("__assay_" #tool "_"))                                                      \
    return true;
#include "abi/tools.def"
  return false;
}

} // namespace

bool takes_time(const Instruction &instruction) {
  auto *call = dyn_cast<CallBase>(&instruction);
  if (!call)
    return false;
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(call)) // from setjmp on, anything may have been
    return intrinsic->getIntrinsicID() == Intrinsic::eh_sjlj_setjmp;
  const Function *callee = call->getCalledFunction();
  return !(callee && is_hook_of_tool(callee->getName())); // what another tool has put in takes none
}

void CheckPlacement::begin(BasicBlock &block) {
  block_ = &block;
  seen_before_ = options_.across_blocks ? seen_on_all_paths(block) : SeenBytes();
}

void CheckPlacement::end() {
  look_at_open();
  append_range(seen_before_, seen_);
  if (seen_before_.size() > kMaxSeen)
    seen_before_.erase(seen_before_.begin(), seen_before_.end() - kMaxSeen);
  seen_at_end_[block_] = std::move(seen_before_);
  seen_.clear();
}

void CheckPlacement::pause() {
  look_at_open();
  seen_before_.clear();
  seen_.clear();
}

void CheckPlacement::look_at_open() {
  for (const auto &[address, base] : open_)
    if (options_.reads_several)
      look_at_each(address, base);
    else
      look(address, base);
  open_.clear();
  join_wanted();
}

// CheckPlacement that follow each other closely become one, with one branch.
void CheckPlacement::join_wanted() {
  sort(wanted_, [](const Wanted &a, const Wanted &b) {
    return a.number != b.number ? a.number < b.number : a.order < b.order;
  });
  size_t before = 0; // number of the newest look's last access
  for (bool first = true; Wanted &wanted : wanted_) {
    if (!first && !options_.naive && wanted.number - before <= kClose &&
        checks_.back().bytes.size() + wanted.look.bytes.size() <= kMaxBytes) {
      checks_.back().after = wanted.look.after;
      append_range(checks_.back().bytes, wanted.look.bytes);
    } else {
      checks_.push_back(wanted.look);
    }
    before = wanted.number;
    first = false;
  }
  wanted_.clear();
}

// An expression as another one and a constant: accesses whose other ones are the same are of one address.
std::pair<const SCEV *, int64_t> CheckPlacement::split(const SCEV *expression) {
  if (auto *sum = dyn_cast<SCEVAddExpr>(expression)) {
    auto *constant = dyn_cast<SCEVConstant>(sum->getOperand(0));
    if (!constant || constant->getAPInt().getSignificantBits() > 48)
      return {expression, 0};
    SmallVector<const SCEV *, 4> others(drop_begin(sum->operands()));
    return {evolution_.getAddExpr(others), constant->getAPInt().getSExtValue()};
  }
  if (auto *in_loop = dyn_cast<SCEVAddRecExpr>(expression)) {
    auto [start, offset] = split(in_loop->getStart());
    if (offset == 0)
      return {expression, 0};
    SmallVector<const SCEV *, 4> operands(in_loop->operands());
    operands[0] = start;
    return {evolution_.getAddRecExpr(operands, in_loop->getLoop(), SCEV::FlagAnyWrap), offset};
  }
  return {expression, 0};
}

void CheckPlacement::add(Instruction &instruction, const Access &access) {
  auto [address, first] = split(evolution_.getSCEV(access.pointer));
  Base &base = open_[address];
  auto learn = [&](uint64_t align, int64_t aligned) {
    align = std::min(align, options_.line_bytes);
    if (align > base.align) {
      base.align = align;
      base.aligned = aligned;
    }
  };
  learn(access.align.value(), first);
  learn(1ULL << std::min(evolution_.getMinTrailingZeros(address), 12U), 0);
  uint64_t bytes = std::max<uint64_t>(access.bytes, 1); // of a scalable vector, the first
  base.touches.push_back(
      {added_++, &instruction, access.pointer, first, first + (int64_t)bytes - 1});
  if (options_.naive)
    pause();
}

// The touches from one address since the last pause, in their order.
void CheckPlacement::look(const SCEV *address, const Base &base) {
  const Pieces pieces(base.align, base.aligned);
  struct Touched {
    TouchedByte byte;
    const Touch *newest;
  };
  std::map<int64_t, Touched> touched; // by piece
  for (const Touch &touch : base.touches)
    if (!is_seen(seen_before_, {address, touch.first, touch.last})) {
      touched[pieces.of(touch.first)] = {{touch.pointer, 0}, &touch};
      touched.insert({pieces.of(touch.last), {{touch.pointer, touch.last - touch.first}, nullptr}});
      touched[pieces.of(touch.last)].newest = &touch;
    }
  auto linked = [&](int64_t piece, int64_t later) {
    return pieces.first_byte(later) - pieces.last_byte(piece) <= (int64_t)options_.line_bytes;
  };
  for (auto begin = touched.begin(); begin != touched.end();) {
    SmallVector<TouchedByte, 4> bytes = {begin->second.byte};
    auto last = begin;
    for (auto next = std::next(begin); next != touched.end() && linked(last->first, next->first);) {
      while (next != touched.end() && linked(last->first, next->first))
        ++next;
      last = std::prev(next);
      bytes.push_back(last->second.byte);
    }
    const Touch *newest = begin->second.newest;
    for (auto piece = begin; piece != std::next(last); ++piece)
      newest = piece->second.newest->number > newest->number ? piece->second.newest : newest;
    for (ArrayRef<TouchedByte> left = bytes; !left.empty();) {
      ArrayRef<TouchedByte> some = left.take_front(kMaxBytes);
      wanted_.push_back(
          {newest->number, wanted_.size(), {newest->instruction, {some.begin(), some.end()}}});
      left = left.drop_front(some.size());
    }
    seen_.push_back({address, pieces.first_byte(begin->first), pieces.last_byte(last->first)});
    begin = std::next(last);
  }
}

// Pieces that were touched one behind the other, in the order of memory.
struct CheckPlacement::Span {
  int64_t first, last; // pieces
  TouchedByte byte;    // in the first
  const Touch *newest;
};

void CheckPlacement::want(const Touch &newest, ArrayRef<TouchedByte> bytes) {
  wanted_.push_back(
      {newest.number, wanted_.size(), {newest.instruction, {bytes.begin(), bytes.end()}}});
}

void CheckPlacement::look_at_each(const SCEV *address, const Base &base) {
  const Pieces pieces(base.align, base.aligned);
  SmallVector<Span, 4> spans;
  for (const Touch &touch : base.touches)
    if (!is_seen(seen_before_, {address, touch.first, touch.last}))
      spans.push_back({pieces.of(touch.first),
                       pieces.of(touch.last),
                       {touch.pointer, pieces.first_byte(pieces.of(touch.first)) - touch.first},
                       &touch});
  sort(spans, [](const Span &a, const Span &b) {
    return a.first != b.first ? a.first < b.first : a.newest->number < b.newest->number;
  });
  size_t kept = 0;
  for (const Span &span : spans) {
    if (!kept || span.first > spans[kept - 1].last + 1) {
      spans[kept++] = span;
      continue;
    }
    Span &before = spans[kept - 1];
    before.last = std::max(before.last, span.last);
    if (span.newest->number > before.newest->number)
      before.newest = span.newest;
  }
  spans.truncate(kept);
  if (base.align == options_.line_bytes)
    look_at_aligned(spans);
  else
    for (const Span &span : spans)
      look_at_unaligned(span, base.align);
  for (const Span &span : spans)
    seen_.push_back({address, pieces.first_byte(span.first), pieces.last_byte(span.last)});
}

// A piece is a line. Lines of several spans that are near enough are one check's.
void CheckPlacement::look_at_aligned(SmallVector<Span, 4> spans) {
  for (size_t begin = 0; begin < spans.size();) {
    const int64_t first = spans[begin].first, end = first + kMaxTogether;
    TouchedByte byte = spans[begin].byte;
    const Touch *newest = spans[begin].newest;
    byte.mask = 0;
    for (size_t i = begin; i < spans.size() && spans[i].first < end; i++) {
      for (int64_t line = spans[i].first; line <= spans[i].last && line < end; line++)
        byte.mask |= 1U << (line - first);
      newest = spans[i].newest->number > newest->number ? spans[i].newest : newest;
    }
    want(*newest, byte);
    while (begin < spans.size() && spans[begin].last < end)
      begin++;
    if (begin < spans.size() && spans[begin].first < end) { // it reaches beyond the check
      spans[begin].byte.offset += (end - spans[begin].first) * (int64_t)options_.line_bytes;
      spans[begin].first = end;
    }
  }
}

void CheckPlacement::look_at_unaligned(const Span &span, uint64_t align) {
  const int64_t bytes = (span.last - span.first + 1) * (int64_t)align;
  const auto line = (int64_t)options_.line_bytes;
  SmallVector<TouchedByte, 4> wanted;
  for (int64_t at = 0; at < bytes; at += kMaxTogether * line) {
    int64_t lines = std::min<int64_t>((bytes - at + line - 1) / line, kMaxTogether);
    wanted.push_back({span.byte.pointer, span.byte.offset + at, (1U << lines) - 1});
  }
  if (span.last > span.first)
    wanted.push_back({span.byte.pointer, span.byte.offset + bytes - 1});
  for (ArrayRef<TouchedByte> left = wanted; !left.empty();
       left = left.drop_front(std::min(left.size(), kMaxBytes)))
    want(*span.newest, left.take_front(kMaxBytes));
}

bool CheckPlacement::is_seen(const SeenBytes &seen, const Seen &bytes) {
  return any_of(seen, [&](const Seen &one) {
    return one.address == bytes.address && one.first <= bytes.first && one.last >= bytes.last;
  });
}

// At the head of a loop some path was not followed yet.
CheckPlacement::SeenBytes CheckPlacement::seen_on_all_paths(BasicBlock &block) const {
  SeenBytes seen;
  bool first = true;
  for (BasicBlock *before : predecessors(&block)) {
    auto found = seen_at_end_.find(before);
    if (found == seen_at_end_.end())
      return {};
    if (first)
      seen = found->second;
    else
      erase_if(seen, [&](const Seen &bytes) { return !is_seen(found->second, bytes); });
    first = false;
  }
  return seen;
}

} // namespace assay::compiler
