// The one version number that the compiler plugin, the runtime and the profile format share.
//
// The plugin makes every instrumented module refer to the symbol named by ASSAY_ABI_SYMBOL; the
// runtime defines only its own. Objects of another version therefore fail at link time with an
// undefined symbol whose name says what is wrong and what to do. A profile carries the same number.
// Bump it when something that objects or files have changes its meaning, and keep an old file in
// tests/format/. A tool, hook, record or loss that is new does not raise it: old readers skip what
// they do not know.
#pragma once

#define ASSAY_ABI_VERSION 5

#define ASSAY_CONCAT_(a, b) a##b
#define ASSAY_CONCAT(a, b) ASSAY_CONCAT_(a, b)
#define ASSAY_STRING_(a) #a
#define ASSAY_STRING(a) ASSAY_STRING_(a)

#define ASSAY_ABI_SYMBOL                                                                           \
  ASSAY_CONCAT(__assay_runtime_is_not_in_this_program_or_not_of_version_, ASSAY_ABI_VERSION)
