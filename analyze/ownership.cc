// Finding the owner of an allocation.
//
// The problem: the innermost frames of nearly every C++ allocation are operator new, an allocator,
// and three levels of a container; a table that names them says nothing. The idea: skip what is
// known to be machinery by name, on the mangled name where there is one, since it has no return
// type in front and its prefix tells the namespace exactly.
//
// Wrappers are recognised by their names, because "calls an allocator in its tail" cannot be seen
// in a stack. The rule: take the last component of the name as words (camelCase, underscores and
// digits part them); drop from its end the words that say how or in what unit memory is given (raw,
// zero, or die, page, bytes, …), and a clause that begins with "with" or "from"; what is left must
// end in an allocating word (malloc, alloc, strdup, …). So mallocWithAlarm, sqlite3DbMallocRawNN,
// pcache1Alloc, luaM_malloc_ and xmalloc are wrappers; allocateBtreePage, malloc_stats_printer and
// allocate_node are not, since another word says what they make: a person can change those. foo_new
// is not one either: it is the place where a foo is made; newobj and its like are. Members of
// classes called …Allocator or …Arena are machinery whatever their names, but for constructors.
//
// Where other words stand behind the allocating one (ztrymalloc_usable_internal), the name alone does
// not decide, and what the profile knows of the function does: a wrapper is called by several
// functions, for several sizes, and makes no single type. Whoever knows better says so with --wrapper.
//
// The cost of a wrong guess is small: the row is named after the caller, and the whole stack is
// shown below it. Skipping by size of the function was refused: it depends on the optimisation
// level, and the same site would change its name.
//
// What it does not do: it never changes how contexts are told apart, only what they are called.

#include "analyze/ownership.h"

#include "analyze/frame.h"

#include "image/symbols.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

namespace analyze {
namespace {

// By which functions are told apart.
const std::string &key(const image::Frame &frame) {
  return frame.linkage_name.empty() ? frame.function : frame.linkage_name;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](std::string_view suffix) { return text.ends_with(suffix); });
}

bool in_standard_namespace(const image::Frame &frame) {
  if (frame.linkage_name.starts_with("_Z")) {
    std::string_view name = frame.linkage_name;
    name.remove_prefix(2);
    while (name.starts_with("Z")) // a lambda or a class within a function of the library
      name.remove_prefix(1);
    if (name.starts_with("N"))
      name.remove_prefix(1);
    while (!name.empty() && std::string_view("KVrRO").find(name.front()) != std::string_view::npos)
      name.remove_prefix(1); // qualifiers of the member function
    return starts_with_any(
        name, {"St", "Sa", "Ss", "Sb", "Si", "So", "Sd", "9__gnu_cxx", "10__cxxabiv1"});
  }
  return starts_with_any(frame.function, {"std::", "__gnu_cxx::", "__cxxabiv1::"});
}

bool in_standard_library(const image::Frame &frame) {
  return starts_with_any(image::base_name(frame.module),
                         {"libstdc++.so", "libc++.so", "libc++abi.so", "libc.so", "libc-2.",
                          "libpthread.so", "ld-linux", "libm.so", "libassay_"});
}

// The inline functions of assay/annotate.h: what they report is their caller's doing.
bool is_annotation(const image::Frame &frame) {
  return frame.function.starts_with("assay_") && frame.file.ends_with("assay/annotate.h");
}

// "operator new(unsigned long)" and "Message::operator new[](unsigned long)", and those that give back.
bool is_operator(const std::string &function) {
  for (const std::string_view name : {"operator new", "operator delete"}) {
    const size_t at = function.find(name);
    if (at == std::string::npos ||
        (at != 0 && !std::string_view(function).substr(0, at).ends_with("::")))
      continue;
    const size_t end = at + name.size();
    if (end == function.size() || function[end] == '(' || function[end] == '[')
      return true;
  }
  return false;
}

bool is_allocation_function(const image::Frame &frame) {
  std::string_view name = frame.linkage_name.empty() ? frame.function : frame.linkage_name;
  constexpr std::string_view kWrapped = "__wrap_"; // by the linker, which brings our own here
  if (name.starts_with(kWrapped))
    name.remove_prefix(kWrapped.size());
  if (starts_with_any(name, {"_Znw", "_Zna", "_Zdl", "_Zda", "__assay_", "__interceptor_"}))
    return true;
  static constexpr std::string_view kNames[] = {
#define ASSAY_INTERPOSED(name)
#define ASSAY_INTERPOSED_DYNAMIC(name)
#define ASSAY_INTERPOSED_ALLOCATION(name, kind) #name,
#define ASSAY_ALLOCATES_INSIDE(name) #name,
#include "abi/interposed.def"
      "pthread_create",
      "thrd_create", // a thread's thread-local storage
  };
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         is_operator(frame.function);
}

