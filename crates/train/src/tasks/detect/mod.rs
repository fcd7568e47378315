//! Pictures with boxes, from COCO's files or from [scenes](crate::scenes), learned by a DETR.
//!
//! An example is the number of a picture and the chance that it has in an epoch; the picture itself is read when a batch needs it.

mod picture;

use super::{Judgement, Ranks, Start, Task};
use crate::Error;
use crate::corpus::{CorpusSize, Example, ExampleBatch, Examples, held_out};
use crate::learner::seed_of_weights;
use crate::scenes::Shape;
use crate::settings::{Draft, Facts, Settings};
use attentive_image::boxes::{Annotation, Detection, average_precision};
use attentive_image::{Filter, Processor, Size};
use attentive_model::Builder;
use attentive_model::checkpoint::Staged;
use attentive_model::families::detr::{Batch, Detr, DetrConfig, Targets};
use attentive_tasks::{Detected, Detector};
use attentive_tensor::{Backend, Parameter, Random, Tape, Tensor, Var};
use picture::{Entry, are_scenes, read_files, scenes};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// Scenes of an epoch.
const SCENES_OF_AN_EPOCH: usize = 20_000;
/// Scenes to judge by, where a file would name others.
const SCENES_TO_JUDGE: usize = 500;
/// The seed of the first scene that is only judged by.
const FIRST_HELD: u64 = 1 << 40;
/// Pixels that cost as much as a token.
const PIXELS_OF_A_TOKEN: usize = 64;
/// The shortest and the longest side of pictures that are learned from scratch.
const SIDES: [usize; 2] = [256, 448];
/// Object queries of a new model.
const FEWEST_QUERIES: usize = 8;
const MOST_QUERIES: usize = 300;
/// The name of the file that says how pictures are made ready.
const PROCESSOR: &str = "preprocessor_config.json";

/// What is learned from.
#[derive(Debug)]
pub(super) struct Pictures {
    entries: Vec<Entry>,
    held: Vec<Entry>,
    labels: Vec<String>,
    bytes: u64,
    checksum: u32,
    are_scenes: bool,
    d_model: Option<usize>,
    processor: Option<Processor>,
}

impl Pictures {
    /// Reads the files of the settings. A model to go on from keeps its classes, if those of the files are among them.
    pub(super) fn read(settings: &Settings, origin: Option<&Path>) -> Result<Pictures, Error> {
        let known = origin.map(DetrConfig::load).transpose()?;
        let d_model = known.as_ref().map(|config| config.d_model);
        let own = |bytes, checksum, are_scenes| Pictures {
            entries: Vec::new(),
            held: Vec::new(),
            labels: Vec::new(),
            bytes,
            checksum,
            are_scenes,
            d_model,
            processor: None,
        };
        if are_scenes(&settings.source) {
            let bytes = (SCENES_OF_AN_EPOCH * 3 * crate::scenes::SIDE * crate::scenes::SIDE) as u64;
            let held = if settings.valid_source.is_empty() { 0 } else { SCENES_TO_JUDGE };
            return Ok(Pictures {
                entries: scenes(0, SCENES_OF_AN_EPOCH),
                held: scenes(FIRST_HELD, held),
                labels: Shape::ALL.iter().map(|shape| shape.name().to_owned()).collect(),
                ..own(bytes, 0, true)
            });
        }
        let labels = known.map(|config| config.labels);
        let train = read_files(&settings.source, labels.as_deref())?;
        let held = read_files(&settings.valid_source, Some(&train.labels))?;
        if train.entries.is_empty() {
            return Err(Error::setting("source", "there are no pictures in the files"));
        }
        Ok(Pictures {
            entries: train.entries,
            held: held.entries,
            labels: train.labels,
            ..own(train.bytes, train.checksum, false)
        })
    }

    fn processor(&self) -> &Processor {
        self.processor.as_ref().expect("tokens are made or loaded first")
    }
}

/// A picture as an example: its number, its chance, and a number for each token that it costs.
fn example(number: u32, entry: &Entry, random: Random) -> Example {
    let tokens = (entry.pixels / PIXELS_OF_A_TOKEN).max(2);
    let mut source = vec![0; tokens];
    (source[0], source[1]) = (number as i32, random.bits(0) as i32);
    // A picture without things says that there is nothing, which is an answer, too.
    Example { source, labels: vec![0; entry.answers()], ..Example::default() }
}

