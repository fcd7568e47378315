//! A model with an encoder and a decoder as a [`Seq2Seq`].

use crate::attention::{AttentionKind, AttentionMatrix, AttentionSelector};
use crate::error::Error;
use crate::inspection::Inspection;
use crate::seq2seq::{Row, Seq2Seq, Sizes, Spec};
use attentive_model::Sequences;
use attentive_model::families::encoder_decoder::{Batch, EncoderDecoder, Outline};
use attentive_model::layers::{Branch, Cache};
use attentive_tensor::{AttentionWeights, Backend, Best, Found, Tape, Tensor, TokenLists, Var};
use std::fmt;
use std::sync::Arc;

/// An [`EncoderDecoder`] in the middle of decoding: its weights, as they are at each step, and what it remembers.
pub struct EncoderDecoderSteps<M> {
    model: M,
    backend: Arc<dyn Backend>,
    cache: Cache,
    /// Of the last step.
    hidden: Option<Tensor>,
    /// Its logits, after search has asked for them.
    rows: Vec<f32>,
}

impl<M: EncoderDecoder> EncoderDecoderSteps<M> {
    /// A model with nothing to remember yet. The weights are shared with `model`.
    pub fn new(backend: &Arc<dyn Backend>, model: &M) -> EncoderDecoderSteps<M> {
        EncoderDecoderSteps {
            model: model.clone(),
            backend: Arc::clone(backend),
            cache: Cache::default(),
            hidden: None,
            rows: Vec::new(),
        }
    }
}

impl From<Outline> for Spec {
    fn from(outline: Outline) -> Spec {
        Spec {
            source_vocabulary: outline.source_vocabulary,
            vocabulary: outline.target_vocabulary,
            start: outline.start as u32,
            eos: outline.eos as u32,
            never: outline.never.map(|token| token as u32),
            max_source: outline.max_positions,
            max_target: outline.max_positions,
            decoder_layers: outline.decoder_layers,
            continues: false,
        }
    }
}

impl<M: EncoderDecoder> EncoderDecoderSteps<M> {
    /// Pairs of a source and a target, for a pass over all of their tokens at once.
    fn batch(&self, pairs: &[(&[u32], &[u32])]) -> Batch {
        let signed = |tokens: &[u32]| tokens.iter().map(|&token| token as i32).collect::<Vec<i32>>();
        let pairs: Vec<_> = pairs.iter().map(|(source, target)| (signed(source), signed(target))).collect();
        Batch::new(&*self.backend, &pairs, self.model.outline().start as i32)
    }

    /// The hidden states before each token of all targets.
    fn decode(&self, tape: &Tape, batch: &Batch) -> Var {
        let memory = self.model.encode(tape, &batch.source, &batch.source_sequences);
        self.model.decode(tape, &batch.input, &batch.target_sequences, &memory, &batch.source_sequences)
    }

    /// All attentions of a pass over pairs, the decoder's only if they are wanted.
    fn watch(&self, pairs: &[(&[u32], &[u32])], decoder: bool) -> Vec<AttentionWeights> {
        let (tape, batch) = (Tape::inference(&self.backend).watching(), self.batch(pairs));
        if decoder {
            self.decode(&tape, &batch);
        } else {
            self.model.encode(&tape, &batch.source, &batch.source_sequences);
        }
        tape.watched()
    }
}

impl<M: EncoderDecoder> Seq2Seq for EncoderDecoderSteps<M> {
    fn spec(&self) -> Spec {
        self.model.outline().into()
    }

    fn admit(&mut self, sources: &[(usize, &[u32])]) {
        let slots: Vec<usize> = sources.iter().map(|(slot, _)| *slot).collect();
        let tokens: Vec<i32> =
            sources.iter().flat_map(|(_, tokens)| tokens.iter().map(|&token| token as i32)).collect();
        let sequences = Sequences::new(sources.iter().map(|(_, tokens)| tokens.len()));
        let tape = Tape::inference(&self.backend);
        let ids = self.backend.upload_i32(&tokens);
        self.model.admit(&tape, &ids, &sequences, &slots, &mut self.cache);
    }

    fn step(&mut self, rows: &[Row]) {
        let branches: Vec<Branch> = rows.iter().map(|row| Branch::token(row.slot, row.parent)).collect();
        let tokens: Vec<i32> = rows.iter().map(|row| row.token as i32).collect();
        let (tape, ids) = (Tape::inference(&self.backend), self.backend.upload_i32(&tokens));
        let hidden = self.model.step(&tape, &ids, &branches, &mut self.cache);
        self.hidden = Some(hidden.value().clone());
    }

    fn best(&mut self, count: usize, sums: bool, apart: TokenLists) -> Found {
        let hidden = self.hidden.clone().expect("a step was made");
        let tape = Tape::inference(&self.backend);
        self.model.find(&tape, &tape.constant(hidden), count, sums, apart)
    }

    fn logits(&mut self) -> &mut [f32] {
        let Some(hidden) = &self.hidden else { return &mut [] };
        let tape = Tape::inference(&self.backend);
        let logits = self.model.logits(&tape, &tape.constant(hidden.clone()));
        self.rows = self.backend.download_f32(logits.value());
        let Outline { never, target_vocabulary, .. } = self.model.outline();
        if let Some(never) = never {
            for row in self.rows.chunks_exact_mut(target_vocabulary) {
                row[never] = f32::NEG_INFINITY;
            }
        }
        &mut self.rows
    }

    fn release(&mut self, slot: usize) {
        self.cache.release(slot);
    }

    fn attention(
        &self,
        pairs: &[(&[u32], &[u32])],
        selector: AttentionSelector,
    ) -> Result<Vec<AttentionMatrix>, Error> {
        let (sizes, Outline { encoder_layers, .. }) = (self.sizes(), self.model.outline());
        selector.check(sizes.layers(selector.kind), sizes.heads(selector.kind))?;
        let watched = self.watch(pairs, selector.kind != AttentionKind::Encoder);
        let attention = &watched[selector.index(encoder_layers)];
        Ok(AttentionMatrix::of(&*self.backend, attention, selector.head))
    }

    fn top(&self, pairs: &[(&[u32], &[u32])], count: usize) -> Vec<Vec<Vec<Best>>> {
        let tape = Tape::inference(&self.backend);
        let hidden = self.decode(&tape, &self.batch(pairs));
        let best = self.model.best(&tape, &hidden, count, true);
        let row = |row: &[Best]| row.iter().copied().filter(|best| *best != Best::NONE).collect();
        let mut rows = best.chunks_exact(count).map(row);
        pairs.iter().map(|(_, target)| rows.by_ref().take(target.len()).collect()).collect()
    }

    fn inspect(&self, source: &[u32], target: &[u32]) -> Inspection {
        let tape = Inspection::tape(&self.backend);
        self.decode(&tape, &self.batch(&[(source, target)]));
        Inspection::new(&self.backend, &tape, self.model.outline().encoder_layers)
    }

    fn sizes(&self) -> Sizes {
        let outline = self.model.outline();
        Sizes {
            d_model: outline.d_model,
            h: outline.h,
            decoder_h: outline.decoder_h,
            d_ff: outline.d_ff,
            encoder_layers: outline.encoder_layers,
            decoder_layers: outline.decoder_layers,
            parameters: self.model.parameter_count(),
        }
    }
}

impl<M: EncoderDecoder> fmt::Debug for EncoderDecoderSteps<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncoderDecoderSteps").field("model", &self.model.outline()).finish_non_exhaustive()
    }
}
