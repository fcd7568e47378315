//! The sizes of a Transformer, in the paper's letters.

use crate::builder::Builder;
use crate::error::Error;
use crate::families::encoder_decoder::Outline;
use crate::layers::{
    EPSILON, EmbeddingConfig, LayerNorm, MultiHeadConfig, NormPlacement, PositionKind, Positions, StackConfig,
};
use crate::limits::{self, MOST_LAYERS, MOST_TOKENS, WIDEST};
use attentive_tensor::Activation;

/// Everything that table 3 of the paper varies, and a little more.
#[derive(Debug, Clone, PartialEq)]
pub struct TransformerConfig {
    /// The number of tokens, padding included; where the target has a vocabulary of its own, those of the source.
    pub vocab_size: usize,
    /// The number of target tokens where it is not [`TransformerConfig::vocab_size`], which a shared table does not allow.
    pub target_vocab_size: Option<usize>,
    /// Whether source and target share one table of embeddings.
    pub shared_embeddings: bool,
    /// Whether the output has the table of the target's embeddings.
    pub tied_output: bool,
    /// Whether embedded tokens are multiplied by the root of their width.
    pub scaled_embeddings: bool,
    /// The width of the model.
    pub d_model: usize,
    /// The width of the embedding table; `d_model` if none is given.
    pub d_emb: Option<usize>,
    /// The number of heads.
    pub h: usize,
    /// The number of heads of the decoder where it is not [`TransformerConfig::h`].
    pub decoder_h: Option<usize>,
    /// The width of queries and keys in each head; `d_model / h` if none is given.
    pub d_k: Option<usize>,
    /// The width of values in each head; `d_model / h` if none is given.
    pub d_v: Option<usize>,
    /// The width between the two products of the feed-forward network.
    pub d_ff: usize,
    /// That of the decoder where it is not [`TransformerConfig::d_ff`].
    pub decoder_d_ff: Option<usize>,
    /// N of the encoder.
    pub encoder_layers: usize,
    /// N of the decoder.
    pub decoder_layers: usize,
    /// Dropout of the embedded input and of each sublayer's output.
    pub dropout: f32,
    /// Dropout of attention weights.
    pub attention_dropout: f32,
    /// The function in the feed-forward network.
    pub activation: Activation,
    /// Where norms stand.
    pub norm: NormPlacement,
    /// The kind of positions.
    pub positions: PositionKind,
    /// The longest sequence there are positions for.
    pub max_positions: usize,
    /// How many rows of the table of positions stand before that of the first one.
    pub position_offset: usize,
    /// Whether embedded tokens with their positions are normed before the first layer.
    pub embedding_norm: bool,
    /// The token of padding, if there is one; where it is the last of the vocabulary, it is no class either.
    pub pad: Option<usize>,
    /// Whether padding is a token that can be written like others.
    pub writes_padding: bool,
    /// The token that ends a sequence.
    pub eos: usize,
    /// The token that the decoder is shown first.
    pub start: usize,
}

/// `(name, d_model, h, d_ff, N, dropout)`
const PRESETS: [(&str, usize, usize, usize, usize, f32); 4] = [
    ("tiny", 128, 4, 512, 2, 0.1),
    ("small", 256, 8, 1024, 3, 0.1),
    ("base", 512, 8, 2048, 6, 0.1),
    ("big", 1024, 16, 4096, 6, 0.3),
];

/// Sinusoids take memory only as far as they are used.
const MOST_POSITIONS: usize = 1 << 30;

impl TransformerConfig {
    /// The sizes called `tiny`, `small`, `base` (the paper's) or `big` (the paper's), with a vocabulary laid out as
    /// Marian does it: the end token first, padding last, and decoding starts from padding.
    pub fn preset(name: &str, vocab_size: usize) -> Result<TransformerConfig, Error> {
        let names = || PRESETS.map(|preset| preset.0).join(", ");
        let preset = PRESETS.iter().find(|preset| preset.0 == name);
        let &(_, d_model, h, d_ff, n, dropout) = preset.ok_or_else(|| {
            Error::config("preset", format!("there is no preset `{name}`; the presets are {}", names()))
        })?;
        let pad = vocab_size.saturating_sub(1);
        Ok(TransformerConfig {
            vocab_size,
            target_vocab_size: None,
            shared_embeddings: true,
            tied_output: true,
            scaled_embeddings: true,
            d_model,
            d_emb: None,
            h,
            decoder_h: None,
            d_k: None,
            d_v: None,
            d_ff,
            decoder_d_ff: None,
            encoder_layers: n,
            decoder_layers: n,
            dropout,
            attention_dropout: 0.0,
            activation: Activation::Relu,
            norm: NormPlacement::Post,
            // The paper interleaves. Halves are the same model with its width in another order, and what Marian reads.
            positions: PositionKind::Halves,
            max_positions: 512,
            position_offset: 0,
            embedding_norm: false,
            pad: Some(pad),
            writes_padding: false,
            eos: 0,
            start: pad,
        })
    }

