// A document that is written in pieces is, byte for byte, what the library prints of the whole.

#include "report/document.h"

#include "report/heap_report.h"
#include "tests/unit/profile/profile_builder.h"

#include <gtest/gtest.h>

namespace {

using report::Document;
using report::Json;

Json whole(const Document &document) {
  Json json = Json::object();
  for (const Document::Part &part : document.parts()) {
    if (const auto *list = std::get_if<Document::List>(&part.value)) {
      json[part.key] = Json::array();
      for (size_t index = 0; index < list->size; index++)
        json[part.key].push_back(list->element(index));
    } else {
      json[part.key] = std::get<Json>(part.value);
    }
  }
  return json;
}

std::string written(const Document &document, const std::vector<Document> &programs = {}) {
  std::string text;
  report::write_document(document, programs, [&](std::string_view piece) { text += piece; });
  return text;
}

analyze::HeapResult result_of(uint64_t seed) {
  profile::Profile p = profile_builder::random_profile(seed, 30);
  image::Symbols symbols = image::open(analyze::module_files(p));
  return analyze::heap(p, symbols, {});
}

TEST(Document, IsWhatTheLibraryPrints) {
  Document document;
  EXPECT_EQ(written(document), "{\n}\n");
  document.put("text", "two\nlines, \"quoted\" and \xff\xfe bad");
  document.put("nothing", nullptr);
  document.put("empty", Json::array());
  document.put("deep", {{"list", {1, {{"key", Json::object()}}}}, {"share", 0.1}});
  document.list("none", 0, nullptr);
  document.list("numbers", 2, [](size_t index) { return index; });
  document.list("objects", 3, [](size_t index) {
    return Json{{"index", index}, {"list", {index, "a\nb"}}, {"empty", Json::object()}};
  });
  EXPECT_EQ(written(document), report::document_text(whole(document)));
}

TEST(Document, OfAHeapIsWhatTheLibraryPrints) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    analyze::HeapResult result = result_of(seed);
    analyze::CallTree tree = analyze::call_tree(result, {});
    ASSERT_FALSE(result.contexts.empty());
    for (const char *sort : {"", "bytes"})
      for (unsigned top : {0U, 3U}) {
        Json json = whole(report::heap_document(result, top, sort, &tree));
        EXPECT_EQ(report::heap_json(result, top, sort, &tree), report::document_text(json));
        EXPECT_EQ(Json::parse(report::document_text(json)), json);
      }
  }
}

TEST(Document, ProgramsAreTheLastKey) {
  analyze::HeapResult one = result_of(1), two = result_of(2);
  std::vector<Document> programs = {report::heap_document(one, 0, ""),
                                    report::heap_document(two, 2, "bytes")};
  Document document = report::heap_document(two, 0, "");
  Json json = whole(document);
  json["programs"] = {whole(programs[0]), whole(programs[1])};
  EXPECT_EQ(written(document, programs), report::document_text(json));
}

// Else a document of gigabytes would be in memory.
TEST(Document, AnElementIsWrittenBeforeTheNextIsMade) {
  std::string text;
  Document document;
  document.list("list", 3, [&](size_t index) {
    if (index)
      EXPECT_TRUE(text.ends_with("element " + std::to_string(index - 1) + "\"")) << text;
    return "element " + std::to_string(index);
  });
  EXPECT_EQ(text, "");
  report::write_document(document, {}, [&](std::string_view piece) {
    while (!piece.empty() && (piece.front() == ',' || piece.front() == '\n'))
      piece.remove_prefix(1);
    if (piece.find_first_not_of(' ') != std::string_view::npos)
      text += piece;
  });
  EXPECT_NE(text.find("element 2"), std::string::npos);
}

} // namespace
