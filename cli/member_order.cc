// What the compiler takes, and means another thing by, is looked for with clang-query, and with the
// compiler's own warning. What only runs show is left to --check. Matchers have no name for lists
// in round brackets (C++20), so the expressions of the type are printed, and these looked for among
// them.

#include "cli/member_order.h"

#include "base/fail.h"
#include "cli/member_values.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr const char *kFinder = "clang-query-22", *kCompiler = "clang-22";

struct OrderUse {
  const char *matcher; // of clang-query, with the struct's name for {}
  const char *what, *remedy;
};
constexpr std::array<OrderUse, 2> kOrderUses = {
    {{"decompositionDecl(hasInitializer(expr(hasType(hasCanonicalType(hasDeclaration(recordDecl("
      "anyOf(hasName(\"{0}\"), cxxRecordDecl(isDerivedFrom(hasName(\"{0}\")))))))))))",
      "takes its members by their order (a structured binding)", "name the members there"},
     {"functionDecl(isDefaulted(), hasAnyOverloadedOperatorName(\"<=>\", \"<\", \">\", \"<=\", "
      "\">=\"), hasAnyParameter(hasType(hasCanonicalType(anyOf(hasDeclaration(recordDecl(hasName("
      "\"{0}\"))), references(qualType(hasDeclaration(recordDecl(hasName(\"{0}\"))))))))))",
      "compares its members in their order (a defaulted comparison)", "write the comparison out"}}};

constexpr const char *kExpressions =
    "expr(hasType(hasCanonicalType(hasDeclaration(recordDecl(hasName(\"{0}\"))))))";

constexpr const char *kMembers = "fieldDecl(hasParent(recordDecl(hasName(\"{0}\"))))";
constexpr const char *kLists =
    "initListExpr(hasType(hasCanonicalType(hasDeclaration(recordDecl(hasName(\"{0}\"))))))";
// Of a member, in its declaration or in a constructor, that functions are called for.
constexpr std::array<const char *, 2> kCalls = {
    "fieldDecl(hasParent(recordDecl(hasName(\"{0}\"))), hasInClassInitializer(anyOf(callExpr(), "
    "hasDescendant(callExpr()))))",
    "cxxCtorInitializer(isMemberInitializer(), isWritten(), withInitializer(anyOf(callExpr(), "
    "hasDescendant(callExpr()))), forField(hasParent(recordDecl(hasName(\"{0}\")))))"};

std::string in_folder(std::string place, const fs::path &folder) {
  if (const std::string begin = fs::canonical(folder).string() + "/"; place.starts_with(begin))
    place.erase(0, begin.size());
  return place;
}

constexpr const char *kMatch = ": note: \"root\"";

// "file:line" of what clang-query has found first: /copy/file:line:column: note: "root" binds here
std::string first_match(const std::string &answer, const fs::path &folder) {
  const size_t end = answer.find(kMatch);
  if (end == std::string::npos)
    return "";
  const size_t begin = answer.rfind('\n', end) + 1;
  std::string place = answer.substr(begin, answer.rfind(':', end - 1) - begin);
  return in_folder(place, folder);
}

// Of what it printed: CXXParenListInitExpr 0x55d3 </copy/file:line:column, col:29> 'Name'
std::string first_round_list(const std::string &answer, const fs::path &folder) {
  const size_t at = answer.find("\nCXXParenListInitExpr ");
  if (at == std::string::npos)
    return "";
  const size_t begin = answer.find('<', at) + 1,
               end = answer.find(':', answer.find(':', begin) + 1);
  return in_folder(answer.substr(begin, end - begin), folder);
}

// What clang-query answers about one struct.
class Query {
public:
  Query(const SourceFolder &sources, const std::string &record, const fs::path &work)
      : sources_(sources), record_(record), answer_(work / "found") {}
  std::string places(const char *matcher) const { return ask("diag", matcher); }
  std::string dump(const char *matcher) const { return ask("dump", matcher); }

private:
  std::string ask(const char *output, const char *matcher) const {
    run_clang_tool(sources_,
                   {kFinder, "-c", fmt::format("set output {}", output), "-c",
                    "match " + fmt::format(fmt::runtime(matcher), record_)},
                   answer_);
    return text_of(answer_);
  }

