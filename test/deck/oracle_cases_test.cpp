// Difficult decks and documented differences, one by one, here and in gfortran.
#include <gtest/gtest.h>

#include <iostream>

#include "oracle.h"

namespace gptbench {
namespace {

// Decks that a hand wrote to be difficult.
TEST(Oracle, DifficultProbesHaveTheSameValues) {
  const std::vector<std::string> texts = {
      "&probe i=5 /",
      "&probe i=\n5 /",
      "&probe i=5\n\n! c\n j=3/",
      "&PROBE I=5,J=3/",
      "&probe i=5,,j=3/",
      "&probe,i=5/",
      "&probe!c\ni=5/",
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
    EXPECT_TRUE(accepted == (gfortran.status == 0) || !is_studied_gfortran()) << message << "\n"
                                                                              << lines[n];
    if (accepted && gfortran.status == 0) expect_same(lines[n], ours, gfortran.values);
    refused += accepted ? 0 : 1;
  }
  std::cout << lines.size() << " decks, " << refused << " of them refused by both\n";
}

// The differences that doc/deck.md speaks of. The side of a studied gfortran is checked as well; of
// another, what it does differently is printed (then the list can become shorter).
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
      // a semicolon, a separator like the comma
      {"&probe;i=5;j=3/\n", "j=3", "j=3"},
      {"&probe ia=;2;;/\n", "ia(2)=2", "ia(2)=2"},
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
  const auto holds = [](const std::string& wanted, bool accepted, const Values& values) {
    if (!accepted || wanted.empty()) return accepted == !wanted.empty();
    const size_t equals = wanted.find('=');
    return values.at(wanted.substr(0, equals)) == wanted.substr(equals + 1);
  };
  for (size_t n = 0; n < cases.size(); ++n) {
    Values ours;
    std::string message;
    const bool accepted = accepts(cases[n].text, ours, message);
    EXPECT_TRUE(holds(cases[n].ours, accepted, ours)) << cases[n].text << message;
    const GroupReading& gfortran = readings[n].at("probe");
    if (holds(cases[n].gfortran, gfortran.status == 0, gfortran.values)) continue;
    std::cout << "this gfortran reads otherwise than version 12: " << cases[n].text << "\n";
    EXPECT_FALSE(is_studied_gfortran()) << cases[n].text;
  }
}

}  // namespace
}  // namespace gptbench
