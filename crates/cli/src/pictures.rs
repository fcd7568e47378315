//! How commands read pictures: the files that arguments or lines name.

use crate::error::Error;
use crate::texts::Reading;
use attentive_image::{Picture, Pixels};
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
    reading.each(|paths| {
        for paths in paths.chunks(encoder.batch()) {
            answer(paths, &read_all(encoder, paths)?)?;
        }
        Ok(Texts::default())
    })
}

/// Reads pictures on all cores: to decode a photo takes about as long as to compute it.
fn read_all(encoder: &PictureEncoder, paths: &[String]) -> Result<Vec<Pixels>, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = paths.chunks(paths.len().div_ceil(threads).max(1));
    let read_part =
        |paths: &[String]| paths.iter().map(|path| read(encoder, path)).collect::<Result<Vec<_>, _>>();
    let parts: Vec<Result<Vec<Pixels>, Error>> = std::thread::scope(|scope| {
        let started: Vec<_> = parts.map(|part| scope.spawn(move || read_part(part))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        started.into_iter().map(join).collect()
    });
    Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}