/// Pictures by their numbers.
#[derive(Debug)]
struct Numbered {
    entries: Arc<Vec<Entry>>,
    size: CorpusSize,
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
            if !show(place, example(number, &self.entries[number as usize], random(number))) {
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
            d_model: self.d_model,
        })
    }

    fn hold_out(&mut self, settings: &Settings) -> Result<(), Error> {
        if settings.hold_out == 0 {
            return Ok(());
        }
        settings.check_hold_out(self.entries.len(), "pictures")?;
        if self.are_scenes {
            // There are more where these come from.
            self.held = scenes(FIRST_HELD, settings.hold_out);
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
            Some(from) => Processor::of(from)?,
            None => {
                // The mean and the standard deviation of ImageNet's pictures, which DETR has.
                let normalise = Some([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]);
                let sides = (Size::ShortestWithin(SIDES[0], SIDES[1]), Filter::Bilinear);
                let resize = (!self.are_scenes).then_some(sides);
                Processor { resize, normalise, ..Processor::plain(1, 1) }
            }
        });
        Ok(())
    }

    fn save_tokens(&self, folder: &Path) -> Result<(), Error> {
        // transformers finds boxes with the class of this name.
        let text = self.processor().to_json_as("DetrImageProcessor");
        Ok(Staged::new(&folder.join(PROCESSOR), text.as_bytes())?.commit()?)
    }

    fn load_tokens(&mut self, folder: &Path) -> Result<(), Error> {
        self.processor = Some(Processor::of(folder)?);
        Ok(())
    }

    fn vocabulary(&self) -> usize {
        self.labels.len()
    }

    fn examples(&self, _: &Settings) -> Result<(Arc<dyn Examples>, Vec<String>), Error> {
        let (bytes, checksum) = (self.bytes, Some(self.checksum));
        let size = CorpusSize { pairs: self.entries.len() as u64, bytes, checksum };
        Ok((Arc::new(Numbered { entries: Arc::new(self.entries.clone()), size }), Vec::new()))
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
                let config = DetrConfig { labels: self.labels.clone(), ..DetrConfig::load(from)? };
                Detr::load_to_learn(backend, from, &config, seed)?
            }
            (_, None) => {
                // Some more than there are things in any picture, so that a query need not take what is far away.
                let most = self.entries.iter().chain(&self.held).map(Entry::most).max().unwrap_or(0);
                let queries = (most * 3 / 2).clamp(FEWEST_QUERIES, MOST_QUERIES);
                let config = DetrConfig { queries, ..settings.detr(self.labels.clone())? };
                Detr::new(&Builder::random(backend, seed), &config)?
            }
        };
        if let Start::First(folder) = start {
            model.config().stage(folder)?.commit()?;
        }
        let held = if matches!(start, Start::Trial) { Vec::new() } else { self.held.clone() };
        Ok(Box::new(LearningDetr {
            model: Arc::new(model),
            entries: Arc::new(self.entries.clone()),
            held: Arc::new(held),
            processor: self.processor().clone(),
        }))
    }
}

/// A DETR that learns.
#[derive(Debug)]
struct LearningDetr {
    model: Arc<Detr>,
    entries: Arc<Vec<Entry>>,
    held: Arc<Vec<Entry>>,
    processor: Processor,
}

impl LearningDetr {
    /// The loss of pictures, each with its chance, as it adds to the mean over `of` answers.
    fn loss(&self, tape: &Tape, pictures: &[(&Entry, u32)], of: usize) -> Result<Var, Error> {
        let seen = picture::seen(pictures, &self.processor)?;
        let parts: Vec<_> = seen.iter().map(|seen| (seen.size, &seen.numbers[..])).collect();
        let batch = Batch::new(&**tape.backend(), &parts);
        let targets: Vec<Targets> = seen.iter().map(|seen| seen.targets.clone()).collect();
        let answers: usize = pictures.iter().map(|(entry, _)| entry.answers()).sum();
        let (loss, _) = self.model.loss(tape, &batch, &targets, answers as f32);
        Ok(tape.scale(&loss, answers as f32 / of as f32))
    }
}

impl Task for LearningDetr {
    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn d_model(&self) -> usize {
        self.model.config().d_model
    }

    fn partial_loss(&self, tape: &Tape, batch: &ExampleBatch, _: f32, of: usize) -> Result<Var, Error> {
        let numbered =
            |example: &Example| (&self.entries[example.source[0] as usize], example.source[1] as u32);
        let pictures: Vec<(&Entry, u32)> = batch.examples.iter().map(numbered).collect();
        self.loss(tape, &pictures, of)
    }

    fn held(&self) -> usize {
        self.held.len()
    }

    fn judge(&self, backend: &Arc<dyn Backend>, ranks: &Ranks) -> Result<Option<Judgement>, Error> {
        if self.held.is_empty() {
            return Ok(None);
        }
        let answers: usize = self.held.iter().map(Entry::answers).sum();
        let detector = Detector::new(backend, Arc::clone(&self.model), self.processor.clone());
        let judged = |entry: &Entry| {
            let part = self.loss(&Tape::inference(backend), &[(entry, 0)], answers)?;
            let loss = backend.download_f32(part.value())[0].to_bits();
            let (picture, things) = entry.open()?;
            let detected = detector.detect(&picture, 0.0).map_err(|problem| problem.of(&entry.path()))?;
            let bits = |thing: &Detected| (thing.class, thing.score.to_bits(), thing.bbox.map(f64::to_bits));
            Ok((loss, things, detected.iter().map(bits).collect::<Vec<_>>()))
        };
        let entries: Vec<&Entry> = self.held.iter().collect();
        let judged = ranks.share(&entries, |mine| mine.iter().copied().map(judged).collect())?;
        let (mut loss, mut there, mut found) = (0.0, Vec::new(), Vec::new());
        for ((part, things, detected), image_id) in judged.into_iter().zip(0..) {
            loss += f64::from(f32::from_bits(part));
            there.extend(things.into_iter().map(|(class, bbox)| Annotation {
                image_id,
                category_id: class as i64,
                bbox,
                area: None,
                iscrowd: 0,
            }));
            found.extend(detected.into_iter().map(|(class, score, bbox)| Detection {
                image_id,
                category_id: class as i64,
                bbox: bbox.map(f64::from_bits),
                score: f64::from_bits(score),
            }));
        }
        let (images, categories): (Vec<i64>, Vec<i64>) =
            ((0..self.held.len() as i64).collect(), (0..self.model.config().labels.len() as i64).collect());
        let scores = average_precision(&images, &categories, &there, &found);
        let share = |score: f64| Some(100.0 * score.max(0.0));
        Ok(Some(Judgement { loss, ap: share(scores.ap), ap50: share(scores.ap50), ..Judgement::default() }))
    }

    fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        Ok(self.model.stage_weights(backend, path)?)
    }

    fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        Ok(self.model.read_weights(backend, path)?)
    }
}
