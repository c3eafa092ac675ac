// What decks can ask for and the engine does not have yet: lift a limit by taking its row away.
#include "deck/validate.h"

namespace gptbench {

const std::vector<UnbuiltFeature>& unbuilt_features() {
  static const std::vector<UnbuiltFeature> features = {};
  return features;
}

void check_features(const Deck& deck) {
  for (const UnbuiltFeature& feature : unbuilt_features()) {
    if (feature.is_asked(deck.config)) {
      deck.fail(feature.keys, "not built yet: " + feature.what + "; " + feature.advice);
    }
  }
}

}  // namespace gptbench
