// What the compiler takes, and means another thing by, is looked for with clang-query, and with the
// compiler's own warning. What only runs show is left to --check. Matchers have no name for lists
// in round brackets (C++20), so the expressions of the type are printed, and these looked for among
// them.

#include "cli/member_order.h"

#include "base/fail.h"

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

std::string in_folder(std::string place, const fs::path &folder) {
  if (const std::string begin = fs::canonical(folder).string() + "/"; place.starts_with(begin))
    place.erase(0, begin.size());
  return place;
}

// "file:line" of what clang-query has found first: /copy/file:line:column: note: "root" binds here
std::string first_match(const std::string &answer, const fs::path &folder) {
  const size_t end = answer.find(": note: \"root\"");
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
  const fs::path found = work / "found";
  const auto ask = [&](std::vector<std::string> command, const char *matcher) {
    command.insert(command.begin(), kFinder);
    command.emplace_back("-c");
    command.push_back("match " + fmt::format(fmt::runtime(matcher), record));
    run_clang_tool(sources, command, found);
    return text_of(found);
  };
  for (const OrderUse &use : kOrderUses)
    if (const std::string place = first_match(ask({}, use.matcher), sources.path); !place.empty())
      refuse(record, place, use.what, use.remedy);
  if (const std::string place =
          first_round_list(ask({"-c", "set output dump"}, kExpressions), sources.path);
      !place.empty())
    refuse(record, place, "makes one by the order of its members (a list in round brackets)",
           "write a list in braces, or a constructor");
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
