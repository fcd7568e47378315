//! Classification of pictures, each with a label, by ViT.
//!
//! Pictures are read from the disk in each epoch anew, and seen a little differently if the settings say so.

use super::{Judgement, Ranks, Start, Task, dropout};
use crate::Error;
use crate::corpus::labelled::Labels;
use crate::corpus::pictures::{Augment, LabelledPicture, LabelledPictures, read_pictures};
use crate::corpus::{self, CorpusSize, Example, ExampleBatch, ExamplePicture, Examples, held_out};
use crate::learner::seed_of_weights;
use crate::settings::{Draft, Facts, Settings, USUAL_SIDE};
use attentive_image::{Filter, Pixels, Processor, Size};
use attentive_model::Builder;
use attentive_model::checkpoint::Staged;
use attentive_model::families::vit::{self, Batch, Picture, Vit, VitConfig};
use attentive_tensor::{Backend, Parameter, Random, Tape, Tensor, Threads, Var};
use attentive_text::score::ClassScores;
use std::path::Path;
use std::sync::Arc;

/// What says how pictures are made ready.
const PROCESSOR: &str = "preprocessor_config.json";

/// About how many tokens are judged at once.
const JUDGED_TOKENS: usize = 16_384;

/// A ViT that learns.
#[derive(Debug)]
pub struct LearningVit {
    model: Vit,
    processor: Processor,
    held: Option<Held>,
}

/// Pictures that a model is judged by. They are read again for each judgement.
#[derive(Debug)]
struct Held {
    pictures: Vec<LabelledPicture>,
    loader: Loader,
}

impl LearningVit {
    /// A model that nothing judges, and how pictures are made ready for it.
    pub fn new(model: Vit, processor: Processor) -> LearningVit {
        LearningVit { model, processor, held: None }
    }

    fn batch(&self, backend: &dyn Backend, examples: &[Example]) -> Batch {
        let picture = |example: &Example| {
            let picture = example.picture.as_ref().expect("an example of this task is a picture");
            self.processor.numbers(&picture.picture)
        };
        let pixels: Vec<Pixels> = examples.iter().map(picture).collect();
        let pictures: Vec<Picture> = pixels.iter().map(as_planes).collect();
        Batch::new(backend, self.model.config(), &pictures)
    }

    /// The logits of some pictures.
    fn logits(&self, backend: &Arc<dyn Backend>, examples: &[Example]) -> Result<Vec<Vec<f32>>, Error> {
        let tape = Tape::inference(backend);
        let batch = self.batch(&**backend, examples);
        let hidden = self.model.encode(&tape, &batch);
        let logits = self.model.logits(&tape, &hidden, &batch)?;
        let numbers = backend.download_f32(logits.value());
        Ok(numbers.chunks_exact(logits.shape().cols()).map(<[f32]>::to_vec).collect())
    }
}

impl Task for LearningVit {
    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn d_model(&self) -> usize {
        self.model.config().d_model
    }

    fn partial_loss(
        &self,
        tape: &Tape,
        batch: &ExampleBatch,
        smoothing: f32,
        of: usize,
    ) -> Result<Var, Error> {
        let pictures = self.batch(&**tape.backend(), &batch.examples);
        Ok(self.model.partial_loss(tape, &pictures, &batch.labels(), smoothing, of)?)
    }

    fn held(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.pictures.len())
    }

    fn judge(&self, backend: &Arc<dyn Backend>, ranks: &Ranks) -> Result<Option<Judgement>, Error> {
        let Some(Held { pictures, loader }) = &self.held else { return Ok(None) };
        let all: Vec<&LabelledPicture> = pictures.iter().collect();
        let judged = ranks.share(&all, |mine| {
            let mut judgements = Vec::with_capacity(mine.len());
            for pictures in mine.chunks(TOGETHER) {
                let pictures: Vec<_> = pictures.iter().map(|picture| (*picture, Random::new(0))).collect();
                let examples = loader.load_all(&pictures)?;
                for examples in examples.chunks((JUDGED_TOKENS / examples[0].tokens()).max(1)) {
                    let logits = self.logits(backend, examples)?;
                    judgements.extend(examples.iter().zip(logits).map(|(one, logits)| judged(one, &logits)));
                }
            }
            Ok(judgements)
        })?;
        let names = &self.model.config().labels;
        let (mut scores, mut loss) = (ClassScores::default(), 0.0);
        for (right, best, bits) in judged {
            scores.add(&names[right], &names[best]);
            loss += f64::from_bits(bits);
        }
        Ok(Some(Judgement {
            loss: loss / pictures.len() as f64,
            accuracy: Some(100.0 * scores.accuracy()),
            f1: Some(100.0 * scores.classes().macro_average().f1),
            ..Judgement::default()
        }))
    }

    fn stage_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Staged, Error> {
        Ok(self.model.stage_weights(backend, path)?)
    }

    fn read_weights(&self, backend: &dyn Backend, path: &Path) -> Result<Vec<Tensor>, Error> {
        Ok(self.model.read_weights(backend, path)?)
    }
}

