//! What transformers calls the weights of a GPT-2. Its dense layers are `Conv1D`, which stores `[in, out]`.

use crate::names::{Names, Rule};

/// The table: our names, and those of a model with a head.
pub(super) static NAMES: Names = Names {
    rules: &[
        Rule::new("embed_tokens.weight", "transformer.wte.weight"),
        Rule::new("embed_positions.weight", "transformer.wpe.weight"),
        Rule::new("decoder.layers.{}.self_attn_layer_norm.{}", "transformer.h.{}.ln_1.{}"),
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
        Rule::new("decoder.layers.{}.final_layer_norm.{}", "transformer.h.{}.ln_2.{}"),
        Rule::new("decoder.layers.{}.fc1.{}", "transformer.h.{}.mlp.c_fc.{}").transposed(),
        Rule::new("decoder.layers.{}.fc2.{}", "transformer.h.{}.mlp.c_proj.{}").transposed(),
        Rule::new("decoder.layer_norm.{}", "transformer.ln_f.{}"),
    ],
    prefix: "transformer.",
    old_endings: &[],
    // The causal mask, and what older versions wrote in the place of masked scores.
    buffers: &["transformer.h.{}.attn.bias", "transformer.h.{}.attn.masked_bias"],
    heads: &["score.", "classifier.", "multiple_choice_head."],
    tied: &[("lm_head.weight", "transformer.wte.weight")],
};
