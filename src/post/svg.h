// Pictures as SVG: one colour scheme that is legible on white and on dark ground, textures, dashes
// and marks beside the colours, tips as <title> elements.
#pragma once

#include <string>

#include "post/picture.h"

namespace gptbench {

// CSS of all pictures of a page.
std::string picture_style();

// The <svg> element. `style`: picture_style() in a file of its own, "" in a page that has it.
std::string svg_of(const Picture& picture, const std::string& style = "");

}  // namespace gptbench
