#include "analyze/fields_names.h"

#include <gtest/gtest.h>

#include <map>

namespace {

using Names = std::vector<std::string>;

Names short_fields(const Names &paths) {
  profile::Record record;
  for (const std::string &path : paths)
    record.leaves.emplace_back().name = path;
  return analyze::short_fields(record);
}

TEST(FieldNames, OfBasesAreShort) {
  for (const auto &[path, text] : std::map<std::string, std::string>{
           {"a", "a"},
           {"a.b[3].c", "a.b[3].c"},
           {"Base::a", "Base::a"},
           {"outer::Base::a", "Base::a"},
           {"a::b::c::d", "c::d"},
           {"x.outer::Base<int, my::Key>::a.b", "x.Base<int, my::Key>::a.b"},
           {"_M_impl.std::_Vector_base<int, std::allocator<int> >::_Impl_data::_M_start",
            "_M_impl._Impl_data::_M_start"},
           {"(anonymous namespace)::Base::a", "Base::a"},
           {"", ""}})
    EXPECT_EQ(analyze::short_field(path), text);
}

TEST(FieldNames, OfTheLibraryAreLeftOut) {
  EXPECT_EQ(short_fields({"hits.std::__atomic_base<long>::_M_i", "cold"}), (Names{"hits", "cold"}));
  const std::string vector = "rows.std::_Vector_base<int, std::allocator<int> >::_M_impl."
                             "std::_Vector_base<int, std::allocator<int> >::_Vector_impl_data::";
  EXPECT_EQ(short_fields({vector + "_M_start", vector + "_M_finish", "window.first"}),
            (Names{"rows._M_start", "rows._M_finish", "window.first"}));
  EXPECT_EQ(short_fields({"Base::own.std::__base<int>::__value_", "Base::other"}),
            (Names{"Base::own", "Base::other"}));
}

TEST(FieldNames, StayApart) {
  EXPECT_EQ(short_fields({"a._M_x._M_i", "a._M_y._M_i", "a"}),
            (Names{"a._M_x._M_i", "a._M_y._M_i", "a"}));
  EXPECT_EQ(short_fields({"_M_i", "__x", ""}), (Names{"_M_i", "__x", ""}));
  EXPECT_EQ(short_fields({"std::enable_shared_from_this<A>::_M_weak_this._M_ptr", "_own"}),
            (Names{"enable_shared_from_this<A>::_M_weak_this._M_ptr", "_own"}));
}

} // namespace
