// Text, ticks and colours of pictures.
#include "post/svg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "has.h"
#include "post/naming.h"
#include "post/ticks.h"
#include "post/xml.h"

namespace gptbench {
namespace {

TEST(Svg, TextIsEscaped) {
  EXPECT_EQ(xml("<a b=\"c\" d='e'>&\x1b"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\\x1b");
}

TEST(Svg, LabelsOfTicks) {
  std::string labels;
  for (const double value : {0.0, 0.25, 1.0, 8192.0, 12000.0, 65536.0, 1.5e6, 2e9, 3e12, -1.5e6})
    labels += tick_label(value) + " ";
  EXPECT_EQ(labels, "0 0.25 1 8192 12k 65536 1.5M 2G 3T -1.5M ");
}

TEST(Svg, TicksAreRound) {
  EXPECT_EQ(round_ticks(0.0, 1012.0, 6), (std::vector<double>{0, 200, 400, 600, 800, 1000}));
  // Less than a decade, where data themselves were once the ticks.
  EXPECT_EQ(round_ticks(933.9, 1078.8, 4), (std::vector<double>{950, 1000, 1050}));
  EXPECT_EQ(log_ticks(100.0, 5000.0, 400.0, 26.0),
            (std::vector<double>{100, 200, 500, 1000, 2000, 5000}));
  EXPECT_EQ(log_ticks(10.0, 1000.0, 400.0, 26.0).back(), 1000.0);
  EXPECT_GE(log_ticks(933.9, 1078.8, 400.0, 26.0).size(), 3U);
  // 160 pixels have room for four ticks at twice their distance: less than three steps of 50.
  EXPECT_EQ(log_ticks(933.9, 1078.8, 200.0, 25.0), (std::vector<double>{950, 1000, 1050}));
  EXPECT_LE(log_ticks(1.0, 1e12, 400.0, 26.0).size(), 16U);
}

double luminance(const std::string& colour) {
  const auto channel = [&](size_t at) {
    const double value = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

// Contrast ratio as the Web Content Accessibility Guidelines define it.
double contrast(double a, double b) {
  return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

TEST(Svg, EveryColourIsLegibleOnWhiteAndOnDark) {
  const std::string style = picture_style();
  const std::regex series("\\.c([0-7n])\\{fill:(#[0-9a-f]{6})\\}");
  int colours = 0;
  for (std::sregex_iterator at(style.begin(), style.end(), series), end; at != end; ++at) {
    ++colours;
    const double of_series = luminance((*at)[2]);
    EXPECT_GE(contrast(of_series, 1.0), 3.0) << (*at)[2];
    EXPECT_GE(contrast(of_series, luminance("#14181d")), 3.0) << (*at)[2];
  }
  EXPECT_EQ(colours, 9);
}

Picture made_picture();

// Letters of several bytes stay whole.
TEST(Svg, LongTextIsCut) {
  Picture picture = made_picture();
  std::string name;
  for (int i = 0; i < 400; ++i) name += "\xc3\xa9";
  picture.legend[0].name = name;
  const std::string text = svg_of(picture);
  EXPECT_FALSE(has(text, name));
  EXPECT_TRUE(has(text, "\xc3\xa9...</text>"));
  EXPECT_FALSE(has(text, "\\x"));
}

// A range of 1 to 300 has no step 0, which a round tick would be.
TEST(Svg, StepsBeginWithOne) {
  Picture picture = made_picture();
  picture.panels[0].boxes.clear();
  picture.panels[0].curves = {{0, "curve", {{1, 2, 2, 2, ""}, {300, 2, 2, 2, ""}}}};
  picture.panels[0].y.ticks = {{2.0, "two"}};
  EXPECT_TRUE(has(svg_of(picture), "class=\"mid\">0</text>"));
  picture.panels[0].x.whole = true;
  const std::string steps = svg_of(picture);
  EXPECT_FALSE(has(steps, "class=\"mid\">0</text>"));
  EXPECT_TRUE(has(steps, "class=\"mid\">1</text>"));
  EXPECT_TRUE(has(steps, "class=\"mid\">50</text>"));
}

// Names of a sweep's rows, which differ at their end, and one without a place to break it.
TEST(Svg, LongLabelsOfRowsAreBrokenNotCut) {
  const std::string name = "llama-study-zero_stage_0-activation_checkpointing_full-micro_batch_";
  const auto drawn = [](const std::string& label) {
    Picture picture = made_picture();
    picture.panels[0].y.ticks = {{1.0, label}};
    return svg_of(picture);
  };
  const std::string one = drawn(name + "size_1, 2 ranks");
  EXPECT_TRUE(has(one, ">llama-study-zero_stage_0-activation_</text>")) << one;
  EXPECT_TRUE(has(one, ">checkpointing_full-micro_batch_size_1, 2 ranks</text>"));
  EXPECT_NE(one, drawn(name + "size_2, 2 ranks"));
  const std::regex height("viewBox=\"0 0 960 ([0-9.]*)\"");
  std::smatch of_two, of_six;
  const std::string six = drawn(std::string(260, 'x') + "y");
  ASSERT_TRUE(std::regex_search(one, of_two, height));
  ASSERT_TRUE(std::regex_search(six, of_six, height));
  EXPECT_TRUE(has(six, "xy</text>"));
  // Rows have room for two lines: without the parts that the long labels share these suffice.
  Picture picture = made_picture();
  picture.panels[0].y.ticks = {{1.0, name + "size_1, 2 ranks, rank 0"},
                               {2.0, "rank 1"},
                               {3.0, name + "size_2, 2 ranks, rank 0"}};
  const std::string rows = svg_of(picture);
  EXPECT_TRUE(has(rows, ">...micro_batch_size_1, 2 ranks, rank 0</text>")) << rows;
  EXPECT_TRUE(has(rows, ">...micro_batch_size_2, 2 ranks, rank 0</text>"));
  // A plane of 380 pixels, three times as high.
  EXPECT_NEAR(std::stod(of_six[1]) - std::stod(of_two[1]), 760.0, 0.2);
}

Picture made_picture() {
  Picture picture{"made", "Made <picture>", "of & a run"};
  Panel panel;
  panel.x.label = "x";
  panel.y.label = "y";
  for (size_t style = 0; style < 20; ++style) {
    panel.curves.push_back({style, "curve", {{1, 2, 1, 3, "a \"tip\""}, {2, NAN, 0, 0, "none"}}});
    panel.boxes.push_back({0, 1, 0, static_cast<double>(style), style, "box", "tip"});
    picture.legend.push_back({"curve", style});
  }
  panel.boxes.push_back({0, 1, 0, 1, hatched, "box", ""});
  panel.rules.push_back({1.0, "limit"});
  picture.panels = {panel};
  return picture;
}

// Several pictures stand on one page.
TEST(Svg, HasNoIds) {
  const std::string text = svg_of(made_picture());
  EXPECT_FALSE(has(text, " id=")) << text;
  EXPECT_FALSE(has(text, "url("));
}

// Neither values without a number nor text of a file spoil the picture.
TEST(Svg, HoldsNoNumberThatIsNone) {
  const std::string text = svg_of(made_picture(), picture_style());
  EXPECT_FALSE(has(text, "nan"));
  EXPECT_FALSE(has(text, "inf"));
  EXPECT_TRUE(has(text, "Made &lt;picture&gt;"));
  EXPECT_TRUE(has(text, "<title>a &quot;tip&quot;</title>"));
}

// A line through marks that stand nowhere once did not end.
TEST(Svg, LinesLeaveOutMarksWithoutAPlace) {
  Curve curve{
      0, "curve", {{NAN, 1, 0, 0, ""}, {NAN, 2, 0, 0, ""}, {1, 3, 0, 0, ""}, {2, 4, 0, 0, ""}}};
  curve.line = true;
  Picture picture{"made", "Made", ""};
  picture.panels.resize(1);
  picture.panels[0].curves = {curve};
  picture.panels[0].x.ticks_at_values = true;
  const std::string text = svg_of(picture);
  EXPECT_TRUE(std::regex_search(text, std::regex("class=\"line s0\" d=\"M[0-9. ]*L[0-9. ]*\"")))
      << text;
  EXPECT_FALSE(has(text, "nan"));
}

// Boxes of all kinds of work in one bar, "other" and hatched ones among them, differ in texture;
// further ones in texture or colour.
TEST(Svg, BoxesDifferInMoreThanColour) {
  std::vector<std::string> textures, looks;
  const auto add = [&](size_t style) {
    Picture picture{"made", "Made", ""};
    picture.legend = {{"box", style}};  // all at one place
    const std::string text = svg_of(picture);
    const std::regex layer("<path class=\"(tex|hatch)\"[^>]*>"), colour("class=\"c[0-7]\"");
    std::string& texture = textures.emplace_back();
    for (std::sregex_iterator at(text.begin(), text.end(), layer), end; at != end; ++at)
      texture += at->str();
    std::smatch found;
    std::regex_search(text, found, colour);
    looks.push_back(found.str() + texture);
  };
  add(hatched);
  for (size_t style = 0; style < 100; ++style) add(style);
  const size_t in_one_bar = 1 + kinds_of_work.size() + 1;
  for (size_t i = 0; i < looks.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(looks[i], looks[j]) << i << " " << j;
      if (i < in_one_bar) {
        EXPECT_NE(textures[i], textures[j]) << i << " " << j;
      }
    }
}

// Twelve series and more differ in dash or mark, not in colour alone.
TEST(Svg, CurvesDifferInMoreThanColour) {
  const std::string text = svg_of(made_picture());
  const std::regex sample(
      "<path class=\"line s([0-7])\" d=\"M[^\"]*h28\" stroke-dasharray=\"([^\"]*)\"/>\n"
      "<path class=\"c[0-7]\" d=\"M[0-9.]* [0-9.]*(m[^\"]*)\"");
  std::vector<std::string> seen;
  for (std::sregex_iterator at(text.begin(), text.end(), sample), end; at != end; ++at)
    seen.push_back(std::string((*at)[2]) + (*at)[3].str());
  ASSERT_EQ(seen.size(), 20U);
  for (size_t i = 0; i < 12; ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(seen[i], seen[j]) << i << " " << j;
}

}  // namespace
}  // namespace gptbench
