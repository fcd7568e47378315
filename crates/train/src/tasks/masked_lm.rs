//! Masked language modelling: tokens of a text are hidden, and the model says which they were.
//!
//! Of the tokens that are chosen, 80 % become the mask, 10 % another token, and 10 % stay: the model must have an idea of every
//! token. Each epoch chooses anew. Of a line that is longer than the model reads, each epoch takes another piece.

use super::bert::{self, Judge, LearningBert};
use super::held::Held;
use super::{Judgement, Ranks, Start, Task};
use crate::Error;
use crate::corpus::{self, Corpus, CorpusFiles, CorpusSize, Example, Examples};
use crate::settings::{Draft, Facts, Settings};
use attentive_model::families::bert::{self as family, BertConfig};
use attentive_tensor::{Backend, Random};
use attentive_text::tokenizer::{Encoding, Input, Side, Tokenizer};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Where the masks of the texts that are held out come from; epochs count from the other end.
const HELD: u64 = u64::MAX - 1;
/// Lines that are read at once to train a tokenizer.
const CHUNK: usize = 50_000;
/// Shares of the chosen tokens that become the mask, and that become the mask or another token.
const MASKED: f32 = 0.8;
const CHANGED: f32 = 0.9;

/// Texts on the disk, a line each, and their tokenizer.
pub(super) struct Lines {
    corpus: Arc<Corpus>,
    held: Option<Corpus>,
    /// The model that learning begins with.
    origin: Option<BertConfig>,
    tokenizer: Option<Arc<Tokenizer>>,
}

impl Lines {
    pub(super) fn read(settings: &Settings, origin: Option<&Path>, cache: &Path) -> Result<Lines, Error> {
        let open = |files: &[std::path::PathBuf]| Corpus::open(&CorpusFiles::Texts(files.to_vec()), cache);
        let held = match &settings.valid_source[..] {
            [] => None,
            files => Some(open(files)?),
        };
        Ok(Lines {
            corpus: Arc::new(open(&settings.source)?),
            held,
            origin: origin.map(BertConfig::load).transpose()?,
            tokenizer: None,
        })
    }

    fn tokens(&self) -> &Arc<Tokenizer> {
        self.tokenizer.as_ref().expect("tokens are made or loaded first")
    }

    fn masked(&self, corpus: &Arc<Corpus>, settings: &Settings) -> Result<MaskedLines, Error> {
        let Some(mask) = self.tokens().mask() else {
            let problem = "the tokenizer has no mask token, which this task needs: use that of a BERT";
            return Err(Error::setting("tokenizer", problem));
        };
        let masking = Masking {
            share: settings.mask_share as f32,
            mask: mask as i32,
            tokens: bert::vocabulary(self.tokens()),
        };
        let (corpus, tokenizer) = (Arc::clone(corpus), Arc::clone(self.tokens()));
        Ok(MaskedLines { corpus, tokenizer, limit: bert::limit(settings, self.origin.as_ref()), masking })
    }
}

impl super::Material for Lines {
    fn facts(&self, draft: &Draft) -> Result<Facts, Error> {
        let mut characters = HashSet::new();
        if draft.chooses_vocabulary() {
            each_chunk(&self.corpus, |text| characters.extend(text.chars()))?;
        }
        Ok(Facts {
            examples: self.corpus.len(),
            bytes: self.corpus.size().bytes,
            characters: characters.len(),
            validation: self.held.as_ref().map_or(0, Corpus::len),
            d_model: self.origin.as_ref().map(|config| config.d_model),
        })
    }

    fn hold_out(&mut self, settings: &Settings) -> Result<(), Error> {
        if settings.hold_out > 0 {
            settings.check_hold_out(self.corpus.len(), "lines")?;
            let (corpus, held) = self.corpus.hold_out(settings.hold_out, settings.seed);
            (self.corpus, self.held) = (Arc::new(corpus), Some(held));
        }
        Ok(())
    }

    fn make_tokens(&mut self, settings: &Settings) -> Result<(), Error> {
        let tokenizer = bert::make_tokenizer(settings, |trainer| {
            each_chunk(&self.corpus, |text| trainer.text(text, Side::Source))
        })?;
        self.tokenizer = Some(Arc::new(tokenizer));
        Ok(())
    }

    fn save_tokens(&self, folder: &Path) -> Result<(), Error> {
        Ok(self.tokens().save(folder)?)
    }

    fn load_tokens(&mut self, folder: &Path) -> Result<(), Error> {
        self.tokenizer = Some(Arc::new(bert::load_tokenizer(folder)?));
        Ok(())
    }

