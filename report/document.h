// A JSON document that is written piece by piece.
//
// A profile may have 200,000 contexts, whose stacks fill gigabytes as text: so the elements of a
// list are made when they are written, and only one is there at a time.
#pragma once

#include "report/json.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace report {

// An object at the top of a document: keys with values, in order. What the elements of lists are
// made from must live as long.
class Document {
public:
  struct List {
    size_t size = 0;
    std::function<Json(size_t)> element;
  };
  struct Part {
    std::string key;
    std::variant<Json, List> value;
    // For conditions: the only key below whose elements are parts of a whole, so that their numbers
    // add up. Absent: all.
    std::optional<std::string> adding_key;
  };

  void put(std::string key, Json value, std::optional<std::string> adding_key = std::nullopt) {
    parts_.push_back({std::move(key), std::move(value), std::move(adding_key)});
  }
  // Element i is made by element(i), as often as it is asked for.
  void list(std::string key, size_t size, std::function<Json(size_t)> element) {
    parts_.push_back({std::move(key), List{size, std::move(element)}, {}});
  }
  const std::vector<Part> &parts() const { return parts_; }

private:
  std::vector<Part> parts_;
};

using Sink = std::function<void(std::string_view)>;

// Indented, with a line end, as document_text() of the whole would be. If there are `programs`, they
// are the elements of a last key of that name.
void write_document(const Document &document, const std::vector<Document> &programs,
                    const Sink &sink);

} // namespace report