    /// BART's sizes: `base`, and `big`, which is BART large; `tiny` and `small` are ours. Tokens are laid out as fairseq does it: the
    /// start token, padding, the end token.
    pub fn bart(name: &str, vocab_size: usize) -> Result<TransformerConfig, Error> {
        let (d_model, layers) = match name {
            "tiny" => (128, 2),
            "small" => (512, 4),
            "base" => (768, 6),
            "big" => (1024, 12),
            _ => return Err(Error::config("preset", format!("no `{name}`: use tiny, small, base or big"))),
        };
        Ok(TransformerConfig {
            d_model,
            h: d_model / 64,
            d_ff: 4 * d_model,
            encoder_layers: layers,
            decoder_layers: layers,
            scaled_embeddings: false,
            activation: Activation::Gelu,
            positions: PositionKind::Learned,
            max_positions: 1024,
            position_offset: 2,
            embedding_norm: true,
            pad: Some(1),
            writes_padding: true,
            eos: 2,
            start: 2,
            dropout: 0.1,
            ..TransformerConfig::preset("base", vocab_size)?
        })
    }

    /// Whether such a model can be.
    pub fn check(&self) -> Result<(), Error> {
        let sizes = [
            ("vocab_size", self.vocab_size, MOST_TOKENS),
            ("target_vocab_size", self.target_vocab_size.unwrap_or(1), MOST_TOKENS),
            ("d_model", self.d_model, WIDEST),
            ("d_emb", self.d_emb.unwrap_or(1), WIDEST),
            ("h", self.h, WIDEST),
            ("decoder_h", self.decoder_heads(), WIDEST),
            ("d_k", self.d_k.unwrap_or(1), WIDEST),
            ("d_v", self.d_v.unwrap_or(1), WIDEST),
            ("d_ff", self.d_ff, WIDEST),
            ("decoder_d_ff", self.decoder_d_ff.unwrap_or(1), WIDEST),
            ("encoder_layers", self.encoder_layers, MOST_LAYERS),
            ("decoder_layers", self.decoder_layers, MOST_LAYERS),
            ("max_positions", self.max_positions, MOST_POSITIONS),
            ("position_offset", self.position_offset + 1, MOST_TOKENS),
        ];
        sizes.into_iter().try_for_each(|(field, size, most)| limits::check_size(field, size, most))?;
        limits::check_dropout("dropout", self.dropout)?;
        limits::check_dropout("attention_dropout", self.attention_dropout)?;
        let (source, target) = (self.vocab_size, self.target_vocabulary());
        if self.shared_embeddings && source != target {
            let problem =
                format!("{target} target tokens cannot share the embeddings of {source} source tokens");
            return Err(Error::config("target_vocab_size", problem));
        }
        let tokens = [
            ("pad", self.pad, source.min(target)),
            ("eos", Some(self.eos), target),
            ("start", Some(self.start), target),
        ];
        for (field, token, size) in tokens {
            if let Some(token) = token.filter(|&token| token >= size) {
                let problem = format!("token {token} must be below vocab_size {size}");
                return Err(Error::config(field, problem));
            }
        }
        self.attention(self.h)?;
        self.attention(self.decoder_heads()).map_err(|error| error.in_words(&[("h", "decoder_h")]))?;
        limits::check_parameters(self.parameters_of_matrices())
    }

