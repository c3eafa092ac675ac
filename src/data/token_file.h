// Tokens kept in a file as one array of little-endian integers, and the formats that hold one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/data_file.h"
#include "data/token_source.h"

namespace gptbench {

enum class TokenType { u8, i8, i16, u16, i32, u32, i64 };
int64_t bytes_of(TokenType type);

// Where the tokens lie: `count` integers of `type` from byte `offset` of `file`.
struct TokenArray {
  DataFile file;
  std::string kind;  // for the report: "text file", "GPT-2 token file", ...
  TokenType type = TokenType::u8;
  int64_t offset = 0;
  int64_t count = 0;
};

// Any file; a token is a byte.
TokenArray open_text(const std::string& path);

// Token files as llm.c and others write them: 256 int32 (magic, version, number of tokens, zeros),
// then the tokens. Magic 20240520, version 1: uint16; magic 20240801, version 7 (or 1): uint32.
TokenArray open_tokens(const std::string& path);

// Indexed dataset of Megatron-LM, PATH.bin and PATH.idx; `path` with either suffix or none. The
// documents follow one another in PATH.bin and are read as one stream, boundaries included as they
// were tokenized. PATH.idx: "MMIDIDX\0\0", uint64 version 1, uint8 type code, uint64 number of
// sequences S, uint64 number of document boundaries D, int32 lengths[S], int64 byte offsets[S],
// int64 boundaries[D], and for multimodal datasets int8 modes[S]. Lengths, byte offsets and
// boundaries are checked against PATH.bin; by IndexCheck::ends the last length and offset alone.
TokenArray open_megatron(const std::string& path, IndexCheck check = IndexCheck::whole);

// The sequences of the files, at least one, in order, and from the beginning again. Sequence s of a
// file of `count` tokens, s < n = (count - 1) / T, is its positions s T .. s T + T: neighbouring
// sequences share one token, none spans two files, and what is left behind the last one of a file
// is never read. The last `held_out` sequences of all are those from held_out_begin on. Ids are
// checked as they are read. Throws Error(Exit::io) where a file holds less than one sequence, or
// all of them together none but held-out ones.
std::unique_ptr<TokenSource> make_file_source(std::vector<TokenArray> arrays, int64_t T,
                                              int64_t vocab_size, int64_t held_out);

// Sequences of T positions that a file holds.
inline int64_t sequences_in(const TokenArray& array, int64_t T) {
  return array.count > 0 ? (array.count - 1) / T : 0;
}

}  // namespace gptbench
