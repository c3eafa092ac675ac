// The namelist grammar against a Fortran program (oracle.f90) that reads the same decks: what
// gfortran accepts must have the same values here, what gfortran refuses must be refused here.
// Documented differences (doc/deck.md) are tested one by one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "deck/deck.h"
#include "deck/namelist.h"
#include "deck/values.h"
#include "random_deck.h"

namespace gptbench {
namespace {

// "probe" or a group of a deck -> values by key, in the format of oracle.f90.
using Values = std::map<std::string, std::string>;
struct GroupReading {
  int status = 0;
  Values values;
};
using Reading = std::map<std::string, GroupReading>;

// Runs the Fortran program on texts[first], texts[first + 1], ... until its library crashes on one,
// which then has no reading; returns the readings up to there.
std::vector<Reading> run_oracle(const std::string& folder, size_t first, size_t count) {
  std::ofstream list(folder + "/list");
  for (size_t n = first; n < count; ++n) list << folder << "/" << n << ".in\n";
  list.close();
  const std::string command = std::string(GPTBENCH_ORACLE) + " " + folder + "/list " + folder +
                              "/out 2> " + folder + "/errors";
  const bool completed = std::system(command.c_str()) == 0;

  std::vector<Reading> readings;
  std::ifstream out(folder + "/out");
  std::string line;
  std::string group;
  while (std::getline(out, line)) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "file") {
      readings.emplace_back();
    } else if (word == "group") {
      words >> group >> readings.back()[group].status;
    } else {
      readings.back()[group].values[word] = line.substr(word.size() + 1);
    }
  }
  const bool is_last_partial = !readings.empty() && readings.back().count("output") == 0;
  if (!completed && is_last_partial) readings.pop_back();
  return readings;
}

constexpr int crashed = 1000;

std::vector<Reading> read_with_gfortran(const std::vector<std::string>& texts) {
  const std::string folder = testing::TempDir() + "gptbench_oracle_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  for (size_t n = 0; n < texts.size(); ++n) {
    std::ofstream(folder + "/" + std::to_string(n) + ".in", std::ios::binary) << texts[n];
  }
  std::vector<Reading> readings;
  while (readings.size() < texts.size()) {
    for (const Reading& reading : run_oracle(folder, readings.size(), texts.size())) {
      readings.push_back(reading);
    }
    if (readings.size() < texts.size()) {
      readings.emplace_back();
      readings.back()["probe"].status = crashed;
    }
  }
  std::filesystem::remove_all(folder);
  return readings;
}

std::string bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  char text[20];
  std::snprintf(text, sizeof text, "%016llX", static_cast<unsigned long long>(bits));
  return text;
}

// The group &probe as namelist.cpp and values.cpp read it; throws Error.
Values read_probe(const std::string& text) {
  static const std::map<std::string, int64_t> sizes = {{"i", 1},  {"j", 1},  {"ia", 3}, {"x", 1},
                                                       {"y", 1},  {"xa", 4}, {"l", 1},  {"m", 1},
                                                       {"la", 2}, {"s", 1},  {"u", 1},  {"sa", 3}};
  Values values;
  for (const auto& [key, size] : sizes) {
    for (int64_t n = 1; n <= size; ++n) {
      const std::string name = size == 1 ? key : key + "(" + std::to_string(n) + ")";
      const char type = key[0];
      values[name] = type == 'i' || type == 'j'   ? "-1"
                     : type == 'x' || type == 'y' ? bits_of(-1.0)
                     : type == 'l'                ? "F"
                     : type == 'm'                ? "T"
                                                  : "[default]";
    }
  }
  const Source source{"probe"};
  const std::vector<Group> groups = parse_namelist(source, text);
  if (groups.size() != 1 || groups[0].name != "probe") source.fail({}, "no group &probe");
  for (const Assignment& assignment : groups[0].assignments) {
    const auto size = sizes.find(assignment.key);
    if (size == sizes.end()) source.fail(assignment.place, "unknown key");
    for (const Element& element : distribute(source, assignment, size->second, size->second > 1)) {
      const Token& token = *element.token;
      const std::string name = size->second == 1
                                   ? assignment.key
                                   : assignment.key + "(" + std::to_string(element.index) + ")";
      switch (assignment.key[0]) {
        case 'i':
        case 'j':
          values[name] = std::to_string(to_integer(source, token, ""));
          break;
        case 'x':
        case 'y':
          values[name] = bits_of(to_real(source, token, ""));
          break;
        case 'l':
        case 'm':
          values[name] = to_logical(source, token, "") ? "T" : "F";
          break;
        default:
          values[name] = "[" + to_string(source, token, "") + "]";
      }
    }
  }
  return values;
}

