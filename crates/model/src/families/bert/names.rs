//! What transformers calls the weights of a BERT.

use crate::names::{Names, Rule};

/// The table: our names, and those of a model with a head.
pub(super) static NAMES: Names = Names {
    rules: &[
        Rule::new("embed_tokens.weight", "bert.embeddings.word_embeddings.weight"),
        Rule::new("embed_types.weight", "bert.embeddings.token_type_embeddings.weight"),
        Rule::new("embed_positions.weight", "bert.embeddings.position_embeddings.weight"),
        Rule::new("embed_norm.{}", "bert.embeddings.LayerNorm.{}"),
        Rule::new("encoder.layers.{}.self_attn.q_proj.{}", "bert.encoder.layer.{}.attention.self.query.{}"),
        Rule::new("encoder.layers.{}.self_attn.k_proj.{}", "bert.encoder.layer.{}.attention.self.key.{}"),
        Rule::new("encoder.layers.{}.self_attn.v_proj.{}", "bert.encoder.layer.{}.attention.self.value.{}"),
        Rule::new(
            "encoder.layers.{}.self_attn.out_proj.{}",
            "bert.encoder.layer.{}.attention.output.dense.{}",
        ),
        Rule::new(
            "encoder.layers.{}.self_attn_layer_norm.{}",
            "bert.encoder.layer.{}.attention.output.LayerNorm.{}",
        ),
        Rule::new("encoder.layers.{}.fc1.{}", "bert.encoder.layer.{}.intermediate.dense.{}"),
        Rule::new("encoder.layers.{}.fc2.{}", "bert.encoder.layer.{}.output.dense.{}"),
        Rule::new("encoder.layers.{}.final_layer_norm.{}", "bert.encoder.layer.{}.output.LayerNorm.{}"),
        Rule::new("pooler.{}", "bert.pooler.dense.{}"),
        Rule::new("masked_lm.dense.{}", "cls.predictions.transform.dense.{}"),
        Rule::new("masked_lm.norm.{}", "cls.predictions.transform.LayerNorm.{}"),
        Rule::new("masked_lm.bias", "cls.predictions.bias"),
        Rule::new("classifier.{}", "classifier.{}"),
        Rule::new("qa_outputs.{}", "qa_outputs.{}"),
    ],
    prefix: "bert.",
    old_endings: &[("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")],
    buffers: &["bert.embeddings.position_ids", "bert.embeddings.token_type_ids"],
    heads: &["bert.pooler.", "cls.", "classifier.", "qa_outputs."],
    tied: &[
        ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
        ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    ],
};