// "ns::Pool::xmalloc(unsigned long)" -> "Pool", "xmalloc"; the class may be absent.
struct MemberName {
  std::string class_name, function;
};

MemberName member_name(std::string_view function) {
  MemberName result;
  int depth = 0; // template arguments and parameters hold colons of their own
  for (size_t at = 0; at < function.size(); at++) {
    char c = function[at];
    if (depth == 0 && function.compare(at, 11, "(anonymous ") == 0)
      at = std::min(function.find(')', at), function.size() - 1);
    else if (c == '(' && depth == 0)
      break;
    else if (c == '<' || c == '(')
      depth++;
    else if (c == '>' || c == ')')
      depth--;
    else if (depth == 0 && c == ' ') // before it stands a return type
      result = MemberName();
    else if (depth == 0 && c == ':' && function.compare(at, 2, "::") == 0) {
      result.class_name = std::move(result.function);
      result.function.clear();
      at++;
    } else if (depth == 0)
      result.function += c;
  }
  return result;
}

// In lower case. "sqlite3DbMallocRawNN" -> sqlite, db, malloc, raw, nn
std::vector<std::string> words_of(const std::string &name) {
  std::vector<std::string> words;
  bool was_lower = false, in_word = false;
  for (size_t at = 0; at < name.size(); at++) {
    unsigned char c = static_cast<unsigned char>(name[at]);
    if (!std::isalpha(c)) {
      in_word = false;
      continue;
    }
    bool upper = std::isupper(c) != 0;
    bool ends_capitals = upper && at + 1 < name.size() && std::islower(name[at + 1]);
    if (!in_word || (upper && (was_lower || ends_capitals)))
      words.emplace_back();
    words.back() += static_cast<char>(std::tolower(c));
    was_lower = !upper;
    in_word = true;
  }
  return words;
}

bool is_one_of(const std::string &word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool says_only_how(const std::string &word) {
  return word.size() == 1 ||
         is_one_of(word, {"raw",       "nn",       "zero",  "zeroed",   "uninit", "aligned",
                          "finish",    "or",       "die",   "fail",     "fatal",  "abort",
                          "exit",      "null",     "throw", "nothrow",  "safe",   "impl",
                          "internal",  "slow",     "fast",  "locked",   "try",    "oob",
                          "ex",        "wrapper",  "hook",  "array",    "usable", "unguarded",
                          "unchecked", "noexcept", "flags", "extended", "mem",    "memory",
                          "bytes",     "block",    "chunk", "buf",      "buffer", "page",
                          "pages",     "object",   "obj",   "data",     "space"});
}

// Whether the allocating word ends it: "xmalloc", "alloc".
bool allocates(std::string_view word) {
  return ends_with_any(word, {"alloc", "allocate", "memalign", "strdup", "strndup", "memdup",
                              "newobj", "newobject"});
}

bool is_wrapper(const image::Frame &frame) {
  MemberName name = member_name(frame.function);
  if (name.function.starts_with("operator"))
    return false;
  auto class_words = words_of(name.class_name);
  if (!class_words.empty() && name.function != name.class_name &&
      ends_with_any(class_words.back(), {"allocator", "arena", "mempool"}))
    return true;
  auto words = words_of(name.function);
  auto clause = std::find_if(words.begin(), words.end(), [](const std::string &word) {
    return is_one_of(word, {"with", "from"});
  });
  words.erase(clause, words.end());
  while (!words.empty() && says_only_how(words.back()))
    words.pop_back();
  std::string joined;
  for (const std::string &word : words)
    joined += word;
  return allocates(joined);
}

// Whether a function may be a wrapper, if what is known of its callers says so, too.
bool may_be_wrapper(const image::Frame &frame) {
  MemberName name = member_name(frame.function);
  if (name.function.starts_with("operator") || name.function == name.class_name)
    return false;
  auto words = words_of(name.function);
  return std::any_of(words.begin(), words.end(), allocates);
}

} // namespace

bool is_profilers_own(const std::string &name) {
  return starts_with_any(
      name, {"_ZN5assay", "_ZNK5assay", "_ZZN5assay", "_ZZNK5assay", "__assay_", "assay::"});
}