    fn vocabulary(&self) -> usize {
        bert::vocabulary(self.tokens())
    }

    fn examples(&self, settings: &Settings) -> Result<(Arc<dyn Examples>, Vec<String>), Error> {
        Ok((Arc::new(self.masked(&self.corpus, settings)?), Vec::new()))
    }

    fn task(
        &self,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Box<dyn Task>, Error> {
        let model = bert::model(backend, settings, (family::Task::MaskedLm, &[]), self.tokens(), start)?;
        let held = match (&self.held, start) {
            (Some(held), Start::First(_) | Start::Again(_)) => {
                let lines = self.masked(&Arc::new(held.clone()), settings)?;
                let numbers: Vec<u32> = (0..lines.len() as u32).collect();
                let mut examples = Vec::with_capacity(numbers.len());
                let random = Random::new(settings.seed).split(HELD);
                lines.encode(&numbers, &|number| random.split(number.into()), &mut |_, example| {
                    examples.push(example);
                    true
                })?;
                examples.retain(|example| !example.source.is_empty());
                if examples.is_empty() {
                    return Err(Error::setting("valid_source", "no line to validate on has text"));
                }
                let judge: Box<dyn Judge> = Box::new(LossAlone);
                Some((Held::new(examples, settings.batch_tokens), judge))
            }
            _ => None,
        };
        Ok(Box::new(LearningBert::new(model).judged_by(held)))
    }
}

/// Shows all lines, many at a time.
pub(super) fn each_chunk(corpus: &Corpus, mut show: impl FnMut(&str)) -> Result<(), Error> {
    let numbers: Vec<u32> = (0..corpus.len() as u32).collect();
    for numbers in numbers.chunks(CHUNK) {
        let mut text = String::new();
        corpus.read(numbers, |_, line, _| {
            text.push_str(line);
            text.push('\n');
            true
        })?;
        show(&text);
    }
    Ok(())
}

/// The loss is the only score.
#[derive(Debug)]
struct LossAlone;

impl Judge for LossAlone {
    fn judge(&self, _: &Ranks, judgement: Judgement) -> Result<Judgement, Error> {
        Ok(judgement)
    }
}

/// Lines with masks.
#[derive(Debug)]
struct MaskedLines {
    corpus: Arc<Corpus>,
    tokenizer: Arc<Tokenizer>,
    limit: usize,
    masking: Masking,
}

impl Examples for MaskedLines {
    fn len(&self) -> usize {
        self.corpus.len()
    }

    fn size(&self) -> CorpusSize {
        self.corpus.size()
    }

    fn tokenizes(&self) -> bool {
        true
    }

