//! Tasks of ViT: classes of pictures, and DINO, which needs no labels.

mod classes;
mod dino;
mod loader;
mod neighbours;

use classes::Held;
pub use classes::LearningVit;
pub use dino::LearningDino;

use super::{Start, Task, dropout};
use crate::Error;
use crate::corpus::labelled::Labels;
use crate::corpus::pictures::{LabelledPicture, LabelledPictures, read_pictures};
use crate::corpus::{self, CorpusSize, Examples, held_out};
use crate::learner::seed_of_weights;
use crate::settings::{Draft, Facts, Settings, TaskKind, USUAL_SIDE};
use attentive_image::{Pixels, Processor};
use attentive_model::Builder;
use attentive_model::checkpoint::Staged;
use attentive_model::families::vit::{self, Batch, Dino, Picture, Vit, VitConfig};
use attentive_tensor::Backend;
use loader::{Album, Loader, View};
use neighbours::Neighbours;
use std::path::Path;
use std::sync::Arc;

/// The file that describes how pictures are prepared.
const PROCESSOR: &str = "preprocessor_config.json";

/// Pictures as a model reads them.
fn as_batch(backend: &dyn Backend, config: &VitConfig, pixels: &[Pixels]) -> Batch {
    let pictures: Vec<Picture> = pixels.iter().map(as_planes).collect();
    Batch::new(backend, config, &pictures)
}

fn as_planes(Pixels { height, width, numbers }: &Pixels) -> Picture<'_> {
    Picture { height: *height, width: *width, numbers }
}

/// Pictures to learn from.
pub(super) struct Pictures {
    train: LabelledPictures,
    held: Option<Vec<LabelledPicture>>,
    /// The configuration of the model that training starts from.
    origin: Option<VitConfig>,
    processor: Option<Processor>,
}

impl Pictures {
    /// Finds the pictures of the settings. A model that has labels keeps them if they include those of the pictures.
    pub(super) fn read(settings: &Settings, origin: Option<&Path>) -> Result<Pictures, Error> {
        let mut train = read_pictures(&settings.source, None)?;
        if settings.task == TaskKind::ClassifyImages && train.labels.len() < 2 {
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
        self.processor.as_ref().expect("`make_tokens` or `load_tokens` has run")
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

    /// A loader of examples with these views of each picture.
    fn loader(&self, settings: &Settings, views: Vec<View>) -> Result<Loader, Error> {
        Ok(Loader {
            config: self.config(settings)?,
            processor: self.processor().clone(),
            labels: self.train.labels.clone(),
            views,
            threads: settings.pool(),
        })
    }

    /// The views of each picture in training.
    fn views(&self, settings: &Settings) -> Result<Vec<View>, Error> {
        if settings.task == TaskKind::ClassifyImages {
            return Ok(vec![View { augment: settings.augment(), size: None }]);
        }
        let config = self.config(settings)?;
        // DINO has local views of 96 and global ones of 224 pixels. The same ratio, in whole patches.
        let usual = |i: usize| {
            let patches = (config.image_size[i] as f64 * 96.0 / 224.0 / config.patch_size[i] as f64).round();
            config.patch_size[i] * (patches as usize).max(1)
        };
        let local = settings.local_crops_size.map_or([usual(0), usual(1)], |side| [side; 2]);
        if config.tokens_of(local[0], local[1]).is_none() {
            let problem = format!("{} pixels are less than a patch: use a larger number", local[0]);
            return Err(Error::setting("local_crops_size", problem));
        }
        let [first, second, others] = settings.augment_views();
        let global = [first, second].map(|augment| View { augment, size: Some(config.image_size) });
        let local = View { augment: others, size: Some(local) };
        Ok(global.into_iter().chain(std::iter::repeat_n(local, settings.local_crops_number)).collect())
    }

    fn classes(
        &self,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<LearningVit, Error> {
        let model = self.model(backend, settings, start)?;
        let held = match (&self.held, start) {
            (Some(pictures), Start::First(_) | Start::Again(_)) => {
                Some(Held { pictures: pictures.clone(), loader: self.loader(settings, vec![View::WHOLE])? })
            }
            _ => None,
        };
        let learning = LearningVit::new(model, self.processor().clone()).with_mixup(settings.mixup);
        Ok(learning.judged_by(held))
    }

    fn dino(
        &self,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<LearningDino, Error> {
        let config = match start {
            Start::Again(folder) => VitConfig::load(folder)?,
            Start::First(_) | Start::Trial => self.config(settings)?,
        };
        let (seed, sizes) = (seed_of_weights(settings), settings.projection(config.d_model));
        let network = || {
            let vit = match (&settings.from, start) {
                (Some(from), Start::First(_) | Start::Trial) => Vit::load_backbone(backend, from, &config)?,
                _ => Vit::backbone(&Builder::random(backend, seed), &config)?,
            };
            Dino::new(vit, &Builder::random(backend, seed.wrapping_add(1)), &sizes)
        };
        let networks = [network()?, network()?];
        if let Start::First(folder) = start {
            config.stage(folder, vit::Task::Hidden)?.commit()?;
        }
        let neighbours = match (&self.held, start) {
            (Some(held), Start::First(_) | Start::Again(_)) => {
                let loader = self.loader(settings, vec![View::WHOLE])?;
                Some(Neighbours::new(loader, &self.train.pictures, held))
            }
            _ => None,
        };
        let learning = LearningDino::new(&**backend, networks, self.processor().clone(), settings);
        Ok(learning.judged_by(neighbours))
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
        let loader = self.loader(settings, self.views(settings)?)?;
        if settings.mixup > 0.0 && !loader.has_one_size() {
            let problem = "the model reads pictures of any size, which cannot be mixed: remove this setting, or set scale";
            return Err(Error::setting("mixup", problem));
        }
        Ok((Arc::new(Album { pictures, loader, size }), Vec::new()))
    }

    fn task(
        &self,
        backend: &Arc<dyn Backend>,
        settings: &Settings,
        start: Start<'_>,
    ) -> Result<Box<dyn Task>, Error> {
        Ok(match settings.task {
            TaskKind::Dino => Box::new(self.dino(backend, settings, start)?),
            _ => Box::new(self.classes(backend, settings, start)?),
        })
    }
}
