//! Reads pictures, and makes augmented views of them, when a batch needs them.

use crate::corpus::labelled::Labels;
use crate::corpus::pictures::{Augment, LabelledPicture};
use crate::corpus::{self, CorpusSize, Example, ExamplePicture, Examples};
use attentive_image::{Filter, Picture, Processor, Size};
use attentive_model::families::vit::VitConfig;
use attentive_tensor::{Random, Threads};

/// A view of a picture: its augmentation and its size.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub augment: Augment,
    /// Height and width; those of the processor if none.
    pub size: Option<[usize; 2]>,
}

impl View {
    /// The picture without augmentation.
    pub const WHOLE: View = View { augment: Augment::NONE, size: None };
}

/// Makes examples of pictures.
#[derive(Debug)]
pub(super) struct Loader {
    pub config: VitConfig,
    pub processor: Processor,
    pub labels: Labels,
    /// An example has a picture for each of these views.
    pub views: Vec<View>,
    pub threads: Threads,
}

impl Loader {
    fn load(&self, picture: &LabelledPicture, random: Random) -> Result<Example, corpus::Error> {
        let whole = picture.source.read()?;
        let view = |(view, number): (&View, u64)| {
            let wrong = |problem: String| corpus::Error::Pictures { path: picture.source.path(), problem };
            self.view(&whole, view, random.split(number)).map_err(wrong)
        };
        let label = self.labels.number(&picture.label).expect("labels were checked");
        Ok(Example {
            pictures: self.views.iter().zip(0..).map(view).collect::<Result<Vec<_>, _>>()?,
            labels: vec![label as i32],
            ..Example::default()
        })
    }

    /// A view of a picture, or the problem with it.
    fn view(&self, whole: &Picture, view: &View, random: Random) -> Result<ExamplePicture, String> {
        let fitted = match (view.size, self.target()) {
            (Some(size), target) => {
                let filter = target.map_or(Filter::Bicubic, |(_, filter)| filter);
                view.augment.crop(whole, size, filter, random)
            }
            (None, Some((size, filter))) if view.augment.crops() => {
                view.augment.crop(whole, size, filter, random)
            }
            _ => self.processor.fit(whole),
        };
        let fitted = fitted.map_err(|problem| format!("cannot be resized: {problem}"))?;
        let picture = view.augment.change(fitted, self.processor.mean_colour(), random);
        let tokens = self.config.tokens_of(picture.height(), picture.width()).ok_or_else(|| {
            format!("has {} × {} pixels, which are no patches", picture.width(), picture.height())
        })?;
        Ok(ExamplePicture { picture, tokens })
    }

    /// The height and width that all pictures get, and the filter; none if pictures keep different sizes.
    fn target(&self) -> Option<([usize; 2], Filter)> {
        let (size, filter) = self.processor.resize?;
        match (self.processor.crop, size) {
            (Some(crop), _) => Some((crop, filter)),
            (None, Size::Exact { height, width }) => Some(([height, width], filter)),
            _ => Some((self.config.image_size, filter)),
        }
    }

    /// Whether the first views of all pictures have the same size.
    pub fn has_one_size(&self) -> bool {
        let is_exact = matches!(self.processor.resize, Some((Size::Exact { .. }, _)));
        let crops = self.views[0].augment.crops() && self.target().is_some();
        self.processor.crop.is_some() || is_exact || crops
    }

    /// [`Loader::load`] on all threads.
    pub fn load_all(&self, pictures: &[(&LabelledPicture, Random)]) -> Result<Vec<Example>, corpus::Error> {
        self.threads.map(pictures, |(picture, random)| self.load(picture, *random)).into_iter().collect()
    }

    /// [`Loader::load_all`] for views without random augmentation.
    pub fn load_whole<'a>(
        &self,
        pictures: impl IntoIterator<Item = &'a LabelledPicture>,
    ) -> Result<Vec<Example>, corpus::Error> {
        let numbered: Vec<_> = pictures.into_iter().map(|picture| (picture, Random::new(0))).collect();
        self.load_all(&numbered)
    }
}

/// The examples: pictures that are loaded when they are needed.
#[derive(Debug)]
pub(super) struct Album {
    pub pictures: Vec<LabelledPicture>,
    pub loader: Loader,
    pub size: CorpusSize,
}

/// How many pictures are loaded in parallel before the caller is asked whether it wants more.
pub(super) const LOAD_CHUNK: usize = 128;

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
        for numbers in numbers.chunks(LOAD_CHUNK) {
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
