// Advice that can be followed: only a struct of the program's has members to move.
#include "analyze/place.h"

#include <gtest/gtest.h>

namespace {

TEST(Place, OnlyStructsOfTheProgramHaveMembersToMove) {
  for (const char *type : {"Node", "app::Table<int>", "struct_node"})
    EXPECT_NE(analyze::how_to_lay_out(type).find("members"), std::string::npos) << type;
  for (const char *type : {"", "char", "unsigned long", "std::basic_string<char>"})
    EXPECT_NE(analyze::how_to_lay_out(type).find("keep what is used"), std::string::npos) << type;
  for (const char *type : {"std::_Rb_tree_node<std::pair<int const, int> >",
                           "std::__detail::_Hash_node<int, false>", "std::_List_node<int>"})
    EXPECT_NE(analyze::how_to_lay_out(type).find("container"), std::string::npos) << type;
}

} // namespace