    fn encode(
        &self,
        numbers: &[u32],
        random: &dyn Fn(u32) -> Random,
        show: &mut dyn FnMut(usize, Example) -> bool,
    ) -> Result<(), corpus::Error> {
        let mut failed = None;
        self.corpus.read(numbers, |place, line, _| {
            if line.trim().is_empty() {
                return show(place, Example::default());
            }
            match self.tokenizer.encode_input(Input::Text(line), None) {
                Ok(encoding) => {
                    let random = random(numbers[place]);
                    show(
                        place,
                        self.masking.mask(&piece(encoding, self.limit, random.split(0)), random.split(1)),
                    )
                }
                Err(error) => {
                    let (path, line) = self.corpus.place_of_line(numbers[place]);
                    let problem = format!("cannot be encoded: {error}");
                    failed = Some(corpus::Error::Line { path: path.to_owned(), line, problem });
                    false
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}

/// A piece of at most `limit` tokens of a text, with the tokens of the template around it. Chance says where it begins.
fn piece(encoding: Encoding, limit: usize, random: Random) -> Encoding {
    let content = encoding.sources.iter().flatten().count();
    let room = limit.saturating_sub(encoding.len() - content);
    if content <= room {
        return encoding;
    }
    let first = (f64::from(random.uniform(0)) * (content - room + 1) as f64) as usize;
    let mut seen = 0;
    let keeps: Vec<bool> = encoding
        .sources
        .iter()
        .map(|source| {
            let place = seen;
            seen += usize::from(source.is_some());
            source.is_none() || (first..first + room).contains(&place)
        })
        .collect();
    fn kept<T>(items: Vec<T>, keeps: &[bool]) -> Vec<T> {
        items.into_iter().zip(keeps).filter_map(|(item, keep)| keep.then_some(item)).collect()
    }
    Encoding {
        ids: kept(encoding.ids, &keeps),
        types: kept(encoding.types, &keeps),
        sources: kept(encoding.sources, &keeps),
        cut: encoding.cut,
    }
}

/// How tokens are hidden.
#[derive(Debug, Clone, Copy)]
struct Masking {
    /// The share of the tokens that are chosen.
    share: f32,
    mask: i32,
    /// How many tokens there are to put in the place of another.
    tokens: usize,
}

impl Masking {
    /// A text with some tokens hidden, at least one, and what they were.
    fn mask(&self, encoding: &Encoding, random: Random) -> Example {
        let signed = |ids: &[u32]| ids.iter().map(|&id| id as i32).collect::<Vec<_>>();
        let (mut source, types) = (signed(&encoding.ids), signed(&encoding.types));
        let mut labels = vec![-1; source.len()];
        let text: Vec<usize> = (0..source.len()).filter(|&i| encoding.sources[i].is_some()).collect();
        if text.is_empty() {
            return Example::default();
        }
        let (chance, fate, other) = (random.split(0), random.split(1), random.split(2));
        let mut chosen: Vec<usize> =
            text.iter().copied().filter(|&i| chance.uniform(i as u32) < self.share).collect();
        if chosen.is_empty() {
            chosen.push(text[below(text.len(), other.bits(0))]);
        }
        for i in chosen {
            labels[i] = source[i];
            let fate = fate.uniform(i as u32);
            if fate < MASKED {
                source[i] = self.mask;
            } else if fate < CHANGED {
                source[i] = below(self.tokens, other.bits(1 + i as u32)) as i32;
            }
        }
        Example { source, types, labels, ..Example::default() }
    }
}

/// A number below `most`, from 32 random bits.
fn below(most: usize, bits: u32) -> usize {
    ((u64::from(bits) * most as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_text::tokenizer::Source;

    /// A text of so many tokens between two of the template.
    fn text(tokens: usize) -> Encoding {
        let source = |word| Some(Source { text: 0, word, begin: word, end: word + 1 });
        Encoding {
            ids: [2].into_iter().chain((0..tokens as u32).map(|i| 10 + i)).chain([3]).collect(),
            types: vec![0; tokens + 2],
            sources: [None].into_iter().chain((0..tokens).map(source)).chain([None]).collect(),
            cut: [0, 0],
        }
    }

    #[test]
    fn fifteen_per_cent_are_chosen_and_most_of_these_become_the_mask() {
        let masking = Masking { share: 0.15, mask: 4, tokens: 100_000 };
        let encoding = text(20_000);
        let example = masking.mask(&encoding, Random::new(1));
        let chosen: Vec<usize> = (0..example.labels.len()).filter(|&i| example.labels[i] >= 0).collect();
        assert!(
            chosen
                .iter()
                .all(|&i| example.labels[i] == encoding.ids[i] as i32 && encoding.sources[i].is_some())
        );
        let untouched = (0..example.source.len()).filter(|i| !chosen.contains(i));
        assert!(untouched.into_iter().all(|i| example.source[i] == encoding.ids[i] as i32));
        let share = |count: usize, of: usize| count as f64 / of as f64;
        assert!((share(chosen.len(), 20_000) - 0.15).abs() < 0.01, "{}", chosen.len());
        let masks = chosen.iter().filter(|&&i| example.source[i] == 4).count();
        let same = chosen.iter().filter(|&&i| example.source[i] == example.labels[i]).count();
        assert!(
            (share(masks, chosen.len()) - 0.8).abs() < 0.03 && (share(same, chosen.len()) - 0.1).abs() < 0.03
        );
        assert_eq!(example, masking.mask(&encoding, Random::new(1)));
        assert_ne!(example, masking.mask(&encoding, Random::new(2)));
    }

    #[test]
    fn a_short_text_has_one_mask_at_least_and_an_empty_one_is_left_out() {
        let masking = Masking { share: 0.15, mask: 4, tokens: 100 };
        for seed in 0..50 {
            assert!(masking.mask(&text(2), Random::new(seed)).answers() >= 1);
        }
        assert_eq!(masking.mask(&text(0), Random::new(1)), Example::default());
    }

    #[test]
    fn pieces_of_a_long_text_keep_the_template_and_cover_all_of_it() {
        assert_eq!(piece(text(5), 7, Random::new(1)), text(5));
        let mut seen = HashSet::new();
        for seed in 0..200 {
            let piece = piece(text(9), 6, Random::new(seed));
            assert_eq!((piece.len(), piece.ids[0], piece.ids[5]), (6, 2, 3));
            assert!(piece.ids[1..5].windows(2).all(|two| two[1] == two[0] + 1));
            seen.insert(piece.ids[1]);
        }
        assert_eq!(seen.len(), 6, "{seen:?}");
    }
}
