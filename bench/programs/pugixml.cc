// Builds a document, writes it to a string, parses it back and walks it; the argument is the number
// of rounds.
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "pugixml.hpp"

static std::string make_document(int books) {
  pugi::xml_document document;
  pugi::xml_node library = document.append_child("library");
  for (int i = 0; i < books; i++) {
    pugi::xml_node book = library.append_child("book");
    book.append_attribute("id") = i;
    book.append_child("title").text() =
        ("A title with number " + std::to_string(i * 7919 % 10007)).c_str();
    book.append_child("pages").text() = i % 900 + 50;
  }
  std::ostringstream out;
  document.save(out);
  return out.str();
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 10;
  std::string text = make_document(10000);
  long pages = 0;
  for (int round = 0; round < rounds; round++) {
    pugi::xml_document document;
    document.load_buffer(text.data(), text.size());
    for (pugi::xml_node book : document.child("library"))
      pages += book.child("pages").text().as_int() + book.attribute("id").as_int() % 3;
    pages += (long)document.select_nodes("//book[pages > 900]").size();
  }
  printf("%ld\n", pages);
}
