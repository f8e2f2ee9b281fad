// The HTML page of a document.
//
// The problem: the JSON of a large profile is a hundred times the profile, because each context
// repeats its frames; a browser reads 50 MB at once, not 5 GB. The idea: what comes again is kept
// once (node_table.h), and the text is deflated, which every browser can undo by itself. A library
// in the page that unpacks something denser was refused: it would be larger than what it saves for
// most profiles.

#include "report/page.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/Base64.h>
#include <llvm/Support/Compression.h>

#include "base/fail.h"
#include "report/node_table.h"
#include "report/page_template.h"

namespace report {
namespace {

std::string add(NodeTable &nodes, const Document &document, std::span<const Document> programs) {
  std::vector<std::string> keys, values;
  for (const Document::Part &part : document.parts()) {
    keys.push_back(part.key);
    if (const auto *list = std::get_if<Document::List>(&part.value)) {
      std::vector<std::string> elements;
      for (size_t index = 0; index < list->size; index++)
        elements.push_back(nodes.add_new(list->element(index)));
      values.push_back(nodes.add_list(elements));
    } else {
      values.push_back(nodes.add(std::get<Json>(part.value)));
    }
  }
  if (!programs.empty()) {
    std::vector<std::string> elements;
    for (const Document &program : programs)
      elements.push_back(add(nodes, program, {}));
    keys.emplace_back("programs");
    values.push_back(nodes.add_list(elements));
  }
  return nodes.add_object(keys, values);
}

std::string page_with(const std::string &data) {
  if (!llvm::compression::zlib::isAvailable())
    base::fail("--format html: LLVM was built without zlib here; use --format json");
  llvm::SmallVector<uint8_t, 0> deflated;
  llvm::compression::zlib::compress(llvm::arrayRefFromStringRef(data), deflated);
  const std::string_view page = kPageTemplate, mark = "<!--data-->";
  const size_t at = page.find(mark);
  return std::string(page.substr(0, at)) + "<script type=\"text/plain\" id=\"data\">" +
         llvm::encodeBase64(deflated) + "</script>" + std::string(page.substr(at + mark.size()));
}

} // namespace

std::string html_page(const Document &document, std::span<const Document> programs) {
  NodeTable nodes;
  const std::string root = add(nodes, document, programs);
  return page_with(nodes.text(root));
}

std::string html_page(const Json &document) {
  NodeTable nodes;
  const std::string root = nodes.add(document);
  return page_with(nodes.text(root));
}

} // namespace report
