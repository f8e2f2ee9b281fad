#include "analyze/type_names.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace {

using analyze::short_type;

TEST(TypeNames, LoseDefaultArguments) {
  const std::string string =
      "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
  EXPECT_EQ(short_type(string), "std::string");
  EXPECT_EQ(short_type("std::basic_string<char>"), "std::string");
  EXPECT_EQ(short_type("std::vector<" + string + ", std::allocator<" + string + " > >"),
            "std::vector<std::string>");
  EXPECT_EQ(
      short_type(
          "std::map<int, std::vector<long, std::allocator<long> >, std::less<int>, "
          "std::allocator<std::pair<int const, std::vector<long, std::allocator<long> > > > >"),
      "std::map<int, std::vector<long>>");
  EXPECT_EQ(short_type("std::unique_ptr<Node, std::default_delete<Node> > *"),
            "std::unique_ptr<Node> *");
  EXPECT_EQ(short_type("std::unordered_map<long, Node *, std::hash<long>, std::equal_to<long>, "
                       "std::allocator<std::pair<const long, Node *> > >"),
            "std::unordered_map<long, Node *>");
  EXPECT_EQ(short_type("std::set<int, std::less<int>, std::allocator<int> >"), "std::set<int>");
  EXPECT_EQ(short_type("std::__1::vector<int, std::__1::allocator<int>>"), "std::vector<int>");
}

TEST(TypeNames, KeepWhatTheUserChose) {
  for (const char *type :
       {"Node", "struct Node", "Table<int, 5>", "std::vector<int, Arena<int>>",
        "std::pair<int, std::allocator<int>>", "Mine<int, std::allocator<int>>",
        "std::map<int, long, std::greater<int>>", "std::set<int, std::less<>>",
        "std::map<int, std::less<int>>", "std::unordered_set<Key, std::hash<Other>>",
        "std::unique_ptr<Base, std::default_delete<Derived>>", "std::__debug::vector<int>",
        "std::allocator<int>", "std::vector<bool> const &", "unsigned char[16]",
        "std::function<void (int, std::string)>"})
    EXPECT_EQ(short_type(type), type);
}

TEST(TypeNames, AreFoundWithinPathsAndFunctions) {
  EXPECT_EQ(
      short_type(
          "_M_impl.std::_Vector_base<int, std::allocator<int> >::_Vector_impl_data::_M_start"),
      "_M_impl.std::_Vector_base<int>::_Vector_impl_data::_M_start");
  EXPECT_EQ(short_type("run(std::vector<int, std::allocator<int> >)::Local"),
            "run(std::vector<int>)::Local");
  EXPECT_EQ(short_type("Table<(anonymous namespace)::Key, Kind{3}>"),
            "Table<(anonymous namespace)::Key, Kind{3}>");
}

TEST(TypeNames, StayWhereTheyAreNotUnderstood) {
  for (const char *type : {"a < b", "Table<int", "Table<int]>", ">", "<", "", "x->y",
                           "bool operator<<A>(A, A)", "Table<(1 > 2)>"})
    EXPECT_EQ(short_type(type), type);
}

TEST(TypeNames, MayBeAsDeepAsDamageMakesThem) {
  for (const size_t depth : {50u, 20'000u}) {
    std::string type;
    for (size_t i = 0; i < depth; i++)
      type += "a<";
    type += "int" + std::string(depth, '>');
    EXPECT_EQ(short_type(type), type);
  }
}

} // namespace
