// A copy of the folder of sources that `assay fields apply` works in, and the tools of clang that run there.
#pragma once

#include "cli/child.h"

#include <filesystem>
#include <string>
#include <vector>

namespace cli {

inline constexpr const char *kFieldEditor =
    "clang-reorder-fields-22"; // gives members another order

struct SourceFolder {
  std::filesystem::path path;
  std::vector<std::string> files; // from there on
  std::vector<std::string> flags; // that they are compiled with
};

// Copies it without what git and earlier runs keep there.
void copy_folder(const std::filesystem::path &from, const std::filesystem::path &to);

// In a folder; the exit status, or 128 and the signal.
int run_in(const std::filesystem::path &folder, std::vector<std::string> command,
           const ChildSettings &settings = {});

// The same command, whose standard output goes into a file, or its standard error.
std::vector<std::string> printing_to(const std::filesystem::path &file,
                                     const std::vector<std::string> &command);
std::vector<std::string> complaining_to(const std::filesystem::path &file,
                                        const std::vector<std::string> &command);

// Throws Failure where the status of a tool of clang's is another one than 0.
void check_clang_tool(const std::string &tool, int status);

// A tool of clang's, on the files, with their flags. Its standard output goes into a file, if one is named. Throws
// Failure when it is not there, or fails.
void run_clang_tool(const SourceFolder &sources, std::vector<std::string> command,
                    const std::filesystem::path &output = {});

std::string text_of(const std::filesystem::path &path);

} // namespace cli
