//! What transformers calls the weights of a ViT and of its relatives.
//!
//! Of two names for one tensor the first is what all folders have, the second what transformers calls it in memory today, and may
//! write.

use crate::names::{Names, Rule};

/// Rules that ViT and DeiT share.
macro_rules! of_vit {
    ($prefix:literal, $($own:expr),*) => {
        &[
            Rule::new("cls_token", concat!($prefix, "embeddings.cls_token")),
            Rule::new("embed_positions.weight", concat!($prefix, "embeddings.position_embeddings")),
            Rule::new("embed_patches.{}", concat!($prefix, "embeddings.patch_embeddings.projection.{}")),
            Rule::new(Q, concat!($prefix, "encoder.layer.{}.attention.attention.query.{}")),
            Rule::new(Q, concat!($prefix, "layers.{}.attention.q_proj.{}")),
            Rule::new(K, concat!($prefix, "encoder.layer.{}.attention.attention.key.{}")),
            Rule::new(K, concat!($prefix, "layers.{}.attention.k_proj.{}")),
            Rule::new(V, concat!($prefix, "encoder.layer.{}.attention.attention.value.{}")),
            Rule::new(V, concat!($prefix, "layers.{}.attention.v_proj.{}")),
            Rule::new(OUT, concat!($prefix, "encoder.layer.{}.attention.output.dense.{}")),
            Rule::new(OUT, concat!($prefix, "layers.{}.attention.o_proj.{}")),
            Rule::new(NORM_1, concat!($prefix, "encoder.layer.{}.layernorm_before.{}")),
            Rule::new(NORM_1, concat!($prefix, "layers.{}.layernorm_before.{}")),
            Rule::new(FC_1, concat!($prefix, "encoder.layer.{}.intermediate.dense.{}")),
            Rule::new(FC_1, concat!($prefix, "layers.{}.mlp.fc1.{}")),
            Rule::new(FC_2, concat!($prefix, "encoder.layer.{}.output.dense.{}")),
            Rule::new(FC_2, concat!($prefix, "layers.{}.mlp.fc2.{}")),
            Rule::new(NORM_2, concat!($prefix, "encoder.layer.{}.layernorm_after.{}")),
            Rule::new(NORM_2, concat!($prefix, "layers.{}.layernorm_after.{}")),
            Rule::new("layer_norm.{}", concat!($prefix, "layernorm.{}")),
            Rule::new("pooler.{}", concat!($prefix, "pooler.dense.{}")),
            $($own),*
        ]
    };
}

/// Rules that both kinds of DINOv2 share.
macro_rules! of_dinov2 {
    ($prefix:literal, $($own:expr),*) => {
        &[
            Rule::new("cls_token", concat!($prefix, "embeddings.cls_token")),
            Rule::new("mask_token", concat!($prefix, "embeddings.mask_token")),
            Rule::new("embed_positions.weight", concat!($prefix, "embeddings.position_embeddings")),
            Rule::new("embed_patches.{}", concat!($prefix, "embeddings.patch_embeddings.projection.{}")),
            Rule::new(Q, concat!($prefix, "encoder.layer.{}.attention.attention.query.{}")),
            Rule::new(Q, concat!($prefix, "encoder.layer.{}.attention.q_proj.{}")),
            Rule::new(K, concat!($prefix, "encoder.layer.{}.attention.attention.key.{}")),
            Rule::new(K, concat!($prefix, "encoder.layer.{}.attention.k_proj.{}")),
            Rule::new(V, concat!($prefix, "encoder.layer.{}.attention.attention.value.{}")),
            Rule::new(V, concat!($prefix, "encoder.layer.{}.attention.v_proj.{}")),
            Rule::new(OUT, concat!($prefix, "encoder.layer.{}.attention.output.dense.{}")),
            Rule::new(OUT, concat!($prefix, "encoder.layer.{}.attention.o_proj.{}")),
            Rule::new(NORM_1, concat!($prefix, "encoder.layer.{}.norm1.{}")),
            Rule::new("encoder.layers.{}.self_attn_layer_scale.weight", concat!($prefix, "encoder.layer.{}.layer_scale1.lambda1")),
            Rule::new(FC_1, concat!($prefix, "encoder.layer.{}.mlp.fc1.{}")),
            Rule::new(FC_2, concat!($prefix, "encoder.layer.{}.mlp.fc2.{}")),
            Rule::new(GATE, concat!($prefix, "encoder.layer.{}.mlp.weights_in.{}")).part(0, 2),
            Rule::new(GATE, concat!($prefix, "encoder.layer.{}.mlp.gate_proj.{}")),
            Rule::new(INNER, concat!($prefix, "encoder.layer.{}.mlp.weights_in.{}")).part(1, 2),
            Rule::new(INNER, concat!($prefix, "encoder.layer.{}.mlp.up_proj.{}")),
            Rule::new(OUTER, concat!($prefix, "encoder.layer.{}.mlp.weights_out.{}")),
            Rule::new(OUTER, concat!($prefix, "encoder.layer.{}.mlp.down_proj.{}")),
            Rule::new(NORM_2, concat!($prefix, "encoder.layer.{}.norm2.{}")),
            Rule::new("encoder.layers.{}.final_layer_scale.weight", concat!($prefix, "encoder.layer.{}.layer_scale2.lambda1")),
            Rule::new("layer_norm.{}", concat!($prefix, "layernorm.{}")),
            Rule::new("classifier.{}", "classifier.{}"),
            $($own),*
        ]
    };
}