    /// How many parameters there are at least: those of embeddings, projections and feed-forward networks.
    fn parameters_of_matrices(&self) -> u64 {
        let wide = |size: usize| size as u64;
        let product = |factors: &[u64]| factors.iter().fold(1, |a: u64, &b| a.saturating_mul(b));
        let d = wide(self.d_model);
        let attention = |h: usize| {
            let head = |size: Option<usize>| size.map_or(d / wide(h), wide);
            product(&[2, d, wide(h), head(self.d_k).saturating_add(head(self.d_v))])
        };
        let feed_forward = |d_ff: usize| product(&[2, d, wide(d_ff)]);
        let encoder = attention(self.h).saturating_add(feed_forward(self.d_ff));
        let decoder = attention(self.decoder_heads())
            .saturating_mul(2)
            .saturating_add(feed_forward(self.decoder_d_ff.unwrap_or(self.d_ff)));
        let layers = [(self.encoder_layers, encoder), (self.decoder_layers, decoder)];
        let tables = if self.shared_embeddings { 1 } else { 2 };
        let table = product(&[tables, wide(self.vocab_size), self.d_emb.map_or(d, wide)]);
        layers
            .into_iter()
            .fold(table, |sum, (layers, layer)| sum.saturating_add(layer.saturating_mul(wide(layers))))
    }

    /// What there is to know of it without knowing the family.
    pub fn outline(&self) -> Outline {
        Outline {
            source_vocabulary: self.vocab_size,
            target_vocabulary: self.target_vocabulary(),
            start: self.start,
            eos: self.eos,
            never: self.pad.filter(|_| !self.writes_padding),
            // The start token has the first position, the last token that is written none.
            max_positions: self.max_positions,
            d_model: self.d_model,
            h: self.h,
            decoder_h: self.decoder_heads(),
            d_ff: self.d_ff,
            encoder_layers: self.encoder_layers,
            decoder_layers: self.decoder_layers,
        }
    }

    /// How many tokens the target can have: the width of the logits.
    pub fn target_vocabulary(&self) -> usize {
        self.target_vocab_size.unwrap_or(self.vocab_size)
    }

    /// How many heads the decoder has.
    pub fn decoder_heads(&self) -> usize {
        self.decoder_h.unwrap_or(self.h)
    }

    fn attention(&self, h: usize) -> Result<MultiHeadConfig, Error> {
        let d_model = self.d_model;
        let config = match (self.d_k, self.d_v) {
            (Some(d_k), Some(d_v)) => MultiHeadConfig::with_widths(d_model, h, d_k, d_v),
            (d_k, d_v) => {
                let shared = MultiHeadConfig::new(d_model, h)?;
                MultiHeadConfig { d_k: d_k.unwrap_or(shared.d_k), d_v: d_v.unwrap_or(shared.d_v), ..shared }
            }
        };
        Ok(MultiHeadConfig { dropout: self.attention_dropout, ..config })
    }

    pub(super) fn source_embedding(&self) -> EmbeddingConfig {
        EmbeddingConfig {
            vocab_size: self.vocab_size,
            d_emb: self.d_emb.unwrap_or(self.d_model),
            d_model: self.d_model,
            padding: self.pad,
            scaled: self.scaled_embeddings,
        }
    }

    pub(super) fn target_embedding(&self) -> EmbeddingConfig {
        EmbeddingConfig { vocab_size: self.target_vocabulary(), ..self.source_embedding() }
    }

    pub(super) fn encoder_stack(&self) -> Result<StackConfig, Error> {
        Ok(StackConfig {
            activation: self.activation,
            norm: self.norm,
            dropout: self.dropout,
            ..StackConfig::new(self.encoder_layers, self.attention(self.h)?, self.d_ff)
        })
    }

    pub(super) fn decoder_stack(&self) -> Result<StackConfig, Error> {
        Ok(StackConfig {
            layers: self.decoder_layers,
            attention: self.attention(self.decoder_heads())?,
            d_ff: self.decoder_d_ff.unwrap_or(self.d_ff),
            ..self.encoder_stack()?
        })
    }

    /// The positions of the encoder or the decoder that `builder` is inside of.
    pub(super) fn positions(&self, builder: &Builder) -> Result<Positions, Error> {
        let &TransformerConfig { positions, max_positions, position_offset, d_model, .. } = self;
        let builder = builder.at("embed_positions");
        Positions::with_offset(&builder, positions, max_positions, position_offset, d_model)
    }

    /// The norm of the embedded tokens of the encoder or the decoder that `builder` is inside of, if they have one.
    pub(super) fn embedding_norm(&self, builder: &Builder) -> Result<Option<LayerNorm>, Error> {
        let norm = || LayerNorm::new(&builder.at("layernorm_embedding"), self.d_model, EPSILON);
        self.embedding_norm.then(norm).transpose()
    }
}
