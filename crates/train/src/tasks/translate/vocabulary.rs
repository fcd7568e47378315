//! The tokens of a run: a tokenizer, trained or given, and the special tokens that the model needs.

use crate::Error;
use crate::corpus::{Corpus, Encode, Encoded};
use crate::settings::{Settings, TokenizerKind};
use attentive_model::families::transformer::TransformerConfig;
use attentive_tensor::Random;
use attentive_text::tokenizer::train::{Kind, Trainer};
use attentive_text::tokenizer::{Side, Tokenizer};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Pairs that a tokenizer is trained on: so many, spread evenly over the corpus, tell as much as all of ten
/// million.
const SAMPLE: usize = 500_000;
/// Pairs that are read at once for it.
const CHUNK: usize = 50_000;

/// A tokenizer that knows where a text ends.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    tokenizer: Arc<Tokenizer>,
    size: usize,
    eos: u32,
    pad: usize,
}

impl Vocabulary {
    /// Loads the tokenizer of the settings, or trains one.
    pub(crate) fn make(settings: &Settings, corpus: &Corpus) -> Result<Vocabulary, Error> {
        match settings.tokenizer.as_ref().or(settings.from.as_ref()) {
            Some(path) => Vocabulary::new(Tokenizer::load(path)?),
            None => Vocabulary::new(train(settings, corpus)?),
        }
    }

    /// Loads the tokenizer of a folder.
    pub fn load(folder: &Path) -> Result<Vocabulary, Error> {
        Vocabulary::new(Tokenizer::load(folder)?)
    }

    fn new(tokenizer: Tokenizer) -> Result<Vocabulary, Error> {
        let [source, target] = [Side::Source, Side::Target].map(|side| tokenizer.vocabulary_size(side));
        let special = tokenizer.special(Side::Target);
        let Some(eos) = special.eos else {
            return Err(Error::setting(
                "tokenizer",
                "the tokenizer has no end-of-sentence token, which translation needs",
            ));
        };
        let size = source.max(target);
        // Padding is the last row of the table, and starts the decoder. A tokenizer without it there gets one
        // more row.
        let pad = if special.pad == Some(size as u32 - 1) { size - 1 } else { size };
        let tokenizer = tokenizer.special_tokens_as_text();
        Ok(Vocabulary { tokenizer: Arc::new(tokenizer), size: pad + 1, eos, pad })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// How many tokens a model needs, padding included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The tokens of a text, ended.
    pub fn encode(&self, text: &str, side: Side) -> Result<Vec<u32>, attentive_text::tokenizer::Error> {
        Ok(self.ended(self.tokenizer.encode(text, side)?))
    }

    fn ended(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if ids.last() != Some(&self.eos) {
            ids.push(self.eos);
        }
        ids
    }

    /// The same as batches want it, each merge skipped with a probability of `dropout`.
    pub(crate) fn encoder(&self, side: Side, dropout: f64) -> Arc<dyn Encode> {
        let vocabulary = self.clone();
        Arc::new(move |text: &str, random: Random| -> Encoded {
            if dropout == 0.0 {
                return Ok(vocabulary.encode(text, side)?);
            }
            let mut merges = 0..;
            let skip = || merges.next().is_some_and(|merge| f64::from(random.uniform(merge)) < dropout);
            Ok(vocabulary.ended(vocabulary.tokenizer.encode_with_dropout(text, side, skip)?))
        })
    }

    /// Whether words can be cut in other ways by skipping merges.
    pub(crate) fn merges(&self) -> bool {
        self.tokenizer.merges()
    }

    /// Refuses a model that has no vector for some token, or ends texts with another one.
    pub(crate) fn check_fits(&self, config: &TransformerConfig, folder: &Path) -> Result<(), Error> {
        let [source, target] = [Side::Source, Side::Target].map(|side| self.tokenizer.vocabulary_size(side));
        let fits = source <= config.vocab_size && target <= config.target_vocabulary();
        if fits && config.eos == self.eos as usize {
            return Ok(());
        }
        let problem = format!("the tokenizer of {} belongs to another model", folder.display());
        Err(Error::setting("from", problem))
    }

    /// Puts the special tokens into a configuration.
    pub(crate) fn apply(&self, config: TransformerConfig) -> TransformerConfig {
        TransformerConfig { pad: Some(self.pad), start: self.pad, eos: self.eos as usize, ..config }
    }
}

fn train(settings: &Settings, corpus: &Corpus) -> Result<Tokenizer, Error> {
    let kind = match settings.tokenizer_kind {
        TokenizerKind::Bpe => Kind::Bpe,
        TokenizerKind::Unigram => Kind::Unigram,
        TokenizerKind::WordPiece => Kind::WordPiece,
        TokenizerKind::Characters => Kind::Characters,
    };
    let mut trainer = Trainer::new(kind, settings.vocab_size).character_coverage(settings.character_coverage);
    for numbers in sample(corpus).chunks(CHUNK) {
        let (mut sources, mut targets) = (String::new(), String::new());
        corpus.read(numbers, |_, source, target| {
            for (text, line) in [(&mut sources, source), (&mut targets, target)] {
                text.push_str(line);
                text.push('\n');
            }
            true
        })?;
        trainer.text(&sources, Side::Source);
        trainer.text(&targets, Side::Target);
    }
    Ok(trainer.joint()?)
}

/// The pairs that a tokenizer is trained on.
fn sample(corpus: &Corpus) -> Vec<u32> {
    let (pairs, sampled) = (corpus.len(), corpus.len().min(SAMPLE));
    (0..sampled).map(|i| (i as u64 * pairs as u64 / sampled as u64) as u32).collect()
}

/// How many different characters the pairs have that a tokenizer is trained on.
pub(crate) fn characters(corpus: &Corpus) -> Result<usize, Error> {
    let mut seen = HashSet::new();
    for numbers in sample(corpus).chunks(CHUNK) {
        corpus.read(numbers, |_, source, target| {
            seen.extend(source.chars().chain(target.chars()));
            true
        })?;
    }
    Ok(seen.len())
}