// "" where read_probe refuses the text, with the reason in `message`.
bool accepts(const std::string& text, Values& values, std::string& message) {
  try {
    values = read_probe(text);
    return true;
  } catch (const Error& error) {
    message = error.what();
    return false;
  }
}

void expect_same(const std::string& text, const Values& ours, const Values& gfortran) {
  for (const auto& [key, value] : gfortran) {
    const auto mine = ours.find(key);
    ASSERT_NE(mine, ours.end()) << key;
    EXPECT_EQ(mine->second, value) << key << " in\n" << text;
  }
}

// Places where gfortran 12 departs from the standard (doc/deck.md), found generously: also inside
// strings and comments.
bool has_documented_difference(const std::string& text) {
  static const std::regex places(
      "[,;=*][ \\t\\r]*!"                    // a comment after a comma, '=' or '*'
      "|\n[ \\t\\r]*[,;]"                    // a comma that begins a line
      "|[,;]\\s*[,;]\\s*[,;]"                // more nulls than a variable has elements
      "|[=,;*\\s][tTfF][^ \\t\\r\\n,;/!=(]"  // T or F written as a longer word without '.'
  );
  return std::regex_search(text, places);
}

int number_of_decks() {
  const char* given = std::getenv("GPTBENCH_TEST_DECKS");
  return given != nullptr ? std::atoi(given) : 500;
}

TEST(Oracle, RandomProbesHaveTheSameValues) {
  const uint64_t seed = test_seed();
  std::cout << "seed " << seed << "\n";
  Dice dice(seed);
  std::vector<std::string> texts;
  for (int n = 0; n < number_of_decks(); ++n) texts.push_back(random_probe(dice));
  const std::vector<Reading> readings = read_with_gfortran(texts);
  for (size_t n = 0; n < texts.size(); ++n) {
    const GroupReading& gfortran = readings[n].at("probe");
    Values ours;
    std::string message;
    ASSERT_EQ(gfortran.status, 0) << "gfortran refuses a deck meant to be valid:\n" << texts[n];
    ASSERT_TRUE(accepts(texts[n], ours, message)) << message << "\n" << texts[n];
    expect_same(texts[n], ours, gfortran.values);
    if (HasFailure()) return;
  }
}

TEST(Oracle, DamagedProbesAreNeverReadDifferently) {
  const uint64_t seed = test_seed() + 1;
  std::cout << "seed " << seed << "\n";
  Dice dice(seed);
  std::vector<std::string> texts;
  for (int n = 0; n < 4 * number_of_decks(); ++n) texts.push_back(damage(dice, random_probe(dice)));
  const std::vector<Reading> readings = read_with_gfortran(texts);
  int both = 0;
  int neither = 0;
  int gfortran_only = 0;
  for (size_t n = 0; n < texts.size(); ++n) {
    const GroupReading& gfortran = readings[n].at("probe");
    if (gfortran.status == crashed) continue;
    Values ours;
    std::string message;
    const bool accepted = accepts(texts[n], ours, message);
    if (!accepted) {
      ++(gfortran.status == 0 ? gfortran_only : neither);
    } else if (!has_documented_difference(texts[n])) {
      ASSERT_EQ(gfortran.status, 0) << "gfortran refuses what is accepted here:\n" << texts[n];
      expect_same(texts[n], ours, gfortran.values);
      ++both;
    }
  }
  std::cout << texts.size() << " decks: " << both << " read the same by both, " << neither
            << " refused by both, " << gfortran_only << " refused here alone\n";
}

