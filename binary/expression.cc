// Normal forms. The rules that keep them exact:
//
//   sums            modulo 2^64; coefficients too
//   cut to w bytes  inside, everything is modulo 2^8w: extensions of at least w bytes fall away,
//                   coefficients and offsets are kept sign-extended from w bytes
//   an extension    falls away where the value is known to fit
//
// A general simplifier (or an SMT solver's) was refused: addresses of compiled code need these rules
// and no others, and what is not a sum only has to be told apart from what is.

#include "binary/expression.h"

#include "abi/uop_step.h"
#include "binary/effects.h"

#include <algorithm>
#include <bit>

namespace binary {
namespace {

constexpr size_t kMaxTerms = 24; // longer sums are taken as they are

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

uint64_t mask_of(unsigned width) {
  return uop_mask(width);
}

uint64_t hash_of(const Expr &node, std::span<const Term> terms) {
  uint64_t hash =
      mix(static_cast<uint64_t>(node.kind) << 16 | node.width << 8 | node.op, node.value);
  for (const Term &term : terms)
    hash = mix(mix(hash, term.of.v), term.coefficient);
  return hash;
}

bool is_same(const Term &a, const Term &b) {
  return a.of == b.of && a.coefficient == b.coefficient;
}

// The top bits of a hash, above those that a node's index takes in a table of so many slots.
uint32_t tag_of(uint64_t hash, size_t slots) {
  return static_cast<uint32_t>(hash >> 32) & ~static_cast<uint32_t>(slots - 1);
}

} // namespace

ExprId Expressions::add_node(Expr node, std::span<const Term> terms) {
  node.first = static_cast<uint32_t>(terms_.size());
  const ExprId id{static_cast<uint32_t>(nodes_.size())};
  const uint64_t most = bound(node, terms);
  node.bits = (most & (most + 1)) == 0 ? static_cast<uint8_t>(std::popcount(most)) : kExact;
  if (node.bits == kExact && node.kind != ExprKind::constant)
    exact_.emplace_back(id, most);
  terms_.insert(terms_.end(), terms.begin(), terms.end());
  nodes_.push_back(node);
  return id;
}

uint64_t Expressions::most(ExprId id) const {
  const Expr &node = nodes_[id.v];
  if (node.kind == ExprKind::constant)
    return node.value;
  if (node.bits != kExact)
    return node.bits == 64 ? UINT64_MAX : (uint64_t{1} << node.bits) - 1;
  return std::lower_bound(exact_.begin(), exact_.end(), id,
                          [](const auto &each, ExprId wanted) { return each.first.v < wanted.v; })
      ->second;
}

void Expressions::grow_table() {
  const size_t slots = std::max<size_t>(256, 2 * table_.size());
  table_ = std::vector<uint32_t>(); // before the new one is made
  table_.resize(slots);
  for (uint32_t i = 0; i < nodes_.size(); i++) {
    if (nodes_[i].kind == ExprKind::unknown)
      continue;
    const uint64_t hash = hash_of(nodes_[i], terms({i}));
    size_t slot = hash & (slots - 1);
    while (table_[slot])
      slot = (slot + 1) & (slots - 1);
    table_[slot] = tag_of(hash, slots) | (i + 1);
  }
}

ExprId Expressions::intern(Expr node, std::span<const Term> terms) {
  if (3 * table_.size() < 4 * (nodes_.size() + 1))
    grow_table();
  const size_t last = table_.size() - 1;
  const uint64_t hash = hash_of(node, terms);
  const uint32_t tag = tag_of(hash, table_.size());
  size_t slot = hash & last;
  for (; table_[slot]; slot = (slot + 1) & last) {
    if ((table_[slot] ^ tag) > last)
      continue;
    const uint32_t index = (table_[slot] ^ tag) - 1;
    const Expr &other = nodes_[index];
    auto others = this->terms({index});
    if (other.kind == node.kind && other.width == node.width && other.op == node.op &&
        other.value == node.value &&
        std::equal(terms.begin(), terms.end(), others.begin(), others.end(), is_same))
      return {index};
  }
  const ExprId added = add_node(node, terms);
  table_[slot] = tag | (added.v + 1);
  return added;
}

ExprId Expressions::constant(uint64_t value) {
  return intern({.kind = ExprKind::constant, .value = value}, {});
}
ExprId Expressions::definition(uint64_t which, unsigned width) {
  return intern(
      {.kind = ExprKind::definition, .width = static_cast<uint8_t>(width), .value = which}, {});
}
ExprId Expressions::counter(uint64_t loop) {
  return intern({.kind = ExprKind::counter, .value = loop}, {});
}
ExprId Expressions::unknown() {
  return add_node({.kind = ExprKind::unknown, .value = nodes_.size()}, {}); // nobody looks for it
}
ExprId Expressions::load(unsigned width, ExprId address, uint64_t state) {
  Term operand{address, 1};
  return intern({.kind = ExprKind::load, .width = static_cast<uint8_t>(width), .value = state},
                {&operand, 1});
}

void Expressions::append(std::vector<Term> &to, uint64_t &offset, ExprId id,
                         uint64_t factor) const {
  const Expr &node = nodes_[id.v];
  if (node.kind == ExprKind::constant) {
    offset += factor * node.value;
  } else if (node.kind == ExprKind::sum) {
    offset += factor * node.value;
    for (const Term &term : terms(id))
      to.push_back({term.of, factor * term.coefficient});
  } else {
    to.push_back({id, factor});
  }
}

ExprId Expressions::sum(uint64_t offset, std::vector<Term> &terms) {
  auto less = [](const Term &a, const Term &b) { return a.of < b.of; };
  if (!std::is_sorted(terms.begin(), terms.end(), less))
    std::sort(terms.begin(), terms.end(), less);
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    Term merged = terms[i++];
    while (i < terms.size() && terms[i].of == merged.of)
      merged.coefficient += terms[i++].coefficient;
    if (merged.coefficient)
      terms[kept++] = merged;
  }
  terms.resize(kept);
  if (terms.empty())
    return constant(offset);
  if (terms.size() == 1 && offset == 0 && terms[0].coefficient == 1)
    return terms[0].of;
  return intern({.kind = ExprKind::sum, .value = offset}, terms);
}

