// Writing a document in pieces.
//
// The problem: a library that prints JSON wants the whole of it, and that is a hundred times the
// profile. The idea: the outer two levels, keys and the elements of lists, are written here; what
// stands below them is printed by the library, which is told how far to the right.

#include "report/document.h"

namespace report {
namespace {

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
        value(std::get<Json>(part.value));
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
      value(list.element(index));
    }
    close(']');
  }

  void value(const Json &json) { sink_(printer_.print(json, depth_)); }

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
  JsonPrinter printer_;
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
