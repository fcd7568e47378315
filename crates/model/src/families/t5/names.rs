//! What transformers calls the weights of a T5.

use super::T5Config;
use crate::layers::FeedForwardKind;
use crate::names::{Names, Rule};

/// The output of a model that does not share the table of its embeddings.
pub(super) const OUTPUT: &str = "lm_head.weight";

/// Our names and theirs. The last product of the feed-forward network, `wo` for them, has two names here: that of the paper's
/// network and that of the gated one.
const fn rules(last_of_encoder: &'static str, last_of_decoder: &'static str) -> [Rule; 30] {
    [
        Rule::new("shared.weight", "shared.weight"),
        Rule::new(
            "encoder.positions.weight",
            "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        ),
        Rule::new("encoder.layers.{}.self_attn_layer_norm.{}", "encoder.block.{}.layer.0.layer_norm.{}"),
        Rule::new("encoder.layers.{}.self_attn.q_proj.{}", "encoder.block.{}.layer.0.SelfAttention.q.{}"),
        Rule::new("encoder.layers.{}.self_attn.k_proj.{}", "encoder.block.{}.layer.0.SelfAttention.k.{}"),
        Rule::new("encoder.layers.{}.self_attn.v_proj.{}", "encoder.block.{}.layer.0.SelfAttention.v.{}"),
        Rule::new("encoder.layers.{}.self_attn.out_proj.{}", "encoder.block.{}.layer.0.SelfAttention.o.{}"),
        Rule::new("encoder.layers.{}.final_layer_norm.{}", "encoder.block.{}.layer.1.layer_norm.{}"),
        Rule::new("encoder.layers.{}.fc1.{}", "encoder.block.{}.layer.1.DenseReluDense.wi.{}"),
        Rule::new("encoder.layers.{}.wi_0.{}", "encoder.block.{}.layer.1.DenseReluDense.wi_0.{}"),
        Rule::new("encoder.layers.{}.wi_1.{}", "encoder.block.{}.layer.1.DenseReluDense.wi_1.{}"),
        Rule::new(last_of_encoder, "encoder.block.{}.layer.1.DenseReluDense.wo.{}"),
        Rule::new("encoder.layer_norm.{}", "encoder.final_layer_norm.{}"),
        Rule::new(
            "decoder.positions.weight",
            "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        ),
        Rule::new("decoder.layers.{}.self_attn_layer_norm.{}", "decoder.block.{}.layer.0.layer_norm.{}"),
        Rule::new("decoder.layers.{}.self_attn.q_proj.{}", "decoder.block.{}.layer.0.SelfAttention.q.{}"),
        Rule::new("decoder.layers.{}.self_attn.k_proj.{}", "decoder.block.{}.layer.0.SelfAttention.k.{}"),
        Rule::new("decoder.layers.{}.self_attn.v_proj.{}", "decoder.block.{}.layer.0.SelfAttention.v.{}"),
        Rule::new("decoder.layers.{}.self_attn.out_proj.{}", "decoder.block.{}.layer.0.SelfAttention.o.{}"),
        Rule::new("decoder.layers.{}.encoder_attn_layer_norm.{}", "decoder.block.{}.layer.1.layer_norm.{}"),
        Rule::new(
            "decoder.layers.{}.encoder_attn.q_proj.{}",
            "decoder.block.{}.layer.1.EncDecAttention.q.{}",
        ),
        Rule::new(
            "decoder.layers.{}.encoder_attn.k_proj.{}",
            "decoder.block.{}.layer.1.EncDecAttention.k.{}",
        ),
        Rule::new(
            "decoder.layers.{}.encoder_attn.v_proj.{}",
            "decoder.block.{}.layer.1.EncDecAttention.v.{}",
        ),
        Rule::new(
            "decoder.layers.{}.encoder_attn.out_proj.{}",
            "decoder.block.{}.layer.1.EncDecAttention.o.{}",
        ),
        Rule::new("decoder.layers.{}.final_layer_norm.{}", "decoder.block.{}.layer.2.layer_norm.{}"),
        Rule::new("decoder.layers.{}.fc1.{}", "decoder.block.{}.layer.2.DenseReluDense.wi.{}"),
        Rule::new("decoder.layers.{}.wi_0.{}", "decoder.block.{}.layer.2.DenseReluDense.wi_0.{}"),
        Rule::new("decoder.layers.{}.wi_1.{}", "decoder.block.{}.layer.2.DenseReluDense.wi_1.{}"),
        Rule::new(last_of_decoder, "decoder.block.{}.layer.2.DenseReluDense.wo.{}"),
        Rule::new("decoder.layer_norm.{}", "decoder.final_layer_norm.{}"),
    ]
}

static PLAIN: [Rule; 30] = rules("encoder.layers.{}.fc2.{}", "decoder.layers.{}.fc2.{}");
static GATED: [Rule; 30] = rules("encoder.layers.{}.wo.{}", "decoder.layers.{}.wo.{}");

const fn table(rules: &'static [Rule]) -> Names {
    Names {
        rules,
        prefix: "",
        old_endings: &[],
        // A table that the first models had, and that their code never read.
        buffers: &["decoder.block.{}.layer.1.EncDecAttention.relative_attention_bias.weight"],
        heads: &["classification_head.", "classifier.", "qa_outputs."],
        tied: &[
            ("encoder.embed_tokens.weight", "shared.weight"),
            ("decoder.embed_tokens.weight", "shared.weight"),
            (OUTPUT, "shared.weight"),
        ],
    }
}

static TABLES: [Names; 2] = [table(&PLAIN), table(&GATED)];

/// The table of a model.
pub(super) fn names(config: &T5Config) -> &'static Names {
    match config.feed_forward {
        FeedForwardKind::Plain => &TABLES[0],
        FeedForwardKind::Gated => &TABLES[1],
    }
}