ExprId Expressions::combine(ExprId a, uint64_t ca, ExprId b, uint64_t cb) {
  uint64_t offset = 0;
  summands_.clear();
  append(summands_, offset, a, ca);
  append(summands_, offset, b, cb);
  if (summands_.size() > kMaxTerms) {
    Term operands[] = {{a, ca}, {b, cb}};
    return intern({.kind = ExprKind::operation, .op = ASSAY_UOP_add}, operands);
  }
  return sum(offset, summands_);
}

ExprId Expressions::address(ExprId a, ExprId b, unsigned shift, ExprId c, int64_t offset) {
  auto total = static_cast<uint64_t>(offset);
  summands_.clear();
  append(summands_, total, a, 1);
  append(summands_, total, b, uint64_t{1} << shift);
  append(summands_, total, c, 1);
  if (summands_.size() <= kMaxTerms)
    return sum(total, summands_);
  return add(combine(a, 1, b, uint64_t{1} << shift),
             add(c, constant(static_cast<uint64_t>(offset))));
}

// Something that is equal to `a` modulo 2^8width, without extensions that do not matter there.
ExprId Expressions::cut(ExprId a, unsigned width) {
  if (width == 8)
    return a;
  auto inner = [&](ExprId id) {
    for (;;) {
      const Expr &node = nodes_[id.v];
      bool extension = node.kind == ExprKind::zero_extend || node.kind == ExprKind::sign_extend;
      if (extension && node.width >= width)
        id = terms(id)[0].of;
      else if (node.kind == ExprKind::operation && assay_uop_is_put(node.op) &&
               width <= (node.op == ASSAY_UOP_put8    ? 1u
                         : node.op == ASSAY_UOP_put16 ? 2u
                                                      : 4u))
        id = terms(id)[1].of;
      else
        return id;
    }
  };
  uint64_t offset = 0;
  covered_.clear();
  summands_.clear();
  append(covered_, offset, inner(a), 1);
  uint64_t offset_inside = offset;
  for (const Term &term : covered_) // what is uncovered may be a sum again
    append(summands_, offset_inside, inner(term.of), term.coefficient);
  if (summands_.size() > kMaxTerms)
    summands_ = covered_;
  else
    offset = offset_inside;
  auto reduce = [&](uint64_t x) { return static_cast<uint64_t>(uop_signed(x, width)); };
  for (Term &term : summands_)
    term.coefficient = reduce(term.coefficient);
  // Equal terms may add up to what is 0 modulo 2^8width only after sum() has merged them.
  ExprId merged = sum(reduce(offset), summands_);
  const Expr &node = nodes_[merged.v];
  if (node.kind != ExprKind::sum)
    return merged;
  summands_.assign(this->terms(merged).begin(), this->terms(merged).end());
  for (Term &term : summands_)
    term.coefficient = reduce(term.coefficient);
  return sum(reduce(node.value), summands_);
}