/// The label of a picture, the best one by these logits, and the bits of the loss.
fn judged(example: &Example, logits: &[f32]) -> (usize, usize, u64) {
    let right = example.labels[0] as usize;
    let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]).then(b.cmp(&a)));
    let most = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - most).exp()).sum();
    (right, best.unwrap_or_default(), (most + sum.ln() - f64::from(logits[right])).to_bits())
}

fn as_planes(Pixels { height, width, numbers }: &Pixels) -> Picture<'_> {
    Picture { height: *height, width: *width, numbers }
}

/// Pictures to learn from.
pub(super) struct Pictures {
    train: LabelledPictures,
    held: Option<Vec<LabelledPicture>>,
    /// The model that learning begins with.
    origin: Option<VitConfig>,
    processor: Option<Processor>,
}

impl Pictures {
    /// Finds the pictures of the settings. A model that has labels already keeps them, if those of the pictures are among them.
    pub(super) fn read(settings: &Settings, origin: Option<&Path>) -> Result<Pictures, Error> {
        let mut train = read_pictures(&settings.source, None)?;
        if train.labels.len() < 2 {
            return Err(Error::setting(
                "source",
                "all pictures have the same label: there is nothing to learn",
            ));
        }
        let config = origin.map(VitConfig::load).transpose()?;
        if let (Some(origin), Some(config)) = (origin, &config)
            && vit::Task::of(origin)? == vit::Task::Classes
        {
            let known = Labels::in_order(config.labels.clone());
            if train.labels.names().iter().all(|name| known.number(name).is_some()) {
                train.labels = known;
            }
        }
        let held = match &settings.valid_source[..] {
            [] => None,
            paths => Some(read_pictures(paths, Some(&train.labels))?.pictures),
        };
        Ok(Pictures { train, held, origin: config, processor: None })
    }

    fn processor(&self) -> &Processor {
        self.processor.as_ref().expect("it is made or loaded first")
    }

    /// Height and width of the pictures that a new model reads.
    fn size(&self, settings: &Settings) -> [usize; 2] {
        let side = settings.image_size.map(|side| [side; 2]);
        side.or(self.train.size).unwrap_or([USUAL_SIDE; 2])
    }

    /// The model's configuration, with the labels to learn.
    fn config(&self, settings: &Settings) -> Result<VitConfig, Error> {
        let config = match &self.origin {
            Some(config) => VitConfig {
                dropout: dropout(settings.dropout, config.dropout),
                attention_dropout: dropout(settings.attention_dropout, config.attention_dropout),
                ..config.clone()
            },
            None => settings.vit(self.size(settings))?,
        };
        Ok(VitConfig { labels: self.train.labels.names().to_vec(), problem: None, ..config })
    }

    fn loader(&self, settings: &Settings, augment: Augment) -> Result<Loader, Error> {
        Ok(Loader {
            config: self.config(settings)?,
            processor: self.processor().clone(),
            labels: self.train.labels.clone(),
            augment,
            threads: settings.pool(),
        })
    }

    fn model(&self, backend: &Arc<dyn Backend>, settings: &Settings, start: Start<'_>) -> Result<Vit, Error> {
        let seed = seed_of_weights(settings);
        let builder = Builder::random(backend, seed);
        if let Start::Again(folder) = start {
            return Ok(Vit::new(&builder, &VitConfig::load(folder)?, vit::Task::Classes)?);
        }
        let config = self.config(settings)?;
        let model = match &settings.from {
            Some(from) => Vit::load_to_learn(backend, from, &config, seed)?,
            None => Vit::new(&builder, &config, vit::Task::Classes)?,
        };
        if let Start::First(folder) = start {
            model.config().stage(folder, vit::Task::Classes)?.commit()?;
        }
        Ok(model)
    }
}

impl super::Material for Pictures {
    fn facts(&self, _: &Draft) -> Result<Facts, Error> {
        Ok(Facts {
            examples: self.train.pictures.len(),
            bytes: self.train.bytes,
            characters: 0,
            validation: self.held.as_ref().map_or(0, Vec::len),
            d_model: self.origin.as_ref().map(|config| config.d_model),
        })
    }

    fn hold_out(&mut self, settings: &Settings) -> Result<(), Error> {
        if settings.hold_out > 0 {
            let all = std::mem::take(&mut self.train.pictures);
            settings.check_hold_out(all.len(), "pictures")?;
            let numbers = held_out(all.len(), settings.hold_out, settings.seed);
            let is_held = |(_, number): &(LabelledPicture, u32)| numbers.binary_search(number).is_ok();
            let (held, kept): (Vec<_>, Vec<_>) = all.into_iter().zip(0..).partition(is_held);
            let pictures = |numbered: Vec<(LabelledPicture, u32)>| {
                numbered.into_iter().map(|(picture, _)| picture).collect::<Vec<_>>()
            };
            (self.train.pictures, self.held) = (pictures(kept), Some(pictures(held)));
        }
        Ok(())
    }

