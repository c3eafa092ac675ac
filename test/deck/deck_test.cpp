// Key table, overrides, presets and echo: from text to Config and back.
#include "deck/deck.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "base/units.h"
#include "deck/presets.h"
#include "deck/validate.h"
#include "random_deck.h"

namespace gptbench {
namespace {

void expect_same_config(const Config& a, const Config& b, const std::string& context) {
  for (const Key& key : key_table()) {
    EXPECT_EQ(format_value(key, key.get(a)), format_value(key, key.get(b)))
        << key.full_name() << " in\n"
        << context;
  }
}

// Another value that the choice allows.
std::string other_text(const Key& key, const std::string& text) {
  if (key.allowed.empty()) return text + "x";
  return key.allowed.back() == text ? key.allowed.front() : key.allowed.back();
}

TEST(KeyTable, EveryChoiceIsKeptByItsText) {
  for (const Key& key : key_table()) {
    for (const std::string& text : key.allowed) {
      Config config;
      key.set(config, text);
      EXPECT_EQ(key.get(config), KeyValue(text)) << key.full_name();
    }
  }
}

TEST(KeyTable, EveryKeyReadsAndWritesItsOwnField) {
  for (const Key& key : key_table()) {
    Config config;
    const KeyValue before = key.get(config);
    KeyValue other = before;
    if (auto* integer = std::get_if<int64_t>(&other)) *integer += 1;
    if (auto* real = std::get_if<double>(&other)) *real += 1.0;
    if (auto* logical = std::get_if<bool>(&other)) *logical = !*logical;
    if (auto* text = std::get_if<std::string>(&other)) *text = other_text(key, *text);
    key.set(config, other);
    for (const Key& any : key_table()) {
      EXPECT_EQ(any.get(config), &any == &key ? other : any.get(Config{}))
          << "after setting " << key.full_name() << ", " << any.full_name();
    }
  }
}

TEST(KeyTable, NamesAreUniqueAndDefaultsAllowed) {
  std::vector<std::string> names;
  for (const Key& key : key_table()) {
    EXPECT_EQ(find_key(key.group, key.name), &key);
    EXPECT_EQ(&key_table()[key_index(key)], &key);
    EXPECT_FALSE(key.doc.empty()) << key.full_name();
    names.push_back(key.full_name());
    const std::string text =
        "&" + key.group + " " + key.name + " = " + format_value(key, default_value(key)) + " /";
    EXPECT_NO_THROW(parse_deck("default", text, {})) << text;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

TEST(Deck, DefaultsStayWhereNothingIsGiven) {
  expect_same_config(parse_deck("a.in", "&run / &batch micro_batch_size = , /", {}).config,
                     Config{}, "");
}

TEST(Deck, ArraysOfIntegers) {
  const auto layers = [](const std::string& items, const std::vector<std::string>& overrides = {}) {
    return parse_deck("a.in", "&parallel " + items + " /", overrides).config.parallel.stage_layers;
  };
  EXPECT_EQ(layers("stage_layers = 4, 4 4,0"), "4,4,4,0");
  EXPECT_EQ(layers("stage_layers = 3*4, 0"), "4,4,4,0");
  EXPECT_EQ(layers("stage_layers(2:3)=2*5 stage_layers(1)=7"), "7,5,5");
  EXPECT_EQ(layers("stage_layers = "), "");
  EXPECT_EQ(layers("stage_layers = 1, 2", {"parallel.stage_layers=3,0"}), "3,0");
  // Many values go over several lines of the echo, which reads back as the same.
  const Deck deck = parse_deck("a.in", "&parallel stage_layers = 100*12 /", {});
  const Deck again = parse_deck("echo", echo(deck), {});
  expect_same_config(again.config, deck.config, echo(deck));
}

TEST(Deck, OverridesFollowTheDeck) {
  const Deck deck =
      parse_deck("a.in", "&run steps=20 name='a' / &data path='x' /",
                 {"run.steps=30", "RUN.Name=b c", "data.path=/d/it's.txt", "optimizer.lr=1.d-3",
                  "run.verify=F", "run.device='ref'", "parallel.offload=optimizer,activations"});
  EXPECT_EQ(deck.config.run.steps, 30);
  EXPECT_EQ(deck.config.run.name, "b c");
  EXPECT_EQ(deck.config.data.path, "/d/it's.txt");
  EXPECT_EQ(deck.config.optimizer.lr, 1e-3);
  EXPECT_FALSE(deck.config.run.verify);
  EXPECT_EQ(deck.config.run.device, DeviceKind::ref);
  EXPECT_EQ(deck.config.parallel.offload,
            (std::vector<Offload>{Offload::optimizer, Offload::activations}));
  EXPECT_EQ(deck.origin("run", "steps").where, "command line: run.steps=30");
  EXPECT_EQ(deck.origin("run", "device").where, "command line: run.device='ref'");
  EXPECT_EQ(deck.origin("run", "seed").kind, Origin::Kind::default_value);
}

TEST(Deck, ListsOfStrings) {
  const auto offload = [](const std::string& items) {
    const Deck deck = parse_deck("a.in", "&parallel " + items + " /", {});
    return std::get<std::string>(get_value(deck.config.parallel.offload));
  };
  EXPECT_EQ(offload("offload='none'"), "none");
  EXPECT_EQ(offload("offload=''"), "none");
  EXPECT_EQ(offload("offload='optimizer','parameters'"), "optimizer,parameters");
  EXPECT_EQ(offload("offload='optimizer, PARAMETERS'"), "optimizer,parameters");
  EXPECT_EQ(offload("offload(2)='activations' offload(1)='optimizer'"), "optimizer,activations");
}

TEST(Deck, PlacesOfKeys) {
  const Deck deck = parse_deck("a.in", "&run\n  steps = 20\n/\n&batch micro_batch_size=2 /", {});
  EXPECT_EQ(deck.origin("run", "steps").where, "a.in:2:3");
  EXPECT_EQ(deck.origin("batch", "micro_batch_size").where, "a.in:4:8");
  EXPECT_EQ(deck.where({"run.seed", "run.steps"}), "a.in:2:3");
  EXPECT_EQ(deck.where({"run.seed"}), "a.in");
}

TEST(Preset, KeysBesideItOverrideIt) {
  for (const char* text :
       {"&model preset='gpt2-355m' num_layers=3 /", "&model num_layers=3, preset='GPT2-355M' /"}) {
    const Deck deck = parse_deck("a.in", text, {});
    EXPECT_EQ(deck.config.model.num_layers, 3);
    EXPECT_EQ(deck.config.model.hidden_size, 1024);
    EXPECT_EQ(deck.config.model.vocab_multiple, 128);
    EXPECT_EQ(deck.origin("model", "hidden_size").kind, Origin::Kind::preset);
    EXPECT_EQ(deck.origin("model", "num_layers").kind, Origin::Kind::deck);
  }
}

// A preset of the command line follows the deck as other overrides do, and replaces its preset.
TEST(Preset, OfTheCommandLineOverridesTheDeck) {
  const Deck deck = parse_deck("a.in", "&model preset='gpt2-124m' num_layers=3 dropout=0.1 /",
                               {"model.hidden_size=512", "model.preset=mpt-7b"});
  EXPECT_EQ(deck.config.model.preset, "mpt-7b");
  EXPECT_EQ(deck.config.model.num_layers, 32);
  EXPECT_EQ(deck.config.model.vocab_multiple, 1);
  EXPECT_EQ(deck.config.model.hidden_size, 512);
  EXPECT_EQ(deck.config.model.dropout, 0.1);
}

// By closed forms of their own (formulas as published, V padded):
//   gpt, mpt  V h + s h + l (12 h^2 + 13 h) + 2 h
//   bert      (V + s + 2) h + l (12 h^2 + 13 h) + 2 h, then the transform of the masked tokens
//             h^2 + 3 h + V, the pooler h^2 + h and the two classes 2 h + 2
//   llama     2 V h + l (2 h^2 + 2 h h_kv + 3 h f + 2 h) + h
int64_t closed_form(const ModelConfig& m) {
  const int64_t h = m.hidden_size, l = m.num_layers, f = m.ffn_hidden_size;
  const int64_t vocab = round_up(m.vocab_size, m.vocab_multiple);
  if (m.family == ModelFamily::bert)
    return (vocab + m.seq_length + 2) * h + l * (12 * h * h + 13 * h) + 2 * h +
           (h * h + 3 * h + vocab) + (h * h + h) + (2 * h + 2);
  if (m.family != ModelFamily::llama)
    return vocab * h + m.seq_length * h + l * (12 * h * h + 13 * h) + 2 * h;
  const int64_t groups = m.num_kv_heads != 0 ? m.num_kv_heads : m.num_attention_heads;
  const int64_t h_kv = h / m.num_attention_heads * groups;
  return 2 * vocab * h + l * (2 * h * h + 2 * h * h_kv + 3 * h * f + 2 * h) + h;
}

// Published counts: MPT's NumParams column (llm-foundry), Llama's released weights; those of GPT-2
// with 50257 padded to 50304.
TEST(Preset, ParameterCounts) {
  const std::vector<std::pair<std::string, int64_t>> counts = {
      {"bert-175b", 174664734594}, {"bert-345m", 336297858},   {"gpt-1.3b", 1315819520},
      {"gpt-13b", 12853626880},    {"gpt-175b", 174615846912}, {"gpt-1t", 1008038758400},
      {"gpt-2.5b", 2522320896},    {"gpt-30b", 29974755328},   {"gpt-345m", 354871296},
      {"gpt-350m", 355919872},     {"gpt-5.8b", 5796111360},   {"gpt-530b", 529600819200},
      {"gpt2-124m", 124475904},    {"gpt2-1558m", 1557686400}, {"gpt2-355m", 354871296},
      {"gpt2-774m", 774090240},    {"llama-13b", 13015864320}, {"llama-70b", 68976648192},
      {"llama-7b", 6738415616},    {"llama-8b", 8030261248},   {"mpt-125m", 125311488},
      {"mpt-13b", 12853954560},    {"mpt-1b", 1315950592},     {"mpt-30b", 29975214080},
      {"mpt-350m", 355985408},     {"mpt-3b", 2651837440},     {"mpt-70b", 64862437376},
      {"mpt-760m", 760470528},     {"mpt-7b", 6658859008},
  };
  ASSERT_EQ(embedded_presets().size(), counts.size());
  for (size_t n = 0; n < counts.size(); ++n) {
    EXPECT_EQ(embedded_presets()[n].name, counts[n].first);
    const Deck deck = parse_deck("a.in", "&model preset='" + counts[n].first + "' /", {});
    EXPECT_EQ(closed_form(deck.config.model), counts[n].second) << counts[n].first;
    EXPECT_NO_THROW(validate(deck)) << counts[n].first;
  }
}

// So that no key of another preset shines through, each sets all that gives a model its shape.
TEST(Preset, SetsTheWholeShape) {
  for (const Preset& preset : embedded_presets()) {
    const Deck deck = parse_deck(preset.name, preset.text, {});
    for (const char* key :
         {"family", "num_layers", "hidden_size", "num_attention_heads", "num_kv_heads",
          "ffn_hidden_size", "seq_length", "vocab_size", "vocab_multiple", "position_embedding",
          "rotary_theta", "no_bias", "layernorm_epsilon"}) {
      EXPECT_EQ(deck.origin("model", key).kind, Origin::Kind::deck) << preset.name << " " << key;
    }
  }
}

TEST(Echo, IsADeckWithTheSameConfig) {
  const uint64_t seed = test_seed() + 3;
  std::cout << "seed " << seed << "\n";
  Dice dice(seed);
  for (int n = 0; n < 300; ++n) {
    const std::string text = random_deck(dice);
    const Deck deck = parse_deck("a.in", text, {});
    const std::string shown = echo(deck);
    const Deck again = parse_deck("echo", shown, {});
    expect_same_config(again.config, deck.config, text + "\necho:\n" + shown);
    if (HasFailure()) return;
  }
}

TEST(Echo, OfOverridesAndPresets) {
  const Deck deck = parse_deck("a.in", "&model preset='gpt2-124m' num_layers=2 /",
                               {"run.steps=5", "data.path=/" + std::string(300, '\'') + "\u00e9"});
  const std::string shown = echo(deck);
  expect_same_config(parse_deck("echo", shown, {}).config, deck.config, shown);
  std::istringstream lines(shown);
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(line.size(), 80u) << line;
  const auto shows = [&](const std::string& part) {
    EXPECT_NE(shown.find(part), std::string::npos) << part << " in\n" << shown;
  };
  shows("  steps = 5" + std::string(51, ' ') + "! command line\n");
  shows("  num_layers = 2\n");
  shows("  hidden_size = 768" + std::string(43, ' ') + "! preset\n");
  shows("  warmup_steps = 2" + std::string(44, ' ') + "! default\n");
}

// A line that is too long is broken at column 80 inside of a string, and numbers behind a comma.
TEST(Echo, LongLines) {
  const std::string end(30, 'y');
  const std::string shown =
      echo(parse_deck("a.in", "&run name='" + std::string(70, 'x') + end + "' /", {}));
  EXPECT_NE(shown.find("\n  name = '" + std::string(70, 'x') + "\n" + end + "'\n"),
            std::string::npos)
      << shown;
}

// What the report of a run begins with: neither defaults nor what a preset says.
TEST(Echo, OfTheKeysThatWereSet) {
  const Deck deck = parse_deck("a.in", "&model preset='gpt2-124m' num_layers=2 /",
                               {"run.steps=5", "output.directory=o"});
  EXPECT_EQ(keys_that_were_set(deck, 3),
            "  &run          steps=5\n"
            "  &model        preset='gpt2-124m', num_layers=2\n"
            "  &output       directory='o'\n");
}

// Where there is no room for all: first without the keys that say what holds anyway, then without
// the last ones.
TEST(Echo, OfTheKeysThatWereSetInFewLines) {
  const Deck deck =
      parse_deck("a.in", "&run seed=1 / &model num_layers=2 / &optimizer beta1=0.9 lr=1. /", {});
  EXPECT_EQ(keys_that_were_set(deck, 3),
            "  &run          seed=1\n"
            "  &model        num_layers=2\n"
            "  &optimizer    lr=1.0, beta1=0.9\n");
  const Deck more = parse_deck("a.in", deck.raw_text + " &data short_seq_prob=0.5 /", {});
  EXPECT_EQ(keys_that_were_set(more, 3),
            "  &model        num_layers=2\n"
            "  &optimizer    lr=1.0\n"
            "  and 3 more, which --verbose prints\n");
  // A deck of all keys, as --check prints it, says no more.
  const std::string of_all = keys_that_were_set(parse_deck("a.in", echo(deck), {}), 3);
  EXPECT_EQ(of_all.substr(0, of_all.find("  and ")),
            "  &model        num_layers=2\n"
            "  &optimizer    lr=1.0\n");
}

TEST(Echo, OfTheResolvedDeckResolvesToTheSame) {
  const Deck deck = parse_deck("a.in", "&run name='r' / &batch micro_batch_size=3 /", {});
  const Config resolved = resolve(deck, 4);
  const std::string shown = echo(deck, resolved);
  const Deck again = parse_deck("echo", shown, {});
  expect_same_config(again.config, resolved, shown);
  expect_same_config(resolve(again, 4), resolved, shown);
  EXPECT_NE(shown.find("! resolved"), std::string::npos);
}

TEST(Visitor, SeesEveryKeyOnce) {
  size_t count = 0;
  for_each_key(Config{}, [&](const Key& key, const KeyValue& value) {
    EXPECT_EQ(key_index(key), count++);
    EXPECT_EQ(value, default_value(key));
  });
  EXPECT_EQ(count, key_table().size());
}

}  // namespace
}  // namespace gptbench