// Decks that a hand wrote to be difficult.
TEST(Oracle, DifficultProbesHaveTheSameValues) {
  const std::vector<std::string> texts = {
      "&probe i=5 /",
      "&probe i=\n5 /",
      "&probe i=5\n\n! c\n j=3/",
      "&PROBE I=5;J=3/",
      "&probe i=5,,j=3/",
      "&probe,i=5/",
      "&probe!c\ni=5/",
      "&probe;i=5/",
      "&probe/",
      "$probe i=5 $end",
      "&probe i=5\n&end",
      "&probe i=5 / j=7",
      "text i=3, 'it &probe i=5/",
      "! &probe i=4 /\n&probe i=5/",
      "&probe i\n=5/",
      "&probe i !c\n=5/",
      "&probe\ti\t=\t5\t/",
      "&probe i = 5 , , /",
      "&probe i = \n j = 3/",
      "&probe i = 5\r\n j = 3\r\n/\r\n",
      "&probe i=5! c\n j=3/",
      "&probe i=5 ! c /\n j=3/",
      "&probe i=9223372036854775807 j=-9223372036854775808/",
      "&probe i=1*7/",
      "&probe i=1*/",
      "&probe ia=1,,3/",
      "&probe ia=,2,/",
      "&probe ia=,,3/",
      "&probe ia=;2/",
      "&probe ia=1 2\n3/",
      "&probe ia=1, 2,\n3/",
      "&probe ia=1,\n,3/",
      "&probe ia=1 , , 3/",
      "&probe ia=1, j=3/",
      "&probe ia=1 !c\n 2 !c\n 3/",
      "&probe ia(2)=5/",
      "&probe ia(2)=5,6/",
      "&probe ia(2)=2*1/",
      "&probe ia(2:3)=5,6/",
      "&probe ia(:2)=5,6/",
      "&probe ia(:)=5,6,7/",
      "&probe ia(1:3:2)=5,6/",
      "&probe ia( 2 )=5/",
      "&probe ia(+2)=5/",
      "&probe ia(1)=1,ia(3)=3/",
      "&probe ia=3*7/",
      "&probe ia=2*,7/",
      "&probe ia=2* 7 i=3/",
      "&probe ia=3*\n/",
      "&probe xa=2*0.5,1/",
      "&probe x=1 y=1./",
      "&probe x=.5 y=5.e2/",
      "&probe x=1.d-3 y=1.D+3/",
      "&probe x=1d3 y=1q2/",
      "&probe x=1+3 y=1.5-3/",
      "&probe x=1e400 y=1e-400/",
      "&probe x=inf y=-infinity/",
      "&probe x=4.9406564584124654e-324 y=1.7976931348623157e308/",
      "&probe x=0.1 y=9007199254740993/",
      "&probe l=T m=f/",
      "&probe l=.t. m=.FALSE./",
      "&probe l=.tomato m=F/",
      "&probe l=true, m=false, i=3/",
      "&probe l=m=F/",
      "&probe l=\nm=F/",
      "&probe la=2*T/",
      "&probe s='a''b' u=\"a\"\"b\"/",
      "&probe s=\"it's\" u='say \"x\"'/",
      "&probe s='a\nb' u='c\r\nd'/",
      "&probe s='' u=' '/",
      "&probe s='ends in blanks  ' u='  begins'/",
      "&probe s='ab! c/ = ,;*(' i=3/",
      "&probe s='ab\n! c\n' i=3/",
      "&probe s='a''\n'i=3/",
      "&probe sa='a''b' 'c'/",
      "&probe sa=2*'abc'/",
      "&probe sa(2)='b'/",
      "&probe sa='a','b'\n'c'/",
      "&probe s='back\\slash\\n'/",
      "&probe s='caf\u00e9 \u2192'/",
      // refused
      "&probe i=5",
      "&probe i=5.0/",
      "&probe i=- 5/",
      "&probe i=9223372036854775808/",
      "&probe i=0x10/",
      "&probe i='5'/",
      "&probe i=5e3/",
      "&probe i=3 4/",
      "&probe i=3*7/",
      "&probe i=0*7/",
      "&probe i(1)=4/",
      "&probe i 5/",
      "&probe i==5/",
      "&probe =5/",
      "&probe zz=5/",
      "&probe i/",
      "&probe i=5 j=3 xyz /",
      "&probe i%j=5/",
      "& probe i=5/",
      "&prob i=5/",
      "&probe ia=1,2,3,4/",
      "&probe ia=4*7/",
      "&probe ia(4)=5/",
      "&probe ia(0)=5/",
      "&probe ia()=5/",
      "&probe ia(x)=5/",
      "&probe ia(1,1)=5/",
      "&probe ia (2)=5/",
      "&probe ia(1::2)=5/",
      "&probe ia(2)=3*1/",
      "&probe ia=1*2*3/",
      "&probe ia=-1*2/",
      "&probe ia=2 *3/",
      "&probe ia=99999999999*2/",
      "&probe x=./",
      "&probe x=1e/",
      "&probe x=1e+/",
      "&probe x=e5/",
      "&probe x=1.5.5/",
      "&probe x=0x1p3/",
      "&probe x=1_8/",
      "&probe x=infx/",
      "&probe l=1/",
      "&probe l=yes/",
      "&probe l=.yes./",
      "&probe l=\"T\"/",
      "&probe s=abc/",
      "&probe s='abc",
      "&probe s='abc'd/",
      "&probe s='abc' 'def'/",
      "&probe s=2*'abc'/",
      "&probe i=5 &probe2 j=3/",
      "",
      "no group here",
  };
  std::vector<std::string> lines = texts;
  for (std::string& text : lines) text += "\n";
  const std::vector<Reading> readings = read_with_gfortran(lines);
  int refused = 0;
  for (size_t n = 0; n < lines.size(); ++n) {
    const GroupReading& gfortran = readings[n].at("probe");
    Values ours;
    std::string message;
    const bool accepted = accepts(lines[n], ours, message);
    EXPECT_EQ(accepted, gfortran.status == 0) << message << "\n" << lines[n];
    if (accepted && gfortran.status == 0) expect_same(lines[n], ours, gfortran.values);
    refused += accepted ? 0 : 1;
  }
  std::cout << lines.size() << " decks, " << refused << " of them refused by both\n";
}

