//! What transformers calls the weights of a GPT-Neo.

use crate::names::{Names, Rule};

/// The table: our names, and those of a model with a head.
pub(in crate::families) static NAMES: Names = Names {
    rules: &[
        Rule::new("embed_tokens.weight", "transformer.wte.weight"),
        Rule::new("embed_positions.weight", "transformer.wpe.weight"),
        Rule::new("decoder.layers.{}.self_attn_layer_norm.{}", "transformer.h.{}.ln_1.{}"),
        Rule::new("decoder.layers.{}.self_attn.q_proj.{}", "transformer.h.{}.attn.attention.q_proj.{}"),
        Rule::new("decoder.layers.{}.self_attn.k_proj.{}", "transformer.h.{}.attn.attention.k_proj.{}"),
        Rule::new("decoder.layers.{}.self_attn.v_proj.{}", "transformer.h.{}.attn.attention.v_proj.{}"),
        Rule::new("decoder.layers.{}.self_attn.out_proj.{}", "transformer.h.{}.attn.attention.out_proj.{}"),
        Rule::new("decoder.layers.{}.final_layer_norm.{}", "transformer.h.{}.ln_2.{}"),
        Rule::new("decoder.layers.{}.fc1.{}", "transformer.h.{}.mlp.c_fc.{}"),
        Rule::new("decoder.layers.{}.fc2.{}", "transformer.h.{}.mlp.c_proj.{}"),
        Rule::new("decoder.layer_norm.{}", "transformer.ln_f.{}"),
        Rule::new("lm_head.{}", "lm_head.{}"),
    ],
    prefix: "transformer.",
    old_endings: &[],
    // The mask of each layer, and what older versions wrote in the place of masked scores.
    buffers: &["transformer.h.{}.attn.attention.bias", "transformer.h.{}.attn.attention.masked_bias"],
    heads: &["score.", "classifier.", "qa_outputs."],
    tied: &[("lm_head.weight", "transformer.wte.weight")],
};
