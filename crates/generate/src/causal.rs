//! A model that continues its source as a [`Seq2Seq`]: the source is a prompt, and what is written follows it.
//!
//! When a prompt is admitted, all of its tokens but the last are read at once into the cache. The last one takes the place of the
//! start token in the first step. So search sees no difference.

use crate::attention::{AttentionKind, AttentionMatrix, Look};
use crate::error::Error;
use crate::inspection::Inspection;
use crate::seq2seq::{Row, Seq2Seq, Sizes, Spec};
use attentive_model::Sequences;
use attentive_model::families::gpt2::{Gpt2, Gpt2Config};
use attentive_model::layers::{Branch, Cache};
use attentive_tensor::{AttentionWeights, Backend, Best, Found, Tape, Tensor, TokenLists, Var};
use std::fmt;
use std::sync::Arc;

/// How many tokens of prompts are read together, if a single prompt has no more: activations take memory.
const TOGETHER: usize = 1024;

/// The slot of a prompt that was given up before its first step.
const RELEASED: usize = usize::MAX;

/// A [`Gpt2`] in the middle of decoding: its weights, as they are at each step, and what it remembers.
pub struct CausalSteps {
    model: Gpt2,
    backend: Arc<dyn Backend>,
    cache: Cache,
    /// How many rows the last step had. They are the first branches of the cache.
    rows: usize,
    /// Prompts that were read and have no row yet, in the order of their branches in the cache.
    waiting: Vec<Prompt>,
    /// Of the last step.
    hidden: Option<Tensor>,
    /// Its logits, once search asked for them.
    logits: Vec<f32>,
}

/// A prompt that was read but for its last token.
struct Prompt {
    slot: usize,
    last: u32,
}

impl CausalSteps {
    /// A model with nothing to remember yet. The weights are shared with `model`.
    pub fn new(backend: &Arc<dyn Backend>, model: &Gpt2) -> CausalSteps {
        CausalSteps {
            model: model.clone(),
            backend: Arc::clone(backend),
            cache: Cache::default(),
            rows: 0,
            waiting: Vec::new(),
            hidden: None,
            logits: Vec::new(),
        }
    }

    /// Reads prompts but for their last tokens. All that the cache holds stays.
    fn read(&mut self, prompts: &[(usize, &[u32])]) {
        let kept = self.rows + self.waiting.len();
        let keep = |branch| Branch { slot: 0, parent: Some(branch), tokens: 0 };
        let begin =
            |(slot, prompt): &(usize, &[u32])| Branch { slot: *slot, parent: None, tokens: prompt.len() - 1 };
        let branches: Vec<Branch> = (0..kept).map(keep).chain(prompts.iter().map(begin)).collect();
        let beginnings = prompts.iter().flat_map(|(_, prompt)| &prompt[..prompt.len() - 1]);
        let ids = signed(beginnings);
        let tape = Tape::inference(&self.backend);
        self.model.step(&tape, &self.backend.upload_i32(&ids), &branches, &mut self.cache);
        let waiting =
            |(slot, prompt): &(usize, &[u32])| Prompt { slot: *slot, last: prompt[prompt.len() - 1] };
        self.waiting.extend(prompts.iter().map(waiting));
    }

    /// The hidden states before each token of all targets, from one pass over sources and targets.
    fn decode(&self, tape: &Tape, pairs: &[(&[u32], &[u32])]) -> Var {
        let whole = |(source, target): &(&[u32], &[u32])| {
            let tokens = signed(source.iter().chain(*target));
            tokens[..tokens.len().saturating_sub(1)].to_vec()
        };
        let texts: Vec<Vec<i32>> = pairs.iter().map(whole).collect();
        let sequences = Sequences::new(texts.iter().map(Vec::len));
        let hidden = self.model.decode(tape, &self.backend.upload_i32(&texts.concat()), &sequences);
        let ends = sequences.ranges().zip(pairs);
        let rows = ends.flat_map(|(range, (_, target))| range.end.saturating_sub(target.len())..range.end);
        let rows: Vec<i32> = rows.map(|row| row as i32).collect();
        tape.embedding(&hidden, &self.backend.upload_i32(&rows), 1.0, None)
    }

    fn watch(&self, pairs: &[(&[u32], &[u32])]) -> Vec<AttentionWeights> {
        let tape = Tape::inference(&self.backend).watching();
        self.decode(&tape, pairs);
        tape.watched()
    }
}

