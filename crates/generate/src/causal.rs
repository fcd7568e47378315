//! A model that continues its source as a [`Seq2Seq`]: the source is a prompt, and what is written follows it.
//!
//! A prompt is read into the cache but for its last token, which takes the place of the start token in its first row. So search
//! sees no difference. A step reads some tokens of prompts beside the rows of texts that are being written: a long prompt takes
//! several steps, and other texts go on meanwhile.
//!
//! A model has so many positions. Where it slides, a text that has filled them all is read again from its later half on, as if it began
//! there, and goes on until the positions are full again.

use crate::attention::{AttentionKind, AttentionMatrix, AttentionSelector};
use crate::error::Error;
use crate::inspection::Inspection;
use crate::seq2seq::{Judged, Row, Seq2Seq, Sizes, Spec};
use attentive_model::Sequences;
use attentive_model::families::gpt2::{Gpt2, Gpt2Config};
use attentive_model::layers::{Branch, Cache};
use attentive_tensor::{AttentionWeights, Backend, Best, Found, Tape, Tensor, TokenLists, Var};
use std::fmt;
use std::sync::Arc;

/// How many tokens of prompts a step reads while no text is written. More would take too much memory for activations.
const PROMPT_TOKENS: usize = 1024;
/// How many it reads beside texts that are written, whose next tokens wait for it.
const PROMPT_TOKENS_BESIDE_TEXTS: usize = 128;

/// The slot of a prompt that was given up before its first row.
const RELEASED: usize = usize::MAX;

/// A [`Gpt2`] in the middle of decoding: its weights, as they are at each step, and what it remembers.
pub struct CausalSteps {
    model: Gpt2,
    backend: Arc<dyn Backend>,
    cache: Cache,
    /// How many rows the last step had. They are the first branches of the cache.
    rows: usize,
    /// What each of them has read since its beginning or since it slid, where texts slide.
    windows: Option<Vec<Vec<u32>>>,
    /// Prompts without a row, in the order in which they came. Those of which something was read have the branches that follow.
    waiting: Vec<Prompt>,
    /// Of the rows of the last step.
    hidden: Option<Tensor>,
    /// Their logits, once search asked for them.
    logits: Vec<f32>,
}

/// A prompt that has no row yet.
struct Prompt {
    slot: usize,
    tokens: Vec<u32>,
    /// How many of the tokens were read.
    read: usize,
}

impl Prompt {
    /// Whether all of it but the last token was read.
    fn is_ready(&self) -> bool {
        self.read + 1 == self.tokens.len()
    }
}

impl CausalSteps {
    /// A model with nothing to remember yet. The weights are shared with `model`.
    pub fn new(backend: &Arc<dyn Backend>, model: &Gpt2) -> CausalSteps {
        CausalSteps {
            model: model.clone(),
            backend: Arc::clone(backend),
            cache: Cache::default(),
            rows: 0,
            windows: None,
            waiting: Vec::new(),
            hidden: None,
            logits: Vec::new(),
        }
    }

    /// How many tokens stay when a text slides.
    fn kept(&self) -> usize {
        self.model.config().max_positions / 2
    }

    /// How many of the last tokens of a text are read: all, or those since it slid.
    fn window(&self, tokens: usize) -> usize {
        let (most, kept) = (self.model.config().max_positions, self.kept());
        if tokens <= most { tokens } else { kept + 1 + (tokens - most - 1) % (most - kept) }
    }

    /// Adds a token to what the row before it has read. Gives all that is to be read again if there is no position for it.
    fn push(&self, windows: &mut Vec<Vec<u32>>, mut window: Vec<u32>, token: u32) -> Option<Vec<u32>> {
        let is_full = window.len() == self.model.config().max_positions;
        if is_full {
            window.drain(..window.len() - self.kept());
        }
        window.push(token);
        windows.push(window);
        windows.last().filter(|_| is_full).cloned()
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
        let spec = Spec::from(self.model.config());
        match self.windows {
            Some(_) => Spec { max_source: usize::MAX, max_target: usize::MAX, ..spec },
            None => spec,
        }
    }

    fn admit(&mut self, sources: &[(usize, &[u32])]) {
        let prompt = |&(slot, tokens): &(usize, &[u32])| {
            let window = tokens.len() - self.window(tokens.len());
            Prompt { slot, tokens: tokens[window..].to_vec(), read: 0 }
        };
        let prompts: Vec<Prompt> = sources.iter().map(prompt).collect();
        self.waiting.extend(prompts);
    }

    fn is_ready(&self, slot: usize) -> bool {
        self.waiting.iter().find(|prompt| prompt.slot == slot).is_none_or(Prompt::is_ready)
    }

