#include "engine/batch_reader.h"

#include <algorithm>

#include "base/error.h"
#include "plan/lengths.h"

namespace gptbench {

BatchReader::BatchReader(const Plan& plan, const TokenSource& source)
    : plan_(plan), source_(source), sequence_(static_cast<size_t>(plan.shape.T + 1)) {
  const size_t rows = static_cast<size_t>(plan.micro_batches.rows);
  const size_t sequences = rows / static_cast<size_t>(plan.T_local());
  micro_batch_.inputs.resize(rows);
  micro_batch_.targets.resize(rows);
  if (plan.shape.family.head == HeadKind::masked) {
    pairs_ = std::make_unique<SentencePairs>(source, static_cast<uint64_t>(plan.config.run.seed),
                                             plan.shape.T, plan.shape.V_valid,
                                             plan.config.data.short_seq_prob);
    micro_batch_.types.resize(rows);
    micro_batch_.labels.resize(sequences);
  }
  if (plan.buffer_index.lengths >= 0) micro_batch_.lengths.resize(sequences);
}

void BatchReader::begin_batch(int64_t first) {
  if (first == first_) return;  // a replayed step's batch has begun ahead of it
  first_ = first;
  num_targets_ = targets_of_batch(plan_, first);
}

void BatchReader::read(SequenceRange sequences, const Positions& held) {
  const int64_t T = plan_.T_local();
  const int64_t split = std::min(held.split, T);
  for (int64_t b = 0; b < sequences.count; ++b) {
    const auto hold = [&](const int32_t* sequence, std::vector<int32_t>& rows) {
      int32_t* const to = rows.data() + b * T;
      std::copy_n(sequence + held.begin[0], split, to);
      std::copy_n(sequence + held.begin[1], T - split, to + split);
    };
    const int64_t sequence = first_ + sequences.first + b;
    if (pairs_ == nullptr) {
      const int32_t* const tokens = read_sequence(sequence);
      hold(tokens, micro_batch_.inputs);
      hold(tokens + 1, micro_batch_.targets);
      continue;
    }
    const SentencePair& pair = pairs_->read(sequence);
    hold(pair.inputs.data(), micro_batch_.inputs);
    hold(pair.targets.data(), micro_batch_.targets);
    hold(pair.types.data(), micro_batch_.types);
    micro_batch_.labels[static_cast<size_t>(b)] = pair.label;
  }
}

void BatchReader::read_lengths(SequenceRange sequences) {
  for (int64_t b = 0; b < sequences.count; ++b)
    micro_batch_.lengths[static_cast<size_t>(b)] =
        static_cast<int32_t>(length_of_sequence(plan_.config, first_ + sequences.first + b));
}

const int32_t* BatchReader::read_sequence(int64_t sequence) {
  const int64_t ahead = sequence - ahead_sequences_.first;
  if (ahead >= 0 && ahead < ahead_sequences_.count)
    return ahead_.data() + ahead * static_cast<int64_t>(sequence_.size());
  source_.read(sequence, sequence_.data());
  return sequence_.data();
}

void BatchReader::draw_ahead(int64_t step) {
  const SequenceRange mine =
      sequences_of(plan_.config.batch.global_batch_size, plan_.grid.data, plan_.at.data);
  ahead_sequences_ = {sequences_before(step) + mine.first, 0};
  // Stages between the first and the last read nothing.
  const bool reads = plan_.chunks.front().has_embedding || plan_.chunks.back().has_head;
  if (!reads || pairs_ != nullptr) return;  // or not token by token
  ahead_.resize(static_cast<size_t>(mine.count) * sequence_.size());
  try {
    for (int64_t& drawn = ahead_sequences_.count; drawn < mine.count; ++drawn)
      source_.read(ahead_sequences_.first + drawn,
                   ahead_.data() + drawn * static_cast<int64_t>(sequence_.size()));
  } catch (const Error&) {  // noted where the step asks for it
  }
}

}  // namespace gptbench