const Q: &str = "encoder.layers.{}.self_attn.q_proj.{}";
const K: &str = "encoder.layers.{}.self_attn.k_proj.{}";
const V: &str = "encoder.layers.{}.self_attn.v_proj.{}";
const OUT: &str = "encoder.layers.{}.self_attn.out_proj.{}";
const NORM_1: &str = "encoder.layers.{}.self_attn_layer_norm.{}";
const FC_1: &str = "encoder.layers.{}.fc1.{}";
const FC_2: &str = "encoder.layers.{}.fc2.{}";
const GATE: &str = "encoder.layers.{}.wi_0.{}";
const INNER: &str = "encoder.layers.{}.wi_1.{}";
const OUTER: &str = "encoder.layers.{}.wo.{}";
const NORM_2: &str = "encoder.layers.{}.final_layer_norm.{}";

pub(super) static VIT: Names = Names {
    rules: of_vit!("vit.", Rule::new("classifier.{}", "classifier.{}")),
    prefix: "vit.",
    old_endings: &[],
    buffers: &[],
    // The mask and the decoder of a model that learned to fill in patches.
    heads: &["vit.pooler.", "classifier.", "vit.embeddings.mask_token", "decoder."],
    tied: &[],
};

pub(super) static DEIT: Names = Names {
    rules: of_vit!(
        "deit.",
        Rule::new("distillation_token", "deit.embeddings.distillation_token"),
        Rule::new("classifier.{}", "classifier.{}"),
        Rule::new("cls_classifier.{}", "cls_classifier.{}"),
        Rule::new("distillation_classifier.{}", "distillation_classifier.{}")
    ),
    prefix: "deit.",
    old_endings: &[],
    buffers: &[],
    heads: &[
        "deit.pooler.",
        "classifier.",
        "cls_classifier.",
        "distillation_classifier.",
        "deit.embeddings.mask_token",
        "decoder.",
    ],
    tied: &[],
};

pub(super) static DINOV2: Names = Names {
    rules: of_dinov2!("dinov2.",),
    prefix: "dinov2.",
    old_endings: &[],
    buffers: &[],
    heads: &["classifier."],
    tied: &[],
};

pub(super) static DINOV2_WITH_REGISTERS: Names = Names {
    rules: of_dinov2!(
        "dinov2_with_registers.",
        Rule::new("register_tokens", "dinov2_with_registers.embeddings.register_tokens")
    ),
    prefix: "dinov2_with_registers.",
    old_endings: &[],
    buffers: &[],
    heads: &["classifier."],
    tied: &[],
};