    fn step(&mut self, rows: &[Row]) {
        let (mut branches, mut tokens) = (Vec::new(), Vec::new());
        // The branch of each prompt of which something was read; a prompt that was given up is forgotten with it.
        let mut branch = self.rows;
        let mut waiting = Vec::with_capacity(self.waiting.len());
        for prompt in self.waiting.drain(..) {
            let own = (prompt.read > 0).then_some(branch);
            branch += usize::from(own.is_some());
            if prompt.slot != RELEASED {
                waiting.push((prompt, own));
            }
        }
        // The place of the last token of each row.
        let mut ends = Vec::with_capacity(rows.len());
        let (before, mut windows) = (self.windows.take(), Vec::new());
        for row in rows {
            let (parent, token, window) = match row.parent {
                Some(parent) => {
                    (Some(parent), row.token, before.as_ref().map(|windows| windows[parent].clone()))
                }
                // The first row of a prompt reads its last token.
                None => {
                    let place = waiting.iter().position(|(prompt, _)| prompt.slot == row.slot);
                    let (Prompt { mut tokens, .. }, own) =
                        waiting.remove(place.expect("the prompt was admitted"));
                    let last = tokens.pop().expect("a prompt has a token");
                    (own, last, before.is_some().then_some(tokens))
                }
            };
            match window.and_then(|window| self.push(&mut windows, window, token)) {
                Some(window) => {
                    branches.push(Branch { slot: row.slot, parent: None, tokens: window.len() });
                    tokens.extend(signed(&window));
                }
                None => {
                    branches.push(Branch::token(row.slot, parent));
                    tokens.push(token as i32);
                }
            }
            ends.push(tokens.len() as i32 - 1);
        }
        self.windows = before.map(|_| windows);
        let written = tokens.len();
        let mut room = if rows.is_empty() { PROMPT_TOKENS } else { PROMPT_TOKENS_BESIDE_TEXTS };
        for (prompt, own) in &mut waiting {
            let rest = &prompt.tokens[prompt.read..prompt.tokens.len() - 1];
            let now = &rest[..rest.len().min(room)];
            if own.is_some() || !now.is_empty() {
                branches.push(Branch { slot: prompt.slot, parent: *own, tokens: now.len() });
            }
            tokens.extend(now.iter().map(|&token| token as i32));
            room -= now.len();
            prompt.read += now.len();
        }
        self.waiting.extend(waiting.into_iter().map(|(prompt, _)| prompt));
        self.rows = rows.len();
        let (tape, ids) = (Tape::inference(&self.backend), self.backend.upload_i32(&tokens));
        let hidden = self.model.step(&tape, &ids, &branches, &mut self.cache);
        // The rows are followed by tokens of prompts, whose logits are not needed.
        self.hidden = (!rows.is_empty()).then(|| {
            let last = match () {
                () if tokens.len() == rows.len() => hidden,
                () if written == rows.len() => tape.slice_rows(&hidden, 0..rows.len()),
                () => tape.embedding(&hidden, &self.backend.upload_i32(&ends), 1.0, None),
            };
            last.value().clone()
        });
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

    fn attention(
        &self,
        pairs: &[(&[u32], &[u32])],
        selector: AttentionSelector,
    ) -> Result<Vec<AttentionMatrix>, Error> {
        if selector.kind != AttentionKind::Causal {
            return Err(Error::option("kind", "the model has a decoder alone, without a source to look at"));
        }
        let config = self.model.config();
        selector.check(config.layers, config.h)?;
        Ok(AttentionMatrix::of(&*self.backend, &self.watch(pairs)[selector.layer], selector.head))
    }

    fn top(&self, pairs: &[(&[u32], &[u32])], count: usize) -> Vec<Vec<Vec<Best>>> {
        let judged = self.judge(pairs, count).into_iter();
        judged.map(|tokens| tokens.into_iter().map(|token| token.top).collect()).collect()
    }

    fn judge(&self, pairs: &[(&[u32], &[u32])], count: usize) -> Vec<Vec<Judged>> {
        let tape = Tape::inference(&self.backend);
        let hidden = self.decode(&tape, pairs);
        let tokens: Vec<u32> = pairs.iter().flat_map(|(_, target)| target.iter().copied()).collect();
        let (ends, counted): (Vec<u32>, Vec<usize>) = (0..tokens.len()).map(|i| (i as u32 + 1, i)).unzip();
        // The tokens that stand there are told, and count like all others.
        let told = TokenLists { tokens: &tokens, ends: &ends, counted: &counted };
        let width = count.max(1);
        let Found { best, log_sums, apart } = self.model.find(&tape, &hidden, width, true, told);
        let judge = |((row, log_sum), logit): ((&[Best], f32), f32)| {
            let found = row.iter().take(count).filter(|best| **best != Best::NONE);
            let top = found.map(|best| Best { score: best.score - log_sum, ..*best }).collect();
            Judged { score: logit - log_sum, top }
        };
        let mut rows = best.chunks_exact(width).zip(log_sums).zip(apart).map(judge);
        pairs.iter().map(|(_, target)| rows.by_ref().take(target.len()).collect()).collect()
    }

    /// The last token of the target is not read, since nothing follows it. Each layer has one attention, as in an encoder.
    fn inspect(&self, source: &[u32], target: &[u32]) -> Inspection {
        let tape = Inspection::tape(&self.backend);
        self.decode(&tape, &[(source, target)]);
        Inspection::new(&self.backend, &tape, self.model.config().layers)
    }

    fn slide(&mut self) -> bool {
        self.windows.get_or_insert_default();
        true
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
