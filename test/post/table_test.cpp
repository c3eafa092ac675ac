#include "post/table.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

const Table small = {
    "A caption_", {{"name", false}, {"x", true}}, {{"a|b", "1"}, {"\xc3\xa9\nf", "22,5"}}};

TEST(Tables, Markdown) {
  EXPECT_EQ(format_markdown({small}),
            "A caption_\n\n"
            "| name   |    x |\n"
            "|--------|-----:|\n"
            "| a\\|b   |    1 |\n"
            "| \xc3\xa9<br>f | 22,5 |\n");
}

// Text of a foreign file: no HTML, code, link or picture, and no cell more than the table has.
TEST(Tables, MarkdownOfHostileText) {
  EXPECT_EQ(format_markdown({{"", {{"a", true}}, {{"1"}}}}).rfind("|   a |\n|----:|\n|   1 |\n", 0),
            0U)
      << format_markdown({{"", {{"a", true}}, {{"1"}}}});
  EXPECT_EQ(format_markdown({{"<b>`x`", {{"a \\ b", false}}, {{"<i> `c` ![p](u) \\| \\<"}}}}),
            "\\<b>\\`x\\`\n\n"
            "| a \\ b                         |\n"
            "|-------------------------------|\n"
            "| \\<i> \\`c\\` !\\[p](u) \\\\\\| \\\\\\< |\n");
}

// A spreadsheet would compute or execute the first five; the others are figures, or harmless.
TEST(Tables, CsvOfTextThatReadsAsAFormula) {
  const Table table = {"=1\n=2",
                       {{"h", false}},
                       {{"=HYPERLINK(1)"},
                        {"+1 (x)"},
                        {"-cmd|' /C calc'!A0"},
                        {"@SUM(1,2)"},
                        {"\tx"},
                        {"-0.5"},
                        {"+1e-6"},
                        {"-"},
                        {"a=b"}}};
  const std::string text =
      "h\n'=HYPERLINK(1)\n'+1 (x)\n'-cmd|' /C calc'!A0\n\"'@SUM(1,2)\"\n'\tx\n"
      "-0.5\n+1e-6\n-\na=b\n";
  EXPECT_EQ(format_csv({table, table}), text + text.substr(2));
}

TEST(Tables, Csv) {
  EXPECT_EQ(format_csv({small}), "name,x\na|b,1\n\"\xc3\xa9\nf\",\"22,5\"\n");
  EXPECT_EQ(format_csv({{"one", {{"h"}}, {{"say \"hi\""}}}, {"two", {{"h"}}, {}}}),
            "h\n\"say \"\"hi\"\"\"\n");
  // The columns of all tables; two of one heading stay two.
  EXPECT_EQ(format_csv({{"one", {{"a"}, {"b"}, {"a"}}, {{"1", "2", "3"}}},
                        {"two", {{"c"}, {"a"}}, {{"4", "5"}}}}),
            "a,b,a,c\n1,2,3,\n5,,,4\n");
}

TEST(Tables, Latex) {
  EXPECT_EQ(format_latex({{"50 % \\ of_{x}", {{"# gpus", true}}, {{"1^2 & ~"}}}}),
            "\\begin{table}\n"
            "\\caption{50 \\% \\textbackslash{} of\\_\\{x\\}}\n"
            "\\begin{tabular}{r}\n\\hline\n"
            "\\# gpus \\\\\n\\hline\n"
            "1\\textasciicircum{}2 \\& \\textasciitilde{} \\\\\n"
            "\\hline\n\\end{tabular}\n\\end{table}\n");
}

// 60 characters are more than a page is wide, 120 than it is high; 50 rows are more than one holds.
TEST(Tables, LatexFitsOnPages) {
  const auto table = [](size_t width, size_t rows) {
    return format_latex({{"c", {{"a", false}}, {rows, {std::string(width, 'x')}}}});
  };
  const auto count = [](const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(table(50, 1).rfind("\\begin{table}\n", 0), 0U);
  EXPECT_EQ(table(60, 1).rfind("% The preamble needs \\usepackage{graphicx}\n\\begin{table}\n", 0),
            0U);
  EXPECT_EQ(count(table(60, 1), "\\resizebox{\\textwidth}{!}{%\n"), 1U);
  EXPECT_EQ(table(120, 1).rfind("% The preamble needs \\usepackage{graphicx} and "
                                "\\usepackage{rotating}\n\\begin{sidewaystable}\n",
                                0),
            0U);
  const std::string long_one = table(20, 50);
  EXPECT_EQ(count(long_one, "\\end{tabular}\n\\end{table}\n"), 2U);
  EXPECT_EQ(count(long_one, "\\hline\na \\\\\n\\hline\n"), 2U) << long_one;
  EXPECT_EQ(count(long_one, std::string(20, 'x')), 50U);
  EXPECT_EQ(count(long_one, "\\caption{Continued: c}"), 1U);
}

// Characters that are others in LaTeX's default encoding, and a row that begins like an argument of
// the line end before it.
TEST(Tables, LatexCharactersOfNotes) {
  const std::string text = format_latex({{"", {{"a", true}}, {{"[1] <b|c> *"}, {"*2\x1b"}}}});
  EXPECT_NE(text.find("\n{[}1{]} \\textless{}b\\textbar{}c\\textgreater{} {*} \\\\\n"
                      "{*}2\\textbackslash{}x1b \\\\\n"),
            std::string::npos)
      << text;
}

TEST(Tables, PlainWithoutTrailingBlanks) {
  EXPECT_EQ(format_plain({"", {{"name", false}, {"", false}}, {{"a", ""}, {"long one", "x"}}}),
            "name\na\nlong one  x\n");
}

}  // namespace
}  // namespace gptbench
