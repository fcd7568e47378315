//! The sizes of the model that settings describe: a preset, and what differs from it.

use super::{Norm, Settings};
use attentive_model::families::bert::BertConfig;
use attentive_model::families::detr::DetrConfig;
use attentive_model::families::gpt2::Gpt2Config;
use attentive_model::families::t5::T5Config;
use attentive_model::families::transformer::TransformerConfig;
use attentive_model::families::vit::VitConfig;
use attentive_model::layers::{NormPlacement, ProjectionSizes};

impl Settings {
    /// The sizes of a BERT with so many tokens.
    pub fn bert(&self, vocab_size: usize) -> Result<BertConfig, attentive_model::Error> {
        let preset = BertConfig::preset(&self.preset, vocab_size)?;
        let d_model = self.d_model.unwrap_or(preset.d_model);
        let config = BertConfig {
            d_model,
            h: self.heads.unwrap_or(if self.d_model.is_some() { (d_model / 64).max(1) } else { preset.h }),
            d_ff: self.d_ff.unwrap_or(4 * d_model),
            layers: self.encoder_layers.unwrap_or(preset.layers),
            dropout: self.dropout.map_or(preset.dropout, |p| p as f32),
            attention_dropout: self.attention_dropout.map_or(preset.attention_dropout, |p| p as f32),
            max_positions: self.longest,
            ..preset
        };
        config.check()?;
        Ok(config)
    }

    /// The sizes of a model with so many tokens.
    pub fn model(&self, vocab_size: usize) -> Result<TransformerConfig, attentive_model::Error> {
        let preset = TransformerConfig::preset(&self.preset, vocab_size)?;
        let config = TransformerConfig {
            d_model: self.d_model.unwrap_or(preset.d_model),
            h: self.heads.unwrap_or(preset.h),
            d_ff: self.d_ff.unwrap_or(preset.d_ff),
            encoder_layers: self.encoder_layers.unwrap_or(preset.encoder_layers),
            decoder_layers: self.decoder_layers.unwrap_or(preset.decoder_layers),
            dropout: self.dropout.map_or(preset.dropout, |dropout| dropout as f32),
            attention_dropout: self.attention_dropout.unwrap_or(0.0) as f32,
            norm: match self.norm {
                Norm::Post => NormPlacement::Post,
                Norm::Pre => NormPlacement::Pre,
            },
            max_positions: preset.max_positions.max(self.longest),
            ..preset
        };
        config.check()?;
        Ok(config)
    }

    /// The sizes of a T5 with so many tokens.
    pub fn t5(&self, vocab_size: usize) -> Result<T5Config, attentive_model::Error> {
        let preset = T5Config::preset(&self.preset, vocab_size)?;
        let d_model = self.d_model.unwrap_or(preset.d_model);
        let by_width = |size: usize| (size * d_model / preset.d_model).max(1);
        let config = T5Config {
            d_model,
            h: self.heads.unwrap_or(by_width(preset.h)),
            d_ff: self.d_ff.unwrap_or(by_width(preset.d_ff)),
            encoder_layers: self.encoder_layers.unwrap_or(preset.encoder_layers),
            decoder_layers: self.decoder_layers.unwrap_or(preset.decoder_layers),
            dropout: self.dropout.map_or(preset.dropout, |dropout| dropout as f32),
            trained_length: self.longest,
            ..preset
        };
        config.check()?;
        Ok(config)
    }

    /// The sizes of a GPT-2 with so many tokens.
    pub fn gpt2(&self, vocab_size: usize) -> Result<Gpt2Config, attentive_model::Error> {
        let preset = Gpt2Config::preset(&self.preset, vocab_size)?;
        let d_model = self.d_model.unwrap_or(preset.d_model);
        // Of layers that see a window in turn, further ones go on so.
        let layers = self.decoder_layers.unwrap_or(preset.layers);
        let local =
            if preset.local.is_empty() { Vec::new() } else { (0..layers).map(|n| n % 2 == 1).collect() };
        let dropout = |said: Option<f64>, own: f32| said.map_or(own, |dropout| dropout as f32);
        let config = Gpt2Config {
            d_model,
            h: self.heads.unwrap_or(if self.d_model.is_some() { (d_model / 64).max(1) } else { preset.h }),
            d_ff: self.d_ff.unwrap_or(4 * d_model),
            layers,
            local,
            dropout: dropout(self.dropout, preset.dropout),
            embedding_dropout: dropout(self.dropout, preset.embedding_dropout),
            attention_dropout: dropout(self.attention_dropout, preset.attention_dropout),
            max_positions: self.longest,
            ..preset
        };
        config.check()?;
        Ok(config)
    }

    /// The sizes of a ViT for pictures of this height and width.
    pub fn vit(&self, size: [usize; 2]) -> Result<VitConfig, attentive_model::Error> {
        let preset = VitConfig::preset(&self.preset)?;
        let d_model = self.d_model.unwrap_or(preset.d_model);
        let patch = self.patch_size.unwrap_or(match size[0].min(size[1]) {
            0..=48 => 4,
            49..=96 => 8,
            _ => 16,
        });
        let config = VitConfig {
            image_size: size,
            patch_size: [patch; 2],
            d_model,
            h: self.heads.unwrap_or(if self.d_model.is_some() { (d_model / 64).max(1) } else { preset.h }),
            d_ff: self.d_ff.unwrap_or(4 * d_model),
            layers: self.encoder_layers.unwrap_or(preset.layers),
            dropout: self.dropout.map_or(preset.dropout, |p| p as f32),
            attention_dropout: self.attention_dropout.map_or(preset.attention_dropout, |p| p as f32),
            pooler: (d_model, preset.pooler.1),
            ..preset
        };
        config.check()?;
        Ok(config)
    }

    /// The sizes of a DETR with these classes.
    pub fn detr(&self, labels: Vec<String>) -> Result<DetrConfig, attentive_model::Error> {
        let preset = DetrConfig::preset(&self.preset, labels)?;
        let config = DetrConfig {
            d_model: self.d_model.unwrap_or(preset.d_model),
            h: self.heads.map_or(preset.h, |h| [h; 2]),
            d_ff: self.d_ff.map_or(preset.d_ff, |d_ff| [d_ff; 2]),
            encoder_layers: self.encoder_layers.unwrap_or(preset.encoder_layers),
            decoder_layers: self.decoder_layers.unwrap_or(preset.decoder_layers),
            dropout: self.dropout.map_or(preset.dropout, |p| p as f32),
            attention_dropout: self.attention_dropout.map_or(preset.attention_dropout, |p| p as f32),
            ..preset
        };
        config.check()?;
        Ok(config)
    }

    /// The sizes of DINO's head behind a model of this width.
    pub fn projection(&self, d_model: usize) -> ProjectionSizes {
        ProjectionSizes {
            d_model,
            hidden: self.hidden_dim,
            bottleneck: self.bottleneck_dim,
            out: self.out_dim,
        }
    }
}
