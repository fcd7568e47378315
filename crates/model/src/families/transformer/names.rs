//! What Marian calls the weights, which is what we call them, too. Which tables are one follows from the configuration.

use super::TransformerConfig;
use crate::names::{Names, Rule};

/// Marian adds this to the logits; on padding it keeps the token from ever being produced.
pub(super) const LOGITS_BIAS: &str = "final_logits_bias";
pub(super) const SHARED: &str = "model.shared.weight";
pub(super) const SOURCE: &str = "model.encoder.embed_tokens.weight";
pub(super) const TARGET: &str = "model.decoder.embed_tokens.weight";
pub(super) const OUTPUT: &str = "lm_head.weight";
/// Sinusoids, which some files have although they follow from their size.
pub(super) const POSITIONS: [&str; 2] =
    ["model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"];

/// The same name on both sides.
const fn same(name: &'static str) -> Rule {
    Rule::new(name, name)
}

/// The table of a model of which all tables of tokens are apart and all positions are computed.
const APART: Names = Names {
    rules: &[
        same(SHARED),
        same(OUTPUT),
        same(LOGITS_BIAS),
        same("model.{}.embed_tokens.weight"),
        same("model.shared.dense.{}"),
        same("model.{}.embed_tokens.dense.{}"),
        same("model.head.{}.{}"),
        same("lm_head.dense.{}"),
        same("model.{}.embed_positions.weight"),
        same("model.{}.layernorm_embedding.{}"),
        same("model.{}.layer_norm.{}"),
        same("model.{}.layers.{}.{}.{}"),
        same("model.{}.layers.{}.{}.{}.{}"),
    ],
    prefix: "",
    old_endings: &[],
    buffers: &POSITIONS,
    heads: &["classification_head.", "qa_outputs."],
    tied: &[],
};

static TABLES: [Names; 4] = [
    APART,
    Names { tied: &[(OUTPUT, TARGET)], ..APART },
    Names { tied: &[(SOURCE, SHARED), (TARGET, SHARED)], ..APART },
    Names { tied: &[(SOURCE, SHARED), (TARGET, SHARED), (OUTPUT, SHARED)], ..APART },
];

/// The table of a model.
pub(super) fn names(config: &TransformerConfig) -> &'static Names {
    &TABLES[2 * usize::from(config.shared_embeddings) + usize::from(config.tied_output)]
}
