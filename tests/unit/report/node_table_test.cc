#include "report/node_table.h"

#include <gtest/gtest.h>

namespace {

using report::Json;

// What the page's own reader does (web/src/document.ts).
Json read(const Json &tables, const Json &value) {
  if (!value.is_array())
    return value;
  if (value[0] == -1) {
    Json list = Json::array();
    for (const Json &element : tables["lists"][value[1].get<size_t>()])
      list.push_back(read(tables, element));
    return list;
  }
  const Json &table = tables["tables"][value[0].get<size_t>()];
  Json object = Json::object();
  for (size_t column = 0; column < table["keys"].size(); column++)
    object[table["keys"][column].get<std::string>()] =
        read(tables, table["columns"][column][value[1].get<size_t>()]);
  return object;
}

TEST(NodeTable, ReadsAsWritten) {
  const Json document =
      Json::parse(R"({"schema": "x/1", "empty": [], "none": {}, "null": null, "yes": true,
    "numbers": [0, -1, 18446744073709551615, 0.5, 1e300], "lists": [[-1, 0], [0, 0], [[]]],
    "rows": [{"a": 1, "b": {"c": "\u0000\"\\\n\u20ac"}}, {"a": [], "b": null}, {"b": 1, "a": 2}]})");
  report::NodeTable nodes;
  const std::string root = nodes.add(document);
  const Json tables = Json::parse(nodes.text(root));
  EXPECT_EQ(read(tables, tables["root"]).dump(), document.dump());
}

TEST(NodeTable, KeepsWhatComesAgainOnce) {
  report::NodeTable nodes;
  const Json frame = {{"function", "main"}, {"line", 3}};
  std::vector<std::string> contexts;
  for (int i = 0; i < 1000; i++)
    contexts.push_back(nodes.add_new({{"id", i}, {"stack", {frame, frame}}}));
  const Json tables = Json::parse(nodes.text(nodes.add_list(contexts)));
  ASSERT_EQ(tables["tables"].size(), 2u);
  EXPECT_EQ(tables["tables"][0]["columns"][0].size(), 1u);    // the frame
  EXPECT_EQ(tables["tables"][1]["columns"][0].size(), 1000u); // contexts
  EXPECT_EQ(tables["lists"].size(), 2u);                      // the stack; all contexts
  EXPECT_EQ(read(tables, tables["root"])[999]["stack"][1], frame);
}

TEST(NodeTable, NamesThatAreNoTextStayReadable) {
  report::NodeTable nodes;
  const std::string root = nodes.add({{"name", "\xff\xfe"}});
  EXPECT_EQ(read(Json::parse(nodes.text(root)), Json::parse(root))["name"],
            "\xef\xbf\xbd\xef\xbf\xbd");
}

} // namespace
