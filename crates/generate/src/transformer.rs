//! The original Transformer as a [`Seq2Seq`].

use crate::attention::{AttentionKind, AttentionMatrix, Look};
use crate::error::Error;
use crate::seq2seq::{Row, Seq2Seq, Spec};
use attentive_model::Sequences;
use attentive_model::families::transformer::{Batch, Transformer};
use attentive_model::layers::{Branch, BranchCache};
use attentive_tensor::{Backend, Best, Tape, Tensor};
use std::fmt;
use std::sync::Arc;

/// A [`Transformer`] in the middle of decoding: its weights, as they are at each step, and what it remembers.
pub struct TransformerSteps {
    model: Transformer,
    backend: Arc<dyn Backend>,
    cache: BranchCache,
    /// Of the last step, and the same for the host once somebody asked for it.
    logits: Option<Tensor>,
    rows: Vec<f32>,
}

impl TransformerSteps {
    /// A model with nothing to remember yet. The weights are shared with `model`.
    pub fn new(backend: &Arc<dyn Backend>, model: &Transformer) -> TransformerSteps {
        TransformerSteps {
            model: model.clone(),
            backend: Arc::clone(backend),
            cache: BranchCache::default(),
            logits: None,
            rows: Vec::new(),
        }
    }
}

impl Seq2Seq for TransformerSteps {
    fn spec(&self) -> Spec {
        let config = self.model.config();
        Spec {
            source_vocabulary: config.vocab_size,
            vocabulary: config.target_vocabulary(),
            start: config.start as u32,
            eos: config.eos as u32,
            never: config.pad.map(|pad| pad as u32),
            max_source: config.max_positions,
            // The start token has the first position, the last token that is written none.
            max_target: config.max_positions,
            decoder_layers: config.decoder_layers,
        }
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
        let branches: Vec<Branch> =
            rows.iter().map(|row| Branch { slot: row.slot, parent: row.parent }).collect();
        let tokens: Vec<i32> = rows.iter().map(|row| row.token as i32).collect();
        let (tape, ids) = (Tape::inference(&self.backend), self.backend.upload_i32(&tokens));
        let hidden = self.model.step_branches(&tape, &ids, &branches, &mut self.cache);
        self.logits = Some(self.model.logits(&tape, &hidden).value().clone());
    }

    fn best(&mut self, count: usize) -> Vec<Best> {
        let Some(logits) = &self.logits else { return Vec::new() };
        let (mut best, log_sums) = self.backend.top(logits, self.model.config().pad, count);
        for (best, log_sum) in best.chunks_exact_mut(count).zip(log_sums) {
            best.iter_mut().for_each(|best| best.score -= log_sum);
        }
        best
    }

    fn logits(&mut self) -> &mut [f32] {
        self.rows = self.logits.as_ref().map_or(Vec::new(), |logits| self.backend.download_f32(logits));
        if let Some(pad) = self.model.config().pad {
            for row in self.rows.chunks_exact_mut(self.model.config().target_vocabulary()) {
                row[pad] = f32::NEG_INFINITY;
            }
        }
        &mut self.rows
    }

    fn release(&mut self, slot: usize) {
        self.cache.release(slot);
    }

    fn attention(&self, pairs: &[(&[u32], &[u32])], look: Look) -> Result<Vec<AttentionMatrix>, Error> {
        let (config, backend) = (self.model.config(), &self.backend);
        look.check([config.encoder_layers, config.decoder_layers], config.h)?;
        let tape = Tape::inference(backend).watching();
        let signed = |tokens: &[u32]| tokens.iter().map(|&token| token as i32).collect::<Vec<i32>>();
        let pairs: Vec<_> = pairs.iter().map(|(source, target)| (signed(source), signed(target))).collect();
        let batch = Batch::new(&**backend, &pairs, config.start as i32);
        let memory = self.model.encode(&tape, &batch.source, &batch.source_sequences);
        if look.kind != AttentionKind::Encoder {
            let (sources, targets) = (&batch.source_sequences, &batch.target_sequences);
            self.model.decode(&tape, &batch.input, targets, &memory, sources);
        }
        // The encoder has one attention in each layer, the decoder two.
        let place = match look.kind {
            AttentionKind::Encoder => look.layer,
            AttentionKind::Decoder => config.encoder_layers + 2 * look.layer,
            AttentionKind::Cross => config.encoder_layers + 2 * look.layer + 1,
        };
        Ok(AttentionMatrix::of(&**backend, &tape.watched()[place], look.head))
    }
}

impl fmt::Debug for TransformerSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransformerSteps").field("config", self.model.config()).finish_non_exhaustive()
    }
}
