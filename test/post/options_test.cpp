#include "post/options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace gptbench {
namespace {

using Arguments = std::vector<std::string>;

std::string message_of(const Arguments& arguments) {
  try {
    parse_options(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "no error";
}

TEST(Options, AllOfTable) {
  const Options o =
      parse_options({"table", "--style=mpt", "a.h5", "--format", "csv", "-o", "out.csv",
                     "--convention", "causal", "--peak", "1979", "--where", "model.preset=mpt-7b",
                     "--where=status=OK", "--sort", "-tokens_per_s", "--", "-b.h5"});
  EXPECT_EQ(o.style, "mpt");
  EXPECT_EQ(o.format, "csv");
  EXPECT_EQ(o.output, "out.csv");
  EXPECT_EQ(o.restatement.convention, "causal");
  EXPECT_EQ(o.restatement.peak_tflops, 1979.0);
  EXPECT_EQ(o.restatement.peak_type, "");
  ASSERT_EQ(o.where.size(), 2u);
  EXPECT_EQ(o.where[1], (std::pair<std::string, std::string>("status", "OK")));
  EXPECT_EQ(o.sort, "tokens_per_s");
  EXPECT_TRUE(o.descending);
  EXPECT_EQ(o.files, (Arguments{"a.h5", "-b.h5"}));
}

TEST(Options, PublishedFilesAloneSuffice) {
  const Options o =
      parse_options({"table", "--published", "a.csv", "--published=b.csv", "--peak", "both"});
  EXPECT_EQ(o.published, (Arguments{"a.csv", "b.csv"}));
  EXPECT_TRUE(o.files.empty());
  EXPECT_EQ(o.restatement.peak_type, "both");
  EXPECT_EQ(o.restatement.peak_tflops, 0.0);
  EXPECT_EQ(parse_options({"plot", "a", "--over", "length"}).over, "length");
}

TEST(Options, GroupsOfCompare) {
  const Options o = parse_options({"compare", "--least=2", "a1", "a2", "--", "b1", "--", "-c"});
  EXPECT_EQ(o.files, (Arguments{"a1", "a2", "b1", "-c"}));
  EXPECT_EQ(o.group_begins, (std::vector<size_t>{2, 3}));
  EXPECT_EQ(o.min_percent, 2.0);
  EXPECT_TRUE(parse_options({"compare", "--", "-a", "b"}).group_begins.empty());
}

TEST(Options, ConvertTakesTwoNamesAndKeysOfTheModel) {
  const Conversion c = parse_options({"convert", "--to=llmc", "from", "to", "--type", "bf16",
                                      "--shard-gib", "0.5", "model.num_attention_heads=4"})
                           .conversion;
  EXPECT_EQ(c.from, "from");
  EXPECT_EQ(c.to, "to");
  EXPECT_EQ(c.format, WeightFormat::llmc);
  EXPECT_EQ(c.type, DType::bf16);
  EXPECT_EQ(c.shard_gib, 0.5);
  EXPECT_EQ(c.overrides, Arguments{"model.num_attention_heads=4"});
}

TEST(Options, TheFirstFileOfAcceptIsItsSpecification) {
  const Options o =
      parse_options({"accept", "--junit", "j.xml", "s.in", "--format=json", "a", "b"});
  EXPECT_EQ(o.spec, "s.in");
  EXPECT_EQ(o.files, (Arguments{"a", "b"}));
  EXPECT_EQ(o.junit, "j.xml");
  EXPECT_EQ(o.format, "json");
  EXPECT_EQ(parse_options({"accept", "--write-spec", "s.in", "a"}).files, Arguments{"a"});
}

TEST(Options, HelpAndVersionGoFirst) {
  EXPECT_EQ(parse_options({"table", "--help"}).command, Command::help);
  EXPECT_EQ(parse_options({"--version"}).command, Command::version);
}

TEST(Options, EachMistakeIsNamed) {
  struct Case {
    Arguments arguments;
    const char* contains;
  };
  for (const Case& c : std::vector<Case>{
           {{}, "no command"},
           {{"tabel", "a"}, "did you mean table?"},
           {{"table"}, "no result file"},
           {{"table", "--style", "fugaki", "a"}, "did you mean fugaku?"},
           {{"table", "--format", "pdf", "a"}, "md, csv, latex"},
           {{"table", "--fromat", "md", "a"}, "did you mean --format?"},
           {{"table", "a", "--sort"}, "no value"},
           {{"table", "a", "--sort", "-"}, "name of a figure"},
           {{"table", "a", "--where", "x"}, "name=value"},
           {{"table", "a", "--peak", "12q"}, "positive number"},
           {{"table", "a", "--peak", "-3"}, "positive number"},
           {{"table", "a", "-o", ""}, "name is expected"},
           {{"show", "--format", "csv", "a"}, "is none of text, json"},
           {{"show", "--style", "mpt", "a"}, "unknown option '--style' of show"},
           {{"plot", "--kind", "los", "a"}, "did you mean loss?"},
           {{"plot", "a", "--published", ""}, "a file is expected"},
           {{"show", "--published", "x", "a"}, "unknown option '--published' of show"},
           {{"plot", "--over", "size", "a"}, "ranks, length"},
           {{"table", "--over", "ranks", "a"}, "unknown option '--over' of table"},
           {{"table", "a", "--peak", "fp16"}, "bf16, fp8, both"},
           {{"plot", "--format", "md", "a"}, "unknown option '--format' of plot"},
           {{"compare", "a"}, "two result files, 1 given"},
           {{"compare", "a", "b", "--"}, "no result file behind the last --"},
           {{"compare", "a", "b", "--least", "x"}, "positive number"},
           {{"compare", "a", "b", "--leats", "1"}, "did you mean --least?"},
           {{"convert", "a"}, "convert takes FROM TO"},
           {{"convert", "a", "b", "c"}, "model.key=value"},
           {{"convert", "a", "b", "model.heads=2"}, "heads"},
           {{"convert", "a", "b", "--type", "fp8"}, "f32, f16, bf16"},
           {{"accept"}, "no result file"},
           {{"accept", "spec.in"}, "SPEC RESULT"},
           {{"accept", "spec.in", "a", "--junit", ""}, "a file is expected"},
           {{"accept", "--write-spec", "s.in", "a", "--junit", "j.xml"}, "no verdicts for --junit"},
           {{"accept", "--write-spec", "s.in", "a", "--format=json"}, "verdicts for --format json"},
           {{"accept", "spec.in", "a", "--format", "xml"}, "is none of text, json"},
       })
    EXPECT_NE(message_of(c.arguments).find(c.contains), std::string::npos)
        << message_of(c.arguments);
}

TEST(Options, HelpFitsATerminal) {
  const std::string help = help_text();
  size_t first = 0;
  for (size_t end = help.find('\n'); end != std::string::npos; end = help.find('\n', first)) {
    EXPECT_LE(end - first, 80u) << help.substr(first, end - first);
    first = end + 1;
  }
}

}  // namespace
}  // namespace gptbench