  const SourceFolder &sources_;
  const std::string &record_;
  fs::path answer_;
};

[[noreturn]] void refuse(const std::string &record, const std::string &place, const char *what,
                         const char *remedy) {
  base::fail("{}: {} {}: in another order they would mean another thing; {}, or move them by hand",
             record, place, what, remedy);
}

std::string line_until(const std::string &text, const char *what) {
  const size_t end = text.find(what), begin = text.rfind('\n', end) + 1;
  return text.substr(begin, end - begin);
}

struct Uninitialized {
  size_t count = 0;
  std::string first; // file:line:column
};

Uninitialized uninitialized_in(const SourceFolder &sources, const fs::path &said) {
  std::vector<std::string> command = {kCompiler};
  std::ranges::copy_if(sources.flags, std::back_inserter(command),
                       [](const std::string &flag) { return flag != "-w"; });
  for (const char *ours : {"-fsyntax-only", "-Wno-error", "-Wno-everything", "-Wuninitialized",
                           "-fdiagnostics-show-option", "-fno-color-diagnostics"})
    command.emplace_back(ours);
  std::ranges::copy(sources.files, std::back_inserter(command));
  check_clang_tool(kCompiler, run_in(sources.path, complaining_to(said, command)));
  const std::string text = text_of(said);
  Uninitialized found;
  for (size_t at = 0; (at = text.find("[-Wuninitialized]", at)) != std::string::npos; at++)
    if (found.count++ == 0)
      found.first = line_until(text, ": warning");
  return found;
}

} // namespace

void refuse_uses_of_order(const SourceFolder &sources, const std::string &record,
                          const fs::path &work) {
  const Query query(sources, record, work);
  for (const OrderUse &use : kOrderUses)
    if (const std::string place = first_match(query.places(use.matcher), sources.path);
        !place.empty())
      refuse(record, place, use.what, use.remedy);
  if (const std::string place = first_round_list(query.dump(kExpressions), sources.path);
      !place.empty())
    refuse(record, place, "makes one by the order of its members (a list in round brackets)",
           "write a list in braces, or a constructor");
}

std::vector<std::string> refuse_other_values(const SourceFolder &before, const SourceFolder &after,
                                             const std::string &record, const fs::path &work) {
  const Query query_before(before, record, work), query_after(after, record, work);
  auto lists_of = [](const Query &query) {
    return lists_in_dump(query.dump(kLists), names_in_dump(query.dump(kMembers)));
  };
  const std::vector<RecordList> had = lists_of(query_before), has = lists_of(query_after);
  std::vector<std::string> to_look_at;
  auto look_at = [&](const std::string &place) {
    to_look_at.push_back(fmt::format(
        "{}: {} calls functions for several of its members; they are called in another order then",
        record, place.empty() ? "a list" : place));
  };
  for (size_t i = 0; i < std::max(had.size(), has.size()); i++) {
    const RecordList &list = i < had.size() ? had[i] : has[i];
    const std::string place = in_folder(list.place, i < had.size() ? before.path : after.path);
    if (had.size() != has.size() || list.values != has[i].values || list.is_pack)
      base::fail(
          "{}: {} gives its members values by their order, and {} does not edit it (another "
          "name of the type, a macro, a template, braces left out); nothing was changed; name the "
          "members there (`.member = value`), or move them by hand",
          record, place.empty() ? "a list of a macro" : place, kFieldEditor);
    if (list.calls_in_order && to_look_at.empty())
      look_at(place);
  }
  for (const char *matcher : kCalls) {
    const std::string places = query_before.places(matcher);
    const std::string first = first_match(places, before.path);
    if (!first.empty() && places.find(kMatch, places.find(kMatch) + 1) != std::string::npos)
      look_at(first);
  }
  return to_look_at;
}

void refuse_new_uninitialized(const SourceFolder &before, const SourceFolder &after,
                              const fs::path &work) {
  const Uninitialized had = uninitialized_in(before, work / "said"),
                      has = uninitialized_in(after, work / "said");
  if (had.count < has.count)
    base::fail(
        "{}: in the other order a member is initialized from one that is not initialized "
        "yet; nothing was changed; initialize it from something else, or move the members by "
        "hand",
        has.first);
}

} // namespace cli
