// Laying out text.
//
// Everything that is printed here may stem from a file that somebody sent: cells are made printable
// before they are measured. Wide East Asian characters are taken as one column; that costs
// alignment in a rare name and saves a table of Unicode.

#include "report/table.h"

#include <algorithm>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analyze/place.h"

namespace report {
namespace {

bool is_continuation(unsigned char byte) {
  return (byte & 0xc0) == 0x80;
}

// The length of the UTF-8 sequence at `at`, 0 if it is not a valid one or a control character.
size_t sequence_length(const std::string &text, size_t at) {
  auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80)
    return first >= 0x20 && first != 0x7f ? 1 : 0;
  size_t length = first >= 0xf0 && first < 0xf5   ? 4
                  : first >= 0xe0 && first < 0xf0 ? 3
                  : first >= 0xc2 && first < 0xe0 ? 2
                                                  : 0;
  if (length == 0 || at + length > text.size())
    return 0;
  for (size_t i = 1; i < length; i++)
    if (!is_continuation(static_cast<unsigned char>(text[at + i])))
      return 0;
  bool is_control = first == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0;
  return is_control ? 0 : length;
}

// The byte at which column `column` starts.
size_t byte_of_column(const std::string &text, unsigned column) {
  size_t at = 0;
  for (; at < text.size() && column > 0; column--) {
    at++;
    while (at < text.size() && is_continuation(static_cast<unsigned char>(text[at])))
      at++;
  }
  return at;
}

// As report::shortened, but for so many columns at the end, which are kept even where they do not fit.
std::string shortened(const std::string &text, unsigned width, unsigned kept) {
  constexpr unsigned kMinName = 8;
  const unsigned columns = columns_of(text);
  if (columns <= width)
    return text;
  const size_t end = byte_of_column(text, columns - kept);
  return report::shortened(text.substr(0, end), std::max(kMinName, width - std::min(width, kept))) +
         text.substr(end);
}

} // namespace

std::string Style::strong(const std::string &text) const {
  return colour ? "\x1b[1m" + text + "\x1b[0m" : text;
}

std::string Style::faint(const std::string &text) const {
  return colour ? "\x1b[2m" + text + "\x1b[0m" : text;
}

Style style_for(int file_descriptor) {
  Style style;
  const char *columns = std::getenv("COLUMNS");
  const long wanted = columns ? std::strtol(columns, nullptr, 10) : 0;
  if (wanted > 0)
    style.width = static_cast<unsigned>(std::clamp(wanted, 80L, 10'000L));
  if (!isatty(file_descriptor))
    return style;
  const char *no_colour = std::getenv("NO_COLOR");
  style.colour = !no_colour || !*no_colour;
  winsize size = {};
  if (wanted <= 0 && ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col)
    style.width = std::clamp<unsigned>(size.ws_col, 80, 160);
  return style;
}

void Table::column(std::string heading, Align align) {
  columns_.push_back({std::move(heading), align});
}

void Table::row(std::vector<std::string> cells, const std::string &kept) {
  cells.resize(columns_.size());
  for (std::string &cell : cells)
    cell = printable(cell);
  cells.back() += printable(kept);
  rows_.push_back({std::move(cells), columns_of(printable(kept)), nullptr});
}

void Table::row(std::vector<std::string> cells, Fitting last) {
  row(std::move(cells));
  rows_.back().last = std::move(last);
}

std::string Table::text(const Style &style) const {
  std::vector<Row> rows = rows_;
  constexpr unsigned kGap = 2, kMinLast = 20;
  std::vector<unsigned> widths;
  unsigned used = 0; // by the columns before
  for (size_t index = 0; index < columns_.size(); index++) {
    const bool is_last = index + 1 == columns_.size();
    const unsigned left =
        style.width > used + kGap + kMinLast ? style.width - used - kGap : kMinLast;
    unsigned width = columns_of(columns_[index].heading);
    for (Row &row : rows) {
      if (is_last && row.last)
        row.cells.back() = printable(row.last(left));
      width = std::max(width, columns_of(row.cells[index]));
    }
    widths.push_back(is_last ? std::min(width, left) : width);
    used += width + kGap;
  }
  auto line = [&](auto cell_at, unsigned kept) {
    std::string text;
    for (size_t index = 0; index < columns_.size(); index++) {
      std::string cell =
          shortened(cell_at(index), widths[index], index + 1 == columns_.size() ? kept : 0);
      std::string padding(widths[index] - std::min(widths[index], columns_of(cell)), ' ');
      text += std::string(kGap, ' ');
      text += columns_[index].align == Align::right ? padding + cell : cell + padding;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::string result =
      style.faint(line([&](size_t index) { return columns_[index].heading; }, 0)) + "\n";
  for (const Row &row : rows)
    result += line([&](size_t index) { return row.cells[index]; }, row.kept) + "\n";
  return result;
}

std::string shortened(const std::string &text, unsigned width) {
  unsigned columns = columns_of(text);
  if (columns <= width)
    return text;
  if (width < 4)
    return text.substr(0, byte_of_column(text, width));
  unsigned head = (width - 1) / 2, tail = width - 1 - head;
  return text.substr(0, byte_of_column(text, head)) + "…" +
         text.substr(byte_of_column(text, columns - tail));
}

unsigned columns_of(const std::string &text) {
  return static_cast<unsigned>(std::count_if(text.begin(), text.end(), [](char c) {
    return !is_continuation(static_cast<unsigned char>(c));
  }));
}

std::string printable(const std::string &text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    size_t length = sequence_length(text, at);
    if (length == 0)
      result += '?';
    else
      result.append(text, at, length);
    at += std::max<size_t>(length, 1);
  }
  return result;
}

std::string brief_function(const std::string &name, unsigned width) {
  return shortened(printable(analyze::short_name(name)), width);
}

} // namespace report
