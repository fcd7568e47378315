//! The tokens of a run: a tokenizer, trained or given, and the special tokens that the model needs.

use crate::Error;
use crate::corpus::{Corpus, Encode, Encoded};
use crate::settings::{Settings, TokenizerKind};
use attentive_model::families::encoder_decoder::Outline;
use attentive_tasks::SpokenLanguages;
use attentive_tensor::Random;
use attentive_text::tokenizer::train::{Kind, Trainer};
use attentive_text::tokenizer::{Side, Tokenizer};
use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Pairs that a tokenizer is trained on: so many, spread evenly over the corpus, tell as much as all of ten
/// million.
const SAMPLE: usize = 500_000;
/// Pairs that are read at once for it.
const CHUNK: usize = 50_000;

/// How texts are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    /// What stands before each source.
    pub(crate) prefix: String,
    /// The languages that sources and targets begin with, of a model that has tokens for languages.
    pub(crate) languages: [Option<String>; 2],
    /// The most tokens of a source; longer ones are cut.
    pub(crate) longest: Option<usize>,
}

/// A tokenizer that knows where a text ends.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    tokenizer: Arc<Tokenizer>,
    size: usize,
    eos: u32,
    pad: usize,
    reading: Reading,
    /// The tokens of the languages.
    languages: [Option<u32>; 2],
}

impl Vocabulary {
    /// Loads the tokenizer of the settings, or trains one.
    pub(crate) fn make(settings: &Settings, corpus: &Corpus, reading: &Reading) -> Result<Vocabulary, Error> {
        let tokenizer = match settings.tokenizer.as_ref().or(settings.from.as_ref()) {
            Some(path) => Tokenizer::load(path)?,
            None => train(settings, corpus)?,
        };
        Vocabulary::new(tokenizer, reading)
    }

    /// Loads the tokenizer of a folder.
    pub(crate) fn load(folder: &Path, reading: &Reading) -> Result<Vocabulary, Error> {
        Vocabulary::new(Tokenizer::load(folder)?, reading)
    }

    fn new(tokenizer: Tokenizer, reading: &Reading) -> Result<Vocabulary, Error> {
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
        let languages = languages(&tokenizer, reading)?;
        let tokenizer = Arc::new(tokenizer.special_tokens_as_text());
        Ok(Vocabulary { tokenizer, size: pad + 1, eos, pad, reading: reading.clone(), languages })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// How many tokens a model needs, padding included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The token that targets begin with, if it says their language.
    pub(crate) fn target_language(&self) -> Option<u32> {
        self.languages[1]
    }

    /// Whether texts begin with a language.
    pub(crate) fn speaks(&self) -> bool {
        self.languages.iter().any(Option::is_some)
    }

    /// The tokens of a text, ended.
    pub fn encode(&self, text: &str, side: Side) -> Result<Vec<u32>, attentive_text::tokenizer::Error> {
        let (text, language) = match side {
            Side::Source => (self.read(text), self.languages[0]),
            Side::Target => (text.into(), self.languages[1]),
        };
        let ids = match language {
            Some(language) => {
                let text = self.tokenizer.encode_plain(&text, side)?;
                [language].into_iter().chain(text).collect()
            }
            None => self.tokenizer.encode(&text, side)?,
        };
        Ok(self.ended(ids, side))
    }

    /// A source behind what stands before each.
    fn read<'a>(&self, source: &'a str) -> Cow<'a, str> {
        if self.reading.prefix.is_empty() {
            return source.into();
        }
        format!("{}{source}", self.reading.prefix).into()
    }

    /// Tokens with the end token, those of a source cut.
    fn ended(&self, mut ids: Vec<u32>, side: Side) -> Vec<u32> {
        if ids.last() != Some(&self.eos) {
            ids.push(self.eos);
        }
        if let (Side::Source, Some(longest)) = (side, self.reading.longest)
            && ids.len() > longest
        {
            ids.truncate(longest - 1);
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
            let text = if side == Side::Source { vocabulary.read(text) } else { text.into() };
            Ok(vocabulary.ended(vocabulary.tokenizer.encode_with_dropout(&text, side, skip)?, side))
        })
    }

    /// Whether words can be cut in other ways by skipping merges.
    pub(crate) fn merges(&self) -> bool {
        self.tokenizer.merges()
    }

    /// Refuses a model that has no vector for some token, or ends texts with another one.
    pub(crate) fn check_fits(&self, outline: &Outline, folder: &Path) -> Result<(), Error> {
        let [source, target] = [Side::Source, Side::Target].map(|side| self.tokenizer.vocabulary_size(side));
        let fits = source <= outline.source_vocabulary && target <= outline.target_vocabulary;
        if fits && outline.eos == self.eos as usize {
            return Ok(());
        }
        let problem = format!("the tokenizer of {} belongs to another model", folder.display());
        Err(Error::setting("from", problem))
    }

    /// The token of padding, with which targets begin, too.
    pub(crate) fn pad(&self) -> usize {
        self.pad
    }

    /// The token that ends texts.
    pub(crate) fn eos(&self) -> usize {
        self.eos as usize
    }
}

/// The tokens of the languages that texts begin with. A model with such tokens needs them on both sides, any other has none.
fn languages(tokenizer: &Tokenizer, reading: &Reading) -> Result<[Option<u32>; 2], Error> {
    let spoken = SpokenLanguages::of(tokenizer);
    let token = |name: &'static str, language: &Option<String>| match language {
        None if spoken.is_empty() => Ok(None),
        None => {
            let problem = "the model knows several languages: learn with the task seq2seq, and name the language of the texts, such as en";
            Err(Error::setting(name, problem))
        }
        Some(_) if spoken.is_empty() => {
            Err(Error::setting(name, "the model has no tokens for languages: remove this setting"))
        }
        Some(language) => {
            let found = spoken.find(language);
            found.map(Some).map_err(|error| Error::setting(name, error.to_string()))
        }
    };
    let [source, target] = &reading.languages;
    Ok([token("source_language", source)?, token("target_language", target)?])
}

fn train(settings: &Settings, corpus: &Corpus) -> Result<Tokenizer, Error> {
    let kind = match settings.tokenizer_kind {
        TokenizerKind::Bpe => Kind::Bpe,
        TokenizerKind::Unigram => Kind::Unigram,
        TokenizerKind::WordPiece => Kind::WordPiece,
        TokenizerKind::Characters => Kind::Characters,
    };
    let mut trainer = Trainer::new(kind, settings.vocab_size).character_coverage(settings.character_coverage);
    // It stands before each source, and its characters need not be those of the texts.
    trainer.line(&settings.prefix, Side::Source);
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
