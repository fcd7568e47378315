//! A DETR learns boxes, from COCO's files or from [scenes](crate::scenes).
//!
//! An example is the number of a picture and the random bits of its augmentation in this epoch. The picture itself is read when a batch
//! needs it.

mod files;
mod learning;
mod picture;

use super::{Start, Task, dropout};
use crate::Error;
use crate::corpus::{CorpusSize, Example, Examples, held_out};
use crate::learner::seed_of_weights;
use crate::scenes::{FIRST_HELD, TRAINING, VALIDATION};
use crate::settings::{Draft, Facts, Settings};
use attentive_image::{Filter, Processor, Size};
use attentive_model::Builder;
use attentive_model::checkpoint::Staged;
use attentive_model::families::detr::{Detr, DetrConfig};
use attentive_tensor::{Backend, Random};
use files::{Sources, scenes};
use learning::LearningDetr;
use picture::Entry;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// The shortest and the longest side of pictures for a model with random weights.
const SIDES: [usize; 2] = [256, 448];
/// The fewest and the most object queries of a new model.
const FEWEST_QUERIES: usize = 8;
const MOST_QUERIES: usize = 300;
/// The file that describes how pictures are prepared.
const PROCESSOR: &str = "preprocessor_config.json";

/// The pictures to learn from and to validate on.
#[derive(Debug)]
pub(super) struct Pictures {
    entries: Vec<Entry>,
    held: Vec<Entry>,
    labels: Vec<String>,
    bytes: u64,
    checksum: u32,
    are_scenes: bool,
    /// The configuration of the model that training starts from.
    origin: Option<DetrConfig>,
    /// A message for the user if this model gets a new class head.
    notice: Option<String>,
    processor: Option<Processor>,
}

impl Pictures {
    /// Reads the files of the settings. The model that training starts from keeps its classes if they include those of the files.
    pub(super) fn read(settings: &Settings, origin: Option<&Path>) -> Result<Pictures, Error> {
        let train = Sources::open(&settings.source)?;
        let (mut labels, mut notice) = (train.labels(), None);
        let known = origin.map(DetrConfig::load).transpose()?;
        if let (Some(folder), Some(known)) = (origin, &known) {
            match labels.iter().find(|label| !known.labels.contains(label)) {
                None => labels = known.labels.clone(),
                Some(label) => {
                    let (folder, count) = (folder.display(), labels.len());
                    notice = Some(format!(
                        "the model in {folder} has no class `{label}`: it gets a new head for the {count} classes of the corpus"
                    ));
                }
            }
        }
        let entries = train.entries(&labels, TRAINING)?;
        if entries.is_empty() {
            return Err(Error::setting("source", "there are no pictures in the files"));
        }
        let valid = Sources::open(&settings.valid_source)?;
        let held = valid.entries(&labels, VALIDATION)?;
        let are_scenes = train.are_scenes();
        let drawn = if are_scenes { 3 * crate::scenes::SIDE.pow(2) * entries.len() } else { 0 };
        let bytes = train.bytes + drawn as u64;
        let checksum = train.checksum;
        let (origin, processor) = (known, None);
        Ok(Pictures { entries, held, labels, bytes, checksum, are_scenes, origin, notice, processor })
    }

    fn processor(&self) -> &Processor {
        self.processor.as_ref().expect("`make_tokens` or `load_tokens` has run")
    }
}

/// The processor of a model folder, without padding: the pictures of a batch need not have the same size.
fn processor_of(folder: &Path) -> Result<Processor, Error> {
    Ok(Processor { pad: None, ..Processor::of(folder)? })
}

/// The examples: pictures by number.
#[derive(Debug)]
struct Numbered {
    entries: Arc<Vec<Entry>>,
    size: CorpusSize,
    processor: Processor,
    /// The most tokens that a picture counts for. A larger picture is a batch of its own.
    most: usize,
}

impl Numbered {
    /// A picture as an example: its number, and the random bits of its augmentation.
    fn example(&self, number: u32, random: Random) -> Example {
        let entry = &self.entries[number as usize];
        let source = vec![number as i32, random.bits(0) as i32];
        let later = entry.cost(&self.processor).min(self.most.saturating_sub(source.len()));
        Example { source, later, labels: vec![0; entry.objects()], ..Example::default() }
    }
}

impl Examples for Numbered {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn size(&self) -> CorpusSize {
        self.size
    }

