// From tokens to values, as Fortran's list-directed input reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deck/namelist.h"

namespace gptbench {

// Each throws Error(Exit::usage) at the token's place when the token is no value of the type;
// `expected` ends the message ("allowed: 1 to 8"). Tokens must not be null.

// [sign] digits; int64.
int64_t to_integer(const Source& source, const Token& token, const std::string& expected);
// Integer or real: 1  1.  .5  1.d-3  1.D+3  1e3  1q3  1.5-3 (exponent letter left out)  inf  nan.
// May be infinite.
double to_real(const Source& source, const Token& token, const std::string& expected);
// .true., .false., T, F: as in Fortran an optional '.', then t or f in either case, then anything.
bool to_logical(const Source& source, const Token& token, const std::string& expected);
// A quoted string: the standard has no other in a namelist. Trailing blanks do not count.
std::string to_string(const Source& source, const Token& token, const std::string& expected);

// An element of an array (1-based; a scalar has the element 1) and the token that it is given.
struct Element {
  int64_t index = 1;
  const Token* token = nullptr;
};

// Distributes the values of an assignment over the elements of a variable with `size` elements:
// repeat counts expanded, nulls left out, subscript applied (a(2) = 5, 6 goes on to a(3), as in
// gfortran). Throws where values or subscript do not fit. The tokens belong to `assignment`.
std::vector<Element> distribute(const Source& source, const Assignment& assignment, int64_t size,
                                bool is_array);

// Shortest text that reads back as the same value, in Fortran's syntax: 6.0E-4 is "0.0006",
// 1 is "1.0", true is ".true.", a string is in single quotes with inner ones doubled.
std::string format_real(double value);
std::string format_logical(bool value);
std::string format_string(const std::string& value);
// Strings in this form, with a separator between them.
std::string join_quoted(const std::vector<std::string>& values, const std::string& separator);

}  // namespace gptbench