bool is_allocation_machinery(const image::Frame &frame) {
  return is_allocation_function(frame) || is_annotation(frame) || in_standard_namespace(frame) ||
         in_standard_library(frame) || is_wrapper(frame);
}

Wrappers::Wrappers(const std::vector<std::string> &patterns) {
  for (const std::string &pattern : patterns)
    patterns_.push_back({pattern, {"--wrapper", pattern}, std::make_shared<bool>(false)});
}

bool Wrappers::has(const image::Frame &frame) const {
  if (!patterns_.empty()) {
    auto [known, is_new] = matched_.try_emplace(frame.function, false);
    if (is_new)
      known->second = matches(frame.function);
    if (known->second)
      return true;
  }
  return !names_.empty() && names_.count(key(frame));
}

bool Wrappers::matches(const std::string &function) const {
  bool any = false;
  for (const Pattern &pattern : patterns_)
    if (pattern.expression.is_found_in(function))
      any = *pattern.is_matched = true;
  return any;
}

std::vector<std::string> Wrappers::unmatched() const {
  std::vector<std::string> texts;
  for (const Pattern &pattern : patterns_)
    if (!*pattern.is_matched)
      texts.push_back(pattern.text);
  return texts;
}

void WrapperSearch::add(const image::CallStack &frames, const Wrappers &known,
                        const std::string &made, uint64_t least_bytes, uint64_t most_bytes) {
  std::vector<Candidate *> inner;
  for (const image::Frame &frame : frames) {
    if (is_allocation_machinery(frame) || known.has(frame))
      continue;
    const std::string &name = key(frame);
    if (may_be_wrapper(frame)) {
      inner.push_back(&candidates_[name]);
      continue;
    }
    for (Candidate *candidate : inner)
      candidate->callers.insert(name);
    break;
  }
  for (Candidate *candidate : inner) {
    candidate->types.insert(made);
    candidate->least_bytes = std::min(candidate->least_bytes, least_bytes);
    candidate->most_bytes = std::max(candidate->most_bytes, most_bytes);
  }
}

void WrapperSearch::find(Wrappers &wrappers) const {
  constexpr size_t kSeveral = 4;
  constexpr uint64_t kSizes = 2; // times the smallest
  for (const auto &[name, candidate] : candidates_) {
    bool one_type = candidate.types.size() == 1 && !candidate.types.begin()->empty();
    if (candidate.callers.size() >= kSeveral && !one_type &&
        candidate.most_bytes / kSizes >= std::max<uint64_t>(candidate.least_bytes, 1))
      wrappers.add(name);
  }
}

bool through_wrapper(const image::CallStack &frames, const Wrappers &wrappers) {
  auto first = std::find_if(frames.begin(), frames.end(), [](const image::Frame &frame) {
    return !is_allocation_function(frame);
  });
  // An operator of the program's own, which calls malloc.
  if (std::any_of(frames.begin(), first, [](const image::Frame &frame) {
        return is_operator(frame.function) && !frame.file.empty() && !in_standard_library(frame);
      }))
    return true;
  return first != frames.end() && !in_standard_namespace(*first) &&
         (is_wrapper(*first) || wrappers.has(*first));
}

size_t owner(const image::CallStack &frames, const Wrappers &wrappers) {
  for (size_t index = 0; index < frames.size(); index++) {
    if (wrappers.has(frames[index]) || is_allocation_machinery(frames[index]))
      continue;
    // What called main owns nothing: then main's callee was a wrapper all the same.
    if (frames[index].linkage_name != "_start")
      return index;
  }
  for (size_t index = frames.size(); index-- > 0;)
    if (!frames[index].linkage_name.empty() && !is_allocation_function(frames[index]) &&
        !in_standard_library(frames[index]) && frames[index].linkage_name != "_start")
      return index;
  return 0;
}

void find_wrappers(const profile::Profile &profile, image::Symbols &symbols, Wrappers &wrappers) {
  WrapperSearch search;
  for (const profile::HeapContext &context : profile.heap) {
    std::string type = type_name(profile, context.type);
    search.add(frames_of(profile, context.stack, symbols), wrappers, is_scalar(type) ? "" : type,
               std::min(context.freed.size_min, context.live.size_min),
               std::max(context.freed.size_max, context.live.size_max));
  }
  search.find(wrappers);
}

} // namespace analyze