fn signed<'a>(tokens: impl IntoIterator<Item = &'a u32>) -> Vec<i32> {
    tokens.into_iter().map(|&token| token as i32).collect()
}

impl From<&Gpt2Config> for Spec {
    fn from(config: &Gpt2Config) -> Spec {
        // A token beyond the vocabulary is never written.
        let never = config.vocab_size;
        Spec {
            source_vocabulary: config.vocab_size,
            vocabulary: config.vocab_size,
            start: config.bos.unwrap_or(never) as u32,
            eos: config.eos.unwrap_or(never) as u32,
            never: None,
            max_source: config.max_positions,
            max_target: config.max_positions,
            decoder_layers: config.layers,
            continues: true,
        }
    }
}

impl Seq2Seq for CausalSteps {
    fn spec(&self) -> Spec {
        self.model.config().into()
    }

    fn admit(&mut self, sources: &[(usize, &[u32])]) {
        let mut rest = sources;
        while !rest.is_empty() {
            let mut tokens = 0;
            let fits = |(_, prompt): &&(usize, &[u32])| {
                tokens += prompt.len();
                tokens <= TOGETHER
            };
            let (now, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            self.read(now);
            rest = later;
        }
    }

    fn step(&mut self, rows: &[Row]) {
        let (mut branches, mut tokens) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        let mut is_begun = vec![false; self.waiting.len()];
        for row in rows {
            // Without a parent it is the first of its prompt, whose last token it reads.
            let place = || self.waiting.iter().position(|prompt| prompt.slot == row.slot);
            let (parent, token) = match row.parent {
                Some(parent) => (parent, row.token),
                None => {
                    let place = place().expect("the prompt was admitted");
                    is_begun[place] = true;
                    (self.rows + place, self.waiting[place].last)
                }
            };
            branches.push(Branch::token(row.slot, Some(parent)));
            tokens.push(token as i32);
        }
        let before = std::mem::take(&mut self.waiting);
        for (place, prompt) in before.into_iter().enumerate() {
            if !is_begun[place] && prompt.slot != RELEASED {
                branches.push(Branch { slot: 0, parent: Some(self.rows + place), tokens: 0 });
                self.waiting.push(prompt);
            }
        }
        self.rows = rows.len();
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
        self.logits = self.backend.download_f32(logits.value());
        &mut self.logits
    }

    fn release(&mut self, slot: usize) {
        // Rows that no row follows are forgotten by themselves, and so is a prompt at the next step.
        for prompt in self.waiting.iter_mut().filter(|prompt| prompt.slot == slot) {
            prompt.slot = RELEASED;
        }
    }

    fn attention(&self, pairs: &[(&[u32], &[u32])], look: Look) -> Result<Vec<AttentionMatrix>, Error> {
        let config = self.model.config();
        if look.kind != AttentionKind::Decoder {
            return Err(Error::option("kind", "the model has a decoder alone, without a source to look at"));
        }
        look.check([0, config.layers], config.h)?;
        Ok(AttentionMatrix::of(&*self.backend, &self.watch(pairs)[look.layer], look.head))
    }

    fn top(&self, pairs: &[(&[u32], &[u32])], count: usize) -> Vec<Vec<Vec<Best>>> {
        let tape = Tape::inference(&self.backend);
        let hidden = self.decode(&tape, pairs);
        let Found { best, log_sums, .. } = self.model.find(&tape, &hidden, count, true, TokenLists::NONE);
        let row = |(row, log_sum): (&[Best], f32)| {
            let found = row.iter().filter(|best| **best != Best::NONE);
            found.map(|best| Best { score: best.score - log_sum, ..*best }).collect()
        };
        let mut rows = best.chunks_exact(count).zip(log_sums).map(row);
        pairs.iter().map(|(_, target)| rows.by_ref().take(target.len()).collect()).collect()
    }

    /// The attentions of the layers stand where those of an encoder would: there is one in each.
    fn inspect(&self, source: &[u32], target: &[u32]) -> Inspection {
        Inspection::new(&self.backend, self.watch(&[(source, target)]), self.model.config().layers)
    }

    fn sizes(&self) -> Sizes {
        let config = self.model.config();
        Sizes {
            d_model: config.d_model,
            h: config.h,
            decoder_h: config.h,
            d_ff: config.d_ff,
            encoder_layers: 0,
            decoder_layers: config.layers,
            parameters: self.model.parameter_count(),
        }
    }
}

impl fmt::Debug for CausalSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CausalSteps").field("config", self.model.config()).finish_non_exhaustive()
    }
}