ExprId Expressions::zero_extend(ExprId a, unsigned width) {
  if (width == 8 || most(a) <= mask_of(width))
    return a;
  ExprId low = cut(a, width);
  if (is_constant(low))
    return constant(nodes_[low.v].value & mask_of(width));
  if (most(low) <= mask_of(width))
    return low;
  Term operand{low, 1};
  return intern({.kind = ExprKind::zero_extend, .width = static_cast<uint8_t>(width)},
                {&operand, 1});
}

ExprId Expressions::sign_extend(ExprId a, unsigned width) {
  if (width == 8)
    return a;
  if (most(a) <= mask_of(width) >> 1)
    return a;
  ExprId low = cut(a, width);
  if (is_constant(low))
    return constant(static_cast<uint64_t>(uop_signed(nodes_[low.v].value, width)));
  if (most(low) <= mask_of(width) >> 1)
    return low;
  Term operand{low, 1};
  return intern({.kind = ExprKind::sign_extend, .width = static_cast<uint8_t>(width)},
                {&operand, 1});
}

uint64_t Expressions::offset_of(ExprId id) const {
  const Expr &node = nodes_[id.v];
  return node.kind == ExprKind::sum || node.kind == ExprKind::constant ? node.value : 0;
}

std::optional<uint64_t> Expressions::distance(ExprId a, ExprId b) const {
  const Term alone[] = {{a, 1}, {b, 1}};
  auto summands = [&](ExprId id, const Term &itself) -> std::span<const Term> {
    switch (nodes_[id.v].kind) {
    case ExprKind::constant: return {};
    case ExprKind::sum: return terms(id);
    default: return {&itself, 1};
    }
  };
  auto of_a = summands(a, alone[0]), of_b = summands(b, alone[1]);
  if (!std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), is_same))
    return std::nullopt;
  return offset_of(a) - offset_of(b);
}

uint64_t Expressions::bound(const Expr &node, std::span<const Term> terms) const {
  switch (node.kind) {
  case ExprKind::constant: return node.value;
  case ExprKind::zero_extend:
  case ExprKind::load:
  case ExprKind::definition: return mask_of(node.width);
  case ExprKind::sum: {
    uint64_t total = node.value;
    for (const Term &term : terms) {
      uint64_t product;
      if (__builtin_mul_overflow(most(term.of), term.coefficient, &product) ||
          __builtin_add_overflow(total, product, &total))
        return UINT64_MAX;
    }
    return total;
  }
  case ExprKind::operation: {
    if (assay_uop_is_condition(node.op))
      return 1;
    if (node.op == ASSAY_UOP_is_zero || node.op == ASSAY_UOP_not_zero)
      return 1;
    uint64_t limit = assay_uop_has_width(node.op) ? mask_of(node.width) : UINT64_MAX;
    if (node.op == ASSAY_UOP_first_bit || node.op == ASSAY_UOP_last_bit)
      return std::min(limit, std::max(8 * uint64_t{node.width} - 1, most(terms[1].of)));
    if (node.op == ASSAY_UOP_ones)
      return 8 * uint64_t{node.width};
    if (node.op == ASSAY_UOP_and)
      return std::min({limit, most(terms[0].of), most(terms[1].of)});
    if (node.op == ASSAY_UOP_shr && is_constant(terms[1].of))
      return limit >> (nodes_[terms[1].of.v].value & uop_count(node.width));
    return limit;
  }
  default: return UINT64_MAX;
  }
}

