//! What transformers calls the weights of a DeBERTa: the first version, whose projections are one matrix, and the later ones.

use crate::names::{Names, Rule};

/// The parts that all versions have.
macro_rules! names {
    ($($attention:expr),* $(,)?) => {
        Names {
            rules: &[
                Rule::new("embed_tokens.weight", "deberta.embeddings.word_embeddings.weight"),
                Rule::new("embed_types.weight", "deberta.embeddings.token_type_embeddings.weight"),
                Rule::new("embed_positions.weight", "deberta.embeddings.position_embeddings.weight"),
                Rule::new("embed_norm.{}", "deberta.embeddings.LayerNorm.{}"),
                Rule::new("encoder.embed_distances.weight", "deberta.encoder.rel_embeddings.weight"),
                Rule::new("encoder.distance_norm.{}", "deberta.encoder.LayerNorm.{}"),
                Rule::new("encoder.conv.{}", "deberta.encoder.conv.conv.{}"),
                Rule::new("encoder.conv.layer_norm.{}", "deberta.encoder.conv.LayerNorm.{}"),
                $($attention,)*
                Rule::new(
                    "encoder.layers.{}.self_attn.out_proj.{}",
                    "deberta.encoder.layer.{}.attention.output.dense.{}",
                ),
                Rule::new(
                    "encoder.layers.{}.self_attn_layer_norm.{}",
                    "deberta.encoder.layer.{}.attention.output.LayerNorm.{}",
                ),
                Rule::new("encoder.layers.{}.fc1.{}", "deberta.encoder.layer.{}.intermediate.dense.{}"),
                Rule::new("encoder.layers.{}.fc2.{}", "deberta.encoder.layer.{}.output.dense.{}"),
                Rule::new(
                    "encoder.layers.{}.final_layer_norm.{}",
                    "deberta.encoder.layer.{}.output.LayerNorm.{}",
                ),
                Rule::new("pooler.{}", "pooler.dense.{}"),
                Rule::new("masked_lm.dense.{}", "cls.predictions.transform.dense.{}"),
                Rule::new("masked_lm.norm.{}", "cls.predictions.transform.LayerNorm.{}"),
                Rule::new("masked_lm.bias", "cls.predictions.bias"),
                // The head of those whose configuration says `legacy: false`.
                Rule::new("masked_lm.dense.{}", "lm_predictions.lm_head.dense.{}"),
                Rule::new("masked_lm.norm.{}", "lm_predictions.lm_head.LayerNorm.{}"),
                Rule::new("masked_lm.bias", "lm_predictions.lm_head.bias"),
                Rule::new("classifier.{}", "classifier.{}"),
                Rule::new("qa_outputs.{}", "qa_outputs.{}"),
            ],
            prefix: "deberta.",
            old_endings: &[("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")],
            buffers: &["deberta.embeddings.position_ids"],
            heads: &["pooler.", "cls.", "lm_predictions.", "mask_predictions.", "classifier.", "qa_outputs."],
            tied: &[
                ("cls.predictions.decoder.weight", "deberta.embeddings.word_embeddings.weight"),
                ("cls.predictions.decoder.bias", "cls.predictions.bias"),
            ],
        }
    };
}

/// The table of the first version.
pub(super) static FIRST: Names = names![
    Rule::new("encoder.layers.{}.self_attn.in_proj.{}", "deberta.encoder.layer.{}.attention.self.in_proj.{}"),
    Rule::new("encoder.layers.{}.self_attn.q_bias", "deberta.encoder.layer.{}.attention.self.q_bias"),
    Rule::new("encoder.layers.{}.self_attn.v_bias", "deberta.encoder.layer.{}.attention.self.v_bias"),
    Rule::new(
        "encoder.layers.{}.self_attn.pos_key_proj.{}",
        "deberta.encoder.layer.{}.attention.self.pos_proj.{}"
    ),
    Rule::new(
        "encoder.layers.{}.self_attn.pos_query_proj.{}",
        "deberta.encoder.layer.{}.attention.self.pos_q_proj.{}",
    ),
];

/// The table of the later versions.
pub(super) static LATER: Names = names![
    Rule::new(
        "encoder.layers.{}.self_attn.q_proj.{}",
        "deberta.encoder.layer.{}.attention.self.query_proj.{}"
    ),
    Rule::new("encoder.layers.{}.self_attn.k_proj.{}", "deberta.encoder.layer.{}.attention.self.key_proj.{}"),
    Rule::new(
        "encoder.layers.{}.self_attn.v_proj.{}",
        "deberta.encoder.layer.{}.attention.self.value_proj.{}"
    ),
    Rule::new(
        "encoder.layers.{}.self_attn.pos_key_proj.{}",
        "deberta.encoder.layer.{}.attention.self.pos_key_proj.{}",
    ),
    Rule::new(
        "encoder.layers.{}.self_attn.pos_query_proj.{}",
        "deberta.encoder.layer.{}.attention.self.pos_query_proj.{}",
    ),
];
