// Tables for a terminal: columns as wide as they need, the last one takes what is left.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace report {

// How text goes out: width in columns, and whether colours may be used.
struct Style {
  unsigned width = 100;
  bool colour = false;

  std::string strong(const std::string &text) const;
  std::string faint(const std::string &text) const;
};

// The style for a stream, -1 for a file: colours only on a terminal and without NO_COLOR; as wide as
// COLUMNS says, at least 80; else the terminal's width, from 80 to 160; 100 where there is no terminal.
Style style_for(int file_descriptor);

class Table {
public:
  // Numbers are right-aligned, text is left-aligned.
  enum class Align { left, right };
  void column(std::string heading, Align align);
  // `kept` stands behind the last cell, and is not shortened with it.
  void row(std::vector<std::string> cells, const std::string &kept = "");
  // `last` makes the last cell, once it is known how wide it may be: where it says less rather than be shortened.
  using Fitting = std::function<std::string(unsigned width)>;
  void row(std::vector<std::string> cells, Fitting last);
  bool empty() const { return rows_.empty(); }

  // Indented by two columns, a line each. Cells of the last column are shortened in the middle to
  // fit.
  std::string text(const Style &style) const;

private:
  struct Column {
    std::string heading;
    Align align;
  };
  std::vector<Column> columns_;
  struct Row {
    std::vector<std::string> cells; // each with what is kept
    unsigned kept;                  // columns at the end of the last one
    Fitting last;                   // makes the last one; or null
  };
  std::vector<Row> rows_;
};

// `text` in at most `width` columns, with "…" where something is missing: in the middle, because
// both ends of a C++ name matter.
std::string shortened(const std::string &text, unsigned width);

// Columns of a terminal that UTF-8 text takes, all characters taken as one column wide.
unsigned columns_of(const std::string &text);

// Control characters and invalid UTF-8 replaced by "?", so that names from a profile cannot steer a
// terminal.
std::string printable(const std::string &text);

// A function's name in at most `width` columns: templates' and functions' arguments are left out first.
std::string brief_function(const std::string &name, unsigned width);

} // namespace report
