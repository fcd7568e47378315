//! What transformers calls the weights of a RoBERTa.

use crate::names::{Names, Rule};

/// The table: our names, and those of a model with a head.
pub(super) static NAMES: Names = Names {
    rules: &[
        Rule::new("embed_tokens.weight", "roberta.embeddings.word_embeddings.weight"),
        Rule::new("embed_types.weight", "roberta.embeddings.token_type_embeddings.weight"),
        Rule::new("embed_positions.weight", "roberta.embeddings.position_embeddings.weight"),
        Rule::new("embed_norm.{}", "roberta.embeddings.LayerNorm.{}"),
        Rule::new(
            "encoder.layers.{}.self_attn.q_proj.{}",
            "roberta.encoder.layer.{}.attention.self.query.{}",
        ),
        Rule::new("encoder.layers.{}.self_attn.k_proj.{}", "roberta.encoder.layer.{}.attention.self.key.{}"),
        Rule::new(
            "encoder.layers.{}.self_attn.v_proj.{}",
            "roberta.encoder.layer.{}.attention.self.value.{}",
        ),
        Rule::new(
            "encoder.layers.{}.self_attn.out_proj.{}",
            "roberta.encoder.layer.{}.attention.output.dense.{}",
        ),
        Rule::new(
            "encoder.layers.{}.self_attn_layer_norm.{}",
            "roberta.encoder.layer.{}.attention.output.LayerNorm.{}",
        ),
        Rule::new("encoder.layers.{}.fc1.{}", "roberta.encoder.layer.{}.intermediate.dense.{}"),
        Rule::new("encoder.layers.{}.fc2.{}", "roberta.encoder.layer.{}.output.dense.{}"),
        Rule::new("encoder.layers.{}.final_layer_norm.{}", "roberta.encoder.layer.{}.output.LayerNorm.{}"),
        Rule::new("pooler.{}", "roberta.pooler.dense.{}"),
        Rule::new("masked_lm.dense.{}", "lm_head.dense.{}"),
        Rule::new("masked_lm.norm.{}", "lm_head.layer_norm.{}"),
        Rule::new("masked_lm.bias", "lm_head.bias"),
        Rule::new("classifier.{}", "classifier.{}"),
        Rule::new("classifier.dense.{}", "classifier.dense.{}"),
        Rule::new("classifier.out_proj.{}", "classifier.out_proj.{}"),
        Rule::new("qa_outputs.{}", "qa_outputs.{}"),
    ],
    prefix: "roberta.",
    old_endings: &[("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")],
    buffers: &["roberta.embeddings.position_ids", "roberta.embeddings.token_type_ids"],
    heads: &["roberta.pooler.", "lm_head.", "classifier.", "qa_outputs."],
    tied: &[
        ("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"),
        ("lm_head.decoder.bias", "lm_head.bias"),
    ],
};
