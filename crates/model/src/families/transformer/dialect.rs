//! Whose code computes a model: what Marian, BART, mBART and M2M-100 of transformers leave no choice in.

use super::TransformerConfig;
use super::config_file::not_marian;
use crate::families::{ATTENTIVE, BART, M2M100, MARIAN, MBART};
use crate::layers::{NormPlacement, PositionKind};

/// The classes of transformers that are this model with certain choices, and ours for all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Marian,
    Bart,
    MBart,
    M2M100,
    Attentive,
}

/// The choices of fairseq's models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choices {
    pub norm: NormPlacement,
    pub embedding_norm: bool,
    pub positions: PositionKind,
    pub position_offset: usize,
}

/// Fairseq counts positions from that of padding.
const OFFSET: usize = 2;

impl Dialect {
    const ALL: [Dialect; 5] =
        [Dialect::Marian, Dialect::Bart, Dialect::MBart, Dialect::M2M100, Dialect::Attentive];

    /// That of a `model_type`.
    pub fn named(model_type: &str) -> Dialect {
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == model_type).unwrap_or(Dialect::Marian)
    }

    /// The one in which a model is written.
    pub fn of(config: &TransformerConfig) -> Dialect {
        let &TransformerConfig { norm, embedding_norm, positions, position_offset, .. } = config;
        let own = Some(Choices { norm, embedding_norm, positions, position_offset });
        match Dialect::ALL.into_iter().find(|dialect| dialect.choices() == own) {
            Some(dialect) if has_their_widths(config) => dialect,
            _ if not_marian(config).is_none() && positions == PositionKind::Halves => Dialect::Marian,
            _ => Dialect::Attentive,
        }
    }

    /// What its code does in any case; none where the configuration says it all.
    pub fn choices(self) -> Option<Choices> {
        let (norm, embedding_norm, positions) = match self {
            Dialect::Marian | Dialect::Attentive => return None,
            Dialect::Bart => (NormPlacement::Post, true, PositionKind::Learned),
            Dialect::MBart => (NormPlacement::Pre, true, PositionKind::Learned),
            Dialect::M2M100 => (NormPlacement::Pre, false, PositionKind::Tensor2Tensor),
        };
        Some(Choices { norm, embedding_norm, positions, position_offset: OFFSET })
    }

    /// The `model_type`.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Marian => MARIAN,
            Dialect::Bart => BART,
            Dialect::MBart => MBART,
            Dialect::M2M100 => M2M100,
            Dialect::Attentive => ATTENTIVE,
        }
    }

    /// The class of transformers that generates.
    pub fn architecture(self) -> Option<&'static str> {
        match self {
            Dialect::Marian => Some("MarianMTModel"),
            Dialect::Bart => Some("BartForConditionalGeneration"),
            Dialect::MBart => Some("MBartForConditionalGeneration"),
            Dialect::M2M100 => Some("M2M100ForConditionalGeneration"),
            Dialect::Attentive => None,
        }
    }

    /// Whether its folders have numbers that are added to the logits.
    pub fn has_logits_bias(self) -> bool {
        self != Dialect::M2M100
    }
}

/// Whether the widths of a model are those that fairseq's models can have.
fn has_their_widths(config: &TransformerConfig) -> bool {
    let &TransformerConfig { d_model, d_emb, d_k, d_v, h, target_vocab_size, .. } = config;
    let divided = |d: Option<usize>, h: usize| d.is_none_or(|d| d * h == d_model);
    let heads = [h, config.decoder_heads()];
    let are_divided = heads.iter().all(|&h| d_model.is_multiple_of(h) && divided(d_k, h) && divided(d_v, h));
    are_divided && d_emb.is_none_or(|d| d == d_model) && target_vocab_size.is_none() && config.writes_padding
}
