// Finding the owner of an allocation.
//
// The problem: the innermost frames of nearly every C++ allocation are operator new, an allocator,
// and three levels of a container; a table that names them says nothing. The idea: skip what is
// known to be machinery by name, on the mangled name where there is one, since it has no return
// type in front and its prefix tells the namespace exactly.
//
// Wrappers are recognised by their names (ending in alloc, malloc, strdup and the like), because
// "calls an allocator in its tail" cannot be seen in a stack. The cost of a wrong guess is small:
// the row is named after the caller, and the whole stack is shown below it. Skipping by size of the
// function was refused: it depends on the optimisation level, and the same site would change its
// name.
//
// What it does not do: it never changes how contexts are told apart, only what they are called.

#include "analyze/ownership.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace analyze {
namespace {

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
                          "libpthread.so", "ld-linux", "libm.so"});
}

bool is_allocation_function(const image::Frame &frame) {
  std::string_view name = frame.linkage_name.empty() ? frame.function : frame.linkage_name;
  if (starts_with_any(name, {"_Znw", "_Zna", "_Zdl", "_Zda", "__assay_", "__interceptor_"}))
    return true;
  static constexpr std::array<std::string_view, 17> kNames = {
      "malloc",   "calloc",         "realloc", "reallocarray", "memalign", "aligned_alloc",
      "valloc",   "posix_memalign", "pvalloc", "strdup",       "strndup",  "free",
      "asprintf", "vasprintf",      "getline", "getdelim",     "cfree"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         frame.function.starts_with("operator new") ||
         frame.function.starts_with("operator delete");
}

// "ns::xmalloc(unsigned long)" -> "xmalloc"
std::string last_component(std::string_view function) {
  function = function.substr(0, function.find_first_of("(<"));
  size_t colons = function.rfind("::");
  if (colons != std::string_view::npos)
    function.remove_prefix(colons + 2);
  std::string name(function);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return name;
}

bool is_wrapper(const image::Frame &frame) {
  std::string name = last_component(frame.function);
  if (name.starts_with("operator"))
    return false;
  return ends_with_any(name, {"alloc", "alloc0", "alloc_n", "allocate", "strdup", "strndup",
                              "memdup", "alloc_or_die", "alloc_array"});
}

} // namespace

bool is_allocation_machinery(const image::Frame &frame) {
  return is_allocation_function(frame) || in_standard_namespace(frame) ||
         in_standard_library(frame) || is_wrapper(frame);
}

size_t owner(const std::vector<image::Frame> &frames) {
  for (size_t index = 0; index < frames.size(); index++) {
    if (is_allocation_machinery(frames[index]))
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

} // namespace analyze
