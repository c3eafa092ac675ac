// The Fortran program oracle.f90 and the grammar of deck/, both reading the same texts.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gptbench {

// Values by key, in the format of oracle.f90.
using Values = std::map<std::string, std::string>;
struct GroupReading {
  int status = 0;  // Fortran's iostat
  Values values;
};
// By group: "probe" and the groups of a deck.
using Reading = std::map<std::string, GroupReading>;

// Status of &probe where gfortran's library crashed on the text; such a reading holds nothing else.
constexpr int crashed = 1000;

// Whether what this gfortran refuses was studied (version 12): elsewhere the tests compare values
// where both accept a deck, and report differences in what is refused without failing.
bool is_studied_gfortran();
// Whether this gfortran takes ';' for a separator; version 12 does, later ones need not.
bool semicolon_separates();

// One reading a text, in their order.
std::vector<Reading> read_with_gfortran(const std::vector<std::string>& texts);

// The 16 hexadecimal digits of a double, as oracle.f90 prints it.
std::string bits_of(double value);

// The group &probe as namelist.cpp and values.cpp read it. False where they refuse it, with the
// reason in `message`.
bool accepts(const std::string& text, Values& values, std::string& message);

// GoogleTest expectations: every value of gfortran's is ours.
void expect_same(const std::string& text, const Values& ours, const Values& gfortran);

}  // namespace gptbench