ExprId Expressions::apply(const assay_uop &uop, ExprId a, ExprId b, ExprId c) {
  unsigned w = uop.width;
  switch (uop.op) {
  case ASSAY_UOP_copy: return zero_extend(a, w);
  case ASSAY_UOP_sign_extend: {
    unsigned from = static_cast<unsigned>(64 - uop.i) / 8;
    return zero_extend(sign_extend(a, from), w);
  }
  case ASSAY_UOP_lea: return zero_extend(address(a, b, uop.shift, c, uop.i), w);
  case ASSAY_UOP_add: return zero_extend(add(a, b), w);
  case ASSAY_UOP_sub: return zero_extend(sub(a, b), w);
  case ASSAY_UOP_neg: return zero_extend(scale(a, ~uint64_t{0}), w);
  case ASSAY_UOP_not: return zero_extend(combine(a, ~uint64_t{0}, constant(~uint64_t{0}), 1), w);
  case ASSAY_UOP_mul:
    if (is_constant(b))
      return zero_extend(scale(a, nodes_[b.v].value), w);
    if (is_constant(a))
      return zero_extend(scale(b, nodes_[a.v].value), w);
    break;
  case ASSAY_UOP_shl:
    if (is_constant(b))
      return zero_extend(scale(a, 1ULL << (nodes_[b.v].value & uop_count(w))), w);
    break;
  case ASSAY_UOP_or:
  case ASSAY_UOP_xor:
    if (is_constant(a, 0) || (a == b && uop.op == ASSAY_UOP_or))
      return zero_extend(b, w);
    if (is_constant(b, 0))
      return zero_extend(a, w);
    if (a == b)
      return constant(0);
    break;
  case ASSAY_UOP_and:
    if (a == b)
      return zero_extend(a, w);
    if (is_constant(a))
      std::swap(a, b);
    for (unsigned width : {1u, 2u, 4u})
      if (is_constant(b, mask_of(width)) ||
          (w == width && is_constant(b) && (nodes_[b.v].value & mask_of(w)) == mask_of(w)))
        return zero_extend(a, width < w ? width : w);
    if (is_constant(b, ~uint64_t{0}))
      return zero_extend(a, w);
    break;
  case ASSAY_UOP_string_step: // programs keep the direction flag clear
    return constant(static_cast<uint64_t>(int64_t{uop.i}));
  case ASSAY_UOP_select:
    if (a == b)
      return zero_extend(a, w);
    break;
  default: break;
  }
  if (is_constant(a) && is_constant(b) && is_constant(c) && !assay_uop_reads_modes(uop.op))
    return constant(assay_uop_value(&uop, nodes_[a.v].value, nodes_[b.v].value, nodes_[c.v].value));
  if (assay_uop_reads_low_bytes(uop.op)) {
    a = cut(a, w);
    b = cut(b, w);
  }
  Expr node{.kind = ExprKind::operation, .width = uop.width, .op = uop.op};
  if (!has_immediate(uop))
    node.value = static_cast<uint64_t>(uop.shift) << 32 | static_cast<uint32_t>(uop.i);
  Term operands[] = {{a, 1}, {b, 1}, {c, 1}};
  return intern(node, operands);
}

} // namespace binary
