// Frames as results carry them, so that whoever shows a result needs nothing of image/.
#pragma once

#include "image/frame.h"
#include "image/symbols.h"
#include "profile/profile.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace analyze {

using image::base_name;
using image::CallStack;
using image::Frame;

// The frames of a profile's stack, with those that were inlined; "(no stack)" where there are none.
CallStack frames_of(const profile::Profile &profile, profile::StackId stack,
                    image::Symbols &symbols);

// The build id of the file that a process was started from, as text; empty if it is not known.
std::string program_build_id(const profile::Profile &profile, const profile::Process &process);

// The programs that a profile is of, each once: paths, with the build id where a path has several.
std::vector<std::string> program_names(const profile::Profile &profile);
// What is to be said of a profile that is a sum of several; nothing if it is of one.
std::optional<std::string> note_of_programs(const profile::Profile &profile);
// What is to be said of a comparison of two sets of programs, by the names of their files; nothing
// if a name is in both.
std::optional<std::string> note_of_comparison(const std::set<std::string> &older,
                                              const std::set<std::string> &newer);
std::set<std::string> program_file_names(const profile::Profile &profile);
// The notes of a profile, with that one.
std::vector<std::string> notes_of(const profile::Profile &profile);

// The modules of a profile, as image asks for them.
std::vector<image::ModuleFile> module_files(const profile::Profile &profile);

// "struct node", "unsigned long"; "type 0x1234" where only its short id is known, empty where nothing is.
std::string type_name(const profile::Profile &profile, profile::TypeId id);
// Whether it is one of the language's own, or an array of one, with or without const and volatile: "unsigned long",
// "const volatile char", "std::byte", "char8_t", "unsigned char [64]".
bool is_scalar(const std::string &type);

} // namespace analyze