// The differences that doc/deck.md lists. gfortran's side is checked as well, so that a library
// that behaves otherwise is noticed (then the list can become shorter).
TEST(Oracle, DocumentedDifferences) {
  struct Case {
    std::string text;
    std::string ours;      // "key=value", or "" where refused
    std::string gfortran;  // the same
  };
  const std::vector<Case> cases = {
      // a null value between a comma and a comment, or before a comma that begins a line
      {"&probe ia=1, ! one\n 2/\n", "ia(2)=2", "ia(3)=2"},
      {"&probe sa='a'\n,'b'/\n", "sa(2)=[b]", "sa(3)=[b]"},
      {"&probe ia=1,2\n,3/\n", "ia(3)=3", ""},
      {"&probe ia=\n,2/\n", "ia(2)=2", "ia(1)=2"},
      // values dropped, names put together
      {"&probe i=5&end\n", "", "i=-1"},
      {"&probe i=5j=3/\n", "", "i=-1"},
      {"&probe x=-/\n", "", "x=BFF0000000000000"},
      {"&probe i,=5/\n", "", "i=5"},
      {"&probe s\na='x'/\n", "", "sa(1)=[x]"},
      // the end of the file and of a logical
      {"&probe i=5 /", "i=5", ""},
      {"&probe l=true/\n", "l=T", ""},
      // not in a deck
      {"&probe s(2:3)='xy'/\n", "", "s=[dxyault]"},
      {"&probe s=12/\n", "", "s=[12]"},
      {"&probe ia(3:1:-1)=1,2,3/\n", "", "ia(3)=1"},
      {"&probe s='\a'/\n", "", "s=[\a]"},
      {"&probe s='\xff'/\n", "", "s=[\xff]"},
  };
  std::vector<std::string> texts;
  for (const Case& one : cases) texts.push_back(one.text);
  const std::vector<Reading> readings = read_with_gfortran(texts);
  const auto expect = [](const Case& one, const std::string& wanted, bool accepted,
                         const Values& values, const char* who) {
    EXPECT_EQ(accepted, !wanted.empty()) << who << " " << one.text;
    if (!accepted || wanted.empty()) return;
    const size_t equals = wanted.find('=');
    EXPECT_EQ(values.at(wanted.substr(0, equals)), wanted.substr(equals + 1)) << who << one.text;
  };
  for (size_t n = 0; n < cases.size(); ++n) {
    Values ours;
    std::string message;
    const bool accepted = accepts(cases[n].text, ours, message);
    expect(cases[n], cases[n].ours, accepted, ours, "gptbench");
    const GroupReading& gfortran = readings[n].at("probe");
    expect(cases[n], cases[n].gfortran, gfortran.status == 0, gfortran.values, "gfortran");
  }
}

std::string oracle_format(const KeyValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return bits_of(*real);
  if (const auto* logical = std::get_if<bool>(&value)) return *logical ? "T" : "F";
  return "[" + std::get<std::string>(value) + "]";
}

// What oracle.f90 printed for a key, in the form of oracle_format: elements of a list are joined.
std::string oracle_value(const Key& key, const Values& values) {
  if (key.type != KeyType::list) {
    const auto value = values.find(key.name);
    return value == values.end() ? "missing in oracle.f90" : value->second;
  }
  std::vector<std::string> names;
  for (int64_t n = 1; n <= key.elements; ++n) {
    const std::string element = values.at(key.name + "(" + std::to_string(n) + ")");
    if (element != "[]") names.push_back(element.substr(1, element.size() - 2));
  }
  return "[" + (names.empty() ? "none" : join(names, ",")) + "]";
}

TEST(Oracle, RandomDecksHaveTheSameConfig) {
  const uint64_t seed = test_seed() + 2;
  std::cout << "seed " << seed << "\n";
  Dice dice(seed);
  std::vector<std::string> texts = {"&run /\n"};  // the defaults of the two agree
  for (int n = 0; n < number_of_decks(); ++n) texts.push_back(random_deck(dice));
  const std::vector<Reading> readings = read_with_gfortran(texts);
  for (size_t n = 0; n < texts.size(); ++n) {
    const Deck deck = parse_deck("deck", texts[n], {});
    for (const Key& key : key_table()) {
      const GroupReading& gfortran = readings[n].at(key.group);
      ASSERT_LE(gfortran.status, 0) << key.group << " in\n" << texts[n];  // -1: group not there
      EXPECT_EQ(oracle_format(key.get(deck.config)), oracle_value(key, gfortran.values))
          << key.full_name() << " in\n"
          << texts[n];
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gptbench
