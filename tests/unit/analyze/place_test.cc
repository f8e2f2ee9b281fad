#include "analyze/place.h"

#include <gtest/gtest.h>

#include <string>

namespace {

TEST(ShortName, LeavesOutParametersAndTemplateArguments) {
  EXPECT_EQ(analyze::short_name("main"), "main");
  EXPECT_EQ(analyze::short_name("sort.constprop.0"), "sort.constprop.0");
  EXPECT_EQ(analyze::short_name("ns::f<int>(std::vector<int> const&) const"), "ns::f");
  EXPECT_EQ(analyze::short_name("(anonymous namespace)::f()"), "(anonymous namespace)::f");
  EXPECT_EQ(analyze::short_name("app::(anonymous namespace)::f()"),
            "app::(anonymous namespace)::f");
  EXPECT_EQ(
      analyze::short_name("std::_Function_handler<void (), int>::_M_invoke(std::_Any_data const&)"),
      "std::_Function_handler::_M_invoke");
  EXPECT_EQ(analyze::short_name("text_of[abi:cxx11](long)"), "text_of");
  EXPECT_EQ(analyze::short_name("std::__cxx11::basic_string<char>::compare(char const*) const"),
            "std::basic_string::compare");
}

TEST(ShortName, LeavesOutWhatATemplateReturns) {
  EXPECT_EQ(analyze::short_name("void std::vector<A, B>::push<A>(A&&)"), "std::vector::push");
  EXPECT_EQ(analyze::short_name("std::pair<A, B>&& std::forward<std::pair<A, B> >(A&)"),
            "std::forward");
  EXPECT_EQ(analyze::short_name("decltype(f().begin()) g<T>(T const&)"), "g");
  EXPECT_EQ(analyze::short_name("unsigned long A<B>::count<C>() const &"), "A::count");
}

TEST(ShortName, KeepsTheSignsOfOperators) {
  EXPECT_EQ(analyze::short_name("A::operator<(A const&)"), "A::operator<");
  EXPECT_EQ(analyze::short_name("bool operator< <int>(A const&)"), "operator<"); // as GNU has it
  EXPECT_EQ(analyze::short_name("bool std::operator<<int, int>(std::pair<int, int> const&)"),
            "std::operator<");
  EXPECT_EQ(analyze::short_name("bool operator><A>(A, A)"), "operator>");
  EXPECT_EQ(analyze::short_name("std::istream& operator>><A>(std::istream&, A&)"), "operator>>");
  EXPECT_EQ(analyze::short_name("std::ostream& std::operator<<<char>(std::ostream&, char)"),
            "std::operator<<");
  EXPECT_EQ(analyze::short_name("std::strong_ordering operator<=><A>(A, A)"), "operator<=>");
  EXPECT_EQ(analyze::short_name("std::less<A<B>>::operator()(A<B> const&) const"),
            "std::less::operator()");
  EXPECT_EQ(analyze::short_name("J<K>& J<K>::operator[]<char const>(char const*)"),
            "J::operator[]");
  EXPECT_EQ(analyze::short_name("A::operator->() const"), "A::operator->");
  EXPECT_EQ(analyze::short_name("operator new[](unsigned long)"), "operator new[]");
  EXPECT_EQ(analyze::short_name("A::operator unsigned long() const"), "A::operator unsigned long");
  EXPECT_EQ(analyze::short_name("operator_table::get(int)"), "operator_table::get");
}

TEST(ShortName, KeepsWhatIsLocalToAFunction) {
  EXPECT_EQ(analyze::short_name("f(int)::{lambda(int)#1}::operator()(int) const"),
            "f::{lambda#1}::operator()");
  EXPECT_EQ(analyze::short_name("A::f(int) const::'lambda2'(auto&)::operator()(B&) const"),
            "A::f::'lambda2'::operator()");
  EXPECT_EQ(analyze::short_name("f(int) [clone .cold]"), "f [clone .cold]");
  EXPECT_EQ(analyze::short_name("A::f(int) const (.cold)"), "A::f (.cold)");
  EXPECT_EQ(analyze::short_name("void f<int>(int) requires std::integral<int>"), "f");
  EXPECT_EQ(analyze::short_name("A::f() const volatile &&"), "A::f");
}

TEST(ShortName, LeavesOtherTextsAsTheyAre) {
  EXPECT_EQ(analyze::short_name("0x10 in libc.so.6"), "0x10 in libc.so.6");
  EXPECT_EQ(analyze::short_name("[not decoded]"), "[not decoded]");
  EXPECT_EQ(analyze::short_name("void (*choose(int))(long)"), "void (*choose(int))(long)");
  EXPECT_EQ(analyze::short_name(""), "");
}

} // namespace
