// Writing a document in pieces.
//
// The problem: a library that prints JSON wants the whole of it, and that is a hundred times the
// profile. The idea: the outer two levels, keys and the elements of lists, are written here; what
// stands below them is printed by the library and moved to the right. Text in JSON has no line ends
// of its own, so each line end begins a line. A library that writes JSON as a stream was refused:
// a second one, whose numbers and escapes would have to be the same.

#include "report/document.h"

namespace report {
namespace {

std::string indented(const Json &json, size_t columns) {
  std::string text = json_text(json), result;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    result.append(text, at, end - at);
    if (text[end - 1] == '\n')
      result.append(columns, ' ');
    at = end;
  }
  return result;
}

class Writer {
public:
  explicit Writer(const Sink &sink) : sink_(sink) {}

  void document(const Document &document, const std::vector<Document> &programs) {
    open('{');
    for (const Document::Part &part : document.parts()) {
      key(part.key);
      if (const auto *list = std::get_if<Document::List>(&part.value))
        this->list(*list);
      else
        sink_(indented(std::get<Json>(part.value), depth_));
    }
    if (!programs.empty()) {
      key("programs");
      open('[');
      for (const Document &program : programs) {
        next();
        this->document(program, {});
      }
      close(']');
    }
    close('}');
  }

private:
  void list(const Document::List &list) {
    if (list.size == 0)
      return sink_("[]");
    open('[');
    for (size_t index = 0; index < list.size; index++) {
      next();
      sink_(indented(list.element(index), depth_));
    }
    close(']');
  }

  void open(char bracket) {
    sink_({&bracket, 1});
    depth_++;
    first_ = true;
  }
  // What follows stands on a line of its own.
  void next() {
    sink_((first_ ? "\n" : ",\n") + std::string(depth_, ' '));
    first_ = false;
  }
  void key(const std::string &key) {
    next();
    sink_(json_text(key) + ": ");
  }
  void close(char bracket) {
    depth_--;
    sink_("\n" + std::string(depth_, ' ') + bracket);
    first_ = false;
  }

  const Sink &sink_;
  size_t depth_ = 0;
  bool first_ = true;
};

} // namespace

void write_document(const Document &document, const std::vector<Document> &programs,
                    const Sink &sink) {
  Writer(sink).document(document, programs);
  sink("\n");
}

} // namespace report