    fn encode(
        &self,
        numbers: &[u32],
        random: &dyn Fn(u32) -> Random,
        show: &mut dyn FnMut(usize, Example) -> bool,
    ) -> Result<(), crate::corpus::Error> {
        for (&number, place) in numbers.iter().zip(0..) {
            if !show(place, self.example(number, random(number))) {
                break;
            }
        }
        Ok(())
    }
}

impl super::Material for Pictures {
    fn facts(&self, _: &Draft) -> Result<Facts, Error> {
        Ok(Facts {
            examples: self.entries.len(),
            bytes: self.bytes,
            characters: 0,
            validation: self.held.len(),
            d_model: self.origin.as_ref().map(|config| config.d_model),
        })
    }

    fn hold_out(&mut self, settings: &Settings) -> Result<(), Error> {
        if settings.hold_out == 0 {
            return Ok(());
        }
        settings.check_hold_out(self.entries.len(), "pictures")?;
        if self.are_scenes {
            // Further scenes are drawn, so that no training pictures are lost.
            self.held = scenes(&self.labels, FIRST_HELD..FIRST_HELD + settings.hold_out as u64)?;
            return Ok(());
        }
        let all = std::mem::take(&mut self.entries);
        let numbers = held_out(all.len(), settings.hold_out, settings.seed);
        for (entry, number) in all.into_iter().zip(0..) {
            let is_held = numbers.binary_search(&number).is_ok();
            if is_held { self.held.push(entry) } else { self.entries.push(entry) }
        }
        Ok(())
    }

    fn make_tokens(&mut self, settings: &Settings) -> Result<(), Error> {
        self.processor = Some(match &settings.from {
            Some(from) => processor_of(from)?,
            None => {
                // As in DETR: the mean and the standard deviation of ImageNet's pictures.
                let normalise = Some([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]);
                let sides = (Size::ShortestWithin(SIDES[0], SIDES[1]), Filter::Bilinear);
                let resize = (!self.are_scenes).then_some(sides);
                Processor { resize, normalise, ..Processor::plain(1, 1) }
            }
        });
        Ok(())
    }

    fn save_tokens(&self, folder: &Path) -> Result<(), Error> {
        // transformers loads the processor by the name of its class.
        let text = self.processor().to_json_as("DetrImageProcessor");
        Ok(Staged::new(&folder.join(PROCESSOR), text.as_bytes())?.commit()?)
    }

    fn load_tokens(&mut self, folder: &Path) -> Result<(), Error> {
        self.processor = Some(processor_of(folder)?);
        Ok(())
    }

    fn vocabulary(&self) -> usize {
        0
    }

    fn examples(&self, settings: &Settings) -> Result<(Arc<dyn Examples>, Vec<String>), Error> {
        let (bytes, checksum) = (self.bytes, Some(self.checksum));
        let numbered = Numbered {
            entries: Arc::new(self.entries.clone()),
            size: CorpusSize { pairs: self.entries.len() as u64, bytes, checksum },
            processor: self.processor().clone(),
            most: settings.batch_tokens.min(settings.longest),
        };
        Ok((Arc::new(numbered), self.notice.iter().cloned().collect()))
    }

    fn task(
        &self,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Box<dyn Task>, Error> {
        let seed = seed_of_weights(settings);
        let model = match (start, &settings.from) {
            (Start::Again(folder), _) => {
                Detr::new(&Builder::random(backend, seed), &DetrConfig::load(folder)?)?
            }
            (_, Some(from)) => {
                let own = DetrConfig::load(from)?;
                let config = DetrConfig {
                    labels: self.labels.clone(),
                    dropout: dropout(settings.dropout, own.dropout),
                    attention_dropout: dropout(settings.attention_dropout, own.attention_dropout),
                    ..own
                };
                Detr::load_to_learn(backend, from, &config, seed)?
            }
            (_, None) => {
                // Three times as many as objects in any picture, so that a query is free near each object.
                let most = self.entries.iter().chain(&self.held).map(Entry::most_objects).max().unwrap_or(0);
                let queries = (most * 3).clamp(FEWEST_QUERIES, MOST_QUERIES);
                let config = DetrConfig { queries, ..settings.detr(self.labels.clone())? };
                Detr::new(&Builder::random(backend, seed), &config)?
            }
        };
        if let Start::First(folder) = start {
            model.config().stage(folder)?.commit()?;
        }
        let held = if matches!(start, Start::Trial) { Vec::new() } else { self.held.clone() };
        Ok(Box::new(LearningDetr {
            model,
            entries: Arc::new(self.entries.clone()),
            held,
            processor: self.processor().clone(),
            threads: settings.pool(),
            is_guided: settings.from.is_none(),
        }))
    }
}
