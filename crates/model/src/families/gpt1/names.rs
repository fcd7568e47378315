//! What transformers calls the weights of a GPT-1. Its dense layers are `Conv1D`, which stores `[in, out]`.

use crate::names::{Names, Rule};

/// The table: our names, and those of a model with a head.
pub(in crate::families) static NAMES: Names = Names {
    rules: &[
        Rule::new("embed_tokens.weight", "transformer.tokens_embed.weight"),
        Rule::new("embed_positions.weight", "transformer.positions_embed.weight"),
        Rule::new("decoder.layers.{}.self_attn.q_proj.{}", "transformer.h.{}.attn.c_attn.{}")
            .transposed()
            .part(0, 3),
        Rule::new("decoder.layers.{}.self_attn.k_proj.{}", "transformer.h.{}.attn.c_attn.{}")
            .transposed()
            .part(1, 3),
        Rule::new("decoder.layers.{}.self_attn.v_proj.{}", "transformer.h.{}.attn.c_attn.{}")
            .transposed()
            .part(2, 3),
        Rule::new("decoder.layers.{}.self_attn.out_proj.{}", "transformer.h.{}.attn.c_proj.{}").transposed(),
        Rule::new("decoder.layers.{}.self_attn_layer_norm.{}", "transformer.h.{}.ln_1.{}"),
        Rule::new("decoder.layers.{}.fc1.{}", "transformer.h.{}.mlp.c_fc.{}").transposed(),
        Rule::new("decoder.layers.{}.fc2.{}", "transformer.h.{}.mlp.c_proj.{}").transposed(),
        Rule::new("decoder.layers.{}.final_layer_norm.{}", "transformer.h.{}.ln_2.{}"),
    ],
    prefix: "transformer.",
    old_endings: &[],
    buffers: &["transformer.h.{}.attn.bias", "transformer.position_ids"],
    heads: &["score.", "multiple_choice_head."],
    tied: &[("lm_head.weight", "transformer.tokens_embed.weight")],
};
