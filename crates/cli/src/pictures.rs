//! How commands read pictures: the files that arguments or lines name.

use crate::error::Error;
use crate::texts::Reading;
use attentive_image::{Picture, Pixels};
use attentive_kernels::Threads;
use attentive_tasks::{PictureEncoder, Texts};
use std::path::Path;

/// Reads a picture and makes it ready for a model.
pub(crate) fn read(encoder: &PictureEncoder, path: &str) -> Result<Pixels, Error> {
    let picture = Picture::open(Path::new(path)).map_err(attentive_tasks::Error::from)?;
    encoder.read(0, &picture).map_err(|error| match error {
        // A file has a name, which says more than a number.
        attentive_tasks::Error::Picture { problem, .. } => {
            Error::Document { input: path.to_owned(), problem }
        }
        other => other.into(),
    })
}

/// Lets `answer` have all pictures, a batch at a time, in order, with the names of their files.
pub(crate) fn each(
    reading: &Reading,
    encoder: &PictureEncoder,
    mut answer: impl FnMut(&[String], &[Pixels]) -> Result<(), Error>,
) -> Result<(), Error> {
    // To decode a photo takes about as long as to compute it.
    let threads = Threads::new(reading.threads());
    reading.each(|paths| {
        for paths in paths.chunks(encoder.batch()) {
            let pictures = threads.map(paths, |path| read(encoder, path));
            answer(paths, &pictures.into_iter().collect::<Result<Vec<_>, _>>()?)?;
        }
        Ok(Texts::default())
    })
}