    fn make_tokens(&mut self, settings: &Settings) -> Result<(), Error> {
        let [height, width] = self.size(settings);
        self.processor = Some(match &settings.from {
            Some(from) => Processor::of(from).map_err(corpus::Error::from)?,
            None => Processor::plain(height, width),
        });
        Ok(())
    }

    fn save_tokens(&self, folder: &Path) -> Result<(), Error> {
        Ok(Staged::new(&folder.join(PROCESSOR), self.processor().to_json().as_bytes())?.commit()?)
    }

    fn load_tokens(&mut self, folder: &Path) -> Result<(), Error> {
        self.processor = Some(Processor::of(folder).map_err(corpus::Error::from)?);
        Ok(())
    }

    fn vocabulary(&self) -> usize {
        0
    }

    fn examples(&self, settings: &Settings) -> Result<(Arc<dyn Examples>, Vec<String>), Error> {
        let (pictures, bytes) = (self.train.pictures.clone(), self.train.bytes);
        let size = CorpusSize { pairs: pictures.len() as u64, bytes, checksum: Some(self.train.checksum) };
        let loader = self.loader(settings, settings.augment())?;
        Ok((Arc::new(Album { pictures, loader, size }), Vec::new()))
    }

    fn task(
        &self,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Box<dyn Task>, Error> {
        let model = self.model(backend, settings, start)?;
        let held = match (&self.held, start) {
            (Some(pictures), Start::First(_) | Start::Again(_)) => {
                let loader = self.loader(settings, Augment { crop_share: 1.0, flip: false })?;
                Some(Held { pictures: pictures.clone(), loader })
            }
            _ => None,
        };
        Ok(Box::new(LearningVit { model, processor: self.processor().clone(), held }))
    }
}

/// Makes examples of pictures.
#[derive(Debug)]
struct Loader {
    config: VitConfig,
    processor: Processor,
    labels: Labels,
    augment: Augment,
    threads: Threads,
}

impl Loader {
    fn load(&self, picture: &LabelledPicture, random: Random) -> Result<Example, corpus::Error> {
        let whole = picture.source.read()?;
        let seen = match self.target() {
            Some((size, filter)) if self.augment.crops() => self.augment.crop(&whole, size, filter, random),
            _ => self.processor.fit(&whole),
        };
        let wrong = |problem: String| corpus::Error::Pictures { path: picture.source.path(), problem };
        let seen = seen.map_err(|problem| wrong(format!("cannot be resized: {problem}")))?;
        let seen = self.augment.flipped(seen, random);
        let tokens = self.config.tokens_of(seen.height(), seen.width()).ok_or_else(|| {
            wrong(format!("has {} × {} pixels, which are no patches", seen.width(), seen.height()))
        })?;
        let label = self.labels.number(&picture.label).expect("labels were checked");
        Ok(Example {
            picture: Some(ExamplePicture { picture: seen, tokens }),
            labels: vec![label as i32],
            ..Example::default()
        })
    }

    /// The height and width that all pictures get, if there is one.
    fn target(&self) -> Option<([usize; 2], Filter)> {
        let (size, filter) = self.processor.resize?;
        match (self.processor.crop, size) {
            (Some(crop), _) => Some((crop, filter)),
            (None, Size::Exact { height, width }) => Some(([height, width], filter)),
            _ => Some((self.config.image_size, filter)),
        }
    }

    /// [`Loader::load`] on all threads.
    fn load_all(&self, pictures: &[(&LabelledPicture, Random)]) -> Result<Vec<Example>, corpus::Error> {
        self.threads.map(pictures, |(picture, random)| self.load(picture, *random)).into_iter().collect()
    }
}

/// Pictures that are loaded when they are needed.
#[derive(Debug)]
struct Album {
    pictures: Vec<LabelledPicture>,
    loader: Loader,
    size: CorpusSize,
}

/// Pictures that are loaded at once, before it is asked whether more are wanted.
const TOGETHER: usize = 128;

impl Examples for Album {
    fn len(&self) -> usize {
        self.pictures.len()
    }

    fn size(&self) -> CorpusSize {
        self.size
    }

    fn encode(
        &self,
        numbers: &[u32],
        random: &dyn Fn(u32) -> Random,
        show: &mut dyn FnMut(usize, Example) -> bool,
    ) -> Result<(), corpus::Error> {
        let mut place = 0;
        for numbers in numbers.chunks(TOGETHER) {
            let picture = |&number: &u32| (&self.pictures[number as usize], random(number));
            let pictures: Vec<(&LabelledPicture, Random)> = numbers.iter().map(picture).collect();
            for example in self.loader.load_all(&pictures)? {
                if !show(place, example) {
                    return Ok(());
                }
                place += 1;
            }
        }
        Ok(())
    }
}
