// Words as they are typed into a shell.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace base {

// In single quotes.
inline std::string quoted_for_shell(std::string_view word) {
  std::string result = "'";
  for (const char c : word)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// In quotes only where it must be.
inline std::string shell_word(std::string_view word) {
  const bool is_plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("_@%+=:,./-").find(static_cast<char>(c)) != std::string_view::npos;
  });
  return is_plain ? std::string(word) : quoted_for_shell(word);
}

// Words of a command, one behind the other.
template <class Words> std::string shell_command(const Words &words) {
  std::string command;
  for (const auto &word : words)
    command += (command.empty() ? "" : " ") + shell_word(word);
  return command;
}

} // namespace base
