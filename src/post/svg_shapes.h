// The shapes of pictures as SVG elements: text, lines, and the marks and boxes of a style, which
// has a colour, a mark, a dash and a texture of its own. Places are pixels of the page.
#pragma once

#include <cstddef>
#include <string>

namespace gptbench {

// Rounded to a tenth. What lies halfway, whichever way its last bits were rounded, goes up: they
// depend on the processor and the compiler.
std::string number(double value);

// `more`: further attributes, each behind a space.
std::string text_at(double x, double y, const std::string& classes, const std::string& text,
                    const std::string& more = "");
std::string line_of(double x0, double y0, double x1, double y1, const std::string& classes);

// The class of a colour: "c" fills with it, "s" draws lines in it, "t" is text on it.
std::string class_of(const char* prefix, size_t style);
// As of stroke-dasharray; "" for a line without gaps. From the ninth style on colours come again
// with another dash and mark.
const char* dash_of(size_t style);

// Ends an opened element: with a tip as its title, which leaves the end tag to the caller, else
// with "/>".
std::string title_of(const std::string& tip);

// A mark of the style around a point.
std::string mark_of(size_t style, double x, double y, const std::string& tip);

// A box with the texture of its style; of a strength below 1 it is pale and has none.
std::string rectangle(double x, double y, double width, double height, size_t style,
                      double strength, const std::string& tip);

}  // namespace gptbench
