//! Pictures on their way to a model, and the numbers that it makes of them.

use crate::app::App;
use crate::aside::aside;
use crate::given::{self, Given};
use crate::job::{Encode, Job};
use crate::model::{PictureModel, Ready};
use crate::refusal::Refusal;
use crate::texts::TextsOrTokens;
use attentive_image::Picture;
use attentive_tasks::PictureKind;
use axum::body::Bytes;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// A model of pictures that a request is for.
#[derive(Debug, Clone)]
pub(crate) struct AskedToSee {
    /// Its place among all models.
    pub place: usize,
    pub model: Arc<PictureModel>,
    /// What it is to do.
    pub kind: PictureKind,
}

/// Pictures that were read, and what a model made of them.
#[derive(Debug)]
pub(crate) struct Seen {
    pub pictures: Arc<[Ready]>,
    /// The numbers of each picture.
    pub numbers: Vec<Vec<f32>>,
}

/// What helps against an answer that takes too long.
const ADVICE: &str = "send fewer pictures";

/// The pictures of a request: the files of a form, or the texts of the field `input` of JSON.
pub(crate) fn pictures_of(input: Option<TextsOrTokens>, files: Vec<Bytes>) -> Result<Vec<Given>, Refusal> {
    match (input, files.is_empty()) {
        (None, false) => Ok(files.into_iter().map(Given::File).collect()),
        (None, true) => Err(Refusal::field(
            "input",
            "is missing: send pictures in base64, or a form with files in `image`",
        )),
        (Some(_), false) => Err(Refusal::field("input", "cannot be used together with files")),
        (Some(TextsOrTokens::Text(text)), true) => Ok(vec![Given::Text(text)]),
        (Some(TextsOrTokens::Texts(texts)), true) => Ok(texts.into_iter().map(Given::Text).collect()),
        (Some(TextsOrTokens::Tokens(_) | TextsOrTokens::Lists(_)), true) => {
            Err(Refusal::field("input", "has tokens, but the model reads pictures: send them in base64"))
        }
    }
}

/// Whether a request brings pictures that are known as such before a model is chosen.
pub(crate) fn has_pictures(input: Option<&TextsOrTokens>, files: &[Bytes]) -> bool {
    let is_picture = |text: &String| given::is_picture(text);
    !files.is_empty()
        || match input {
            Some(TextsOrTokens::Text(text)) => is_picture(text),
            Some(TextsOrTokens::Texts(texts)) => texts.iter().any(is_picture),
            Some(TextsOrTokens::Tokens(_) | TextsOrTokens::Lists(_)) | None => false,
        }
}

impl App {
    /// Reads pictures and lets a model make numbers of them. `field` is what they are called in the request.
    pub async fn see(
        &self,
        asked: &AskedToSee,
        field: &'static str,
        given: Vec<Given>,
    ) -> Result<Seen, Refusal> {
        let most = self.settings.limits.pictures;
        if given.is_empty() {
            return Err(Refusal::field(field, "there is no picture"));
        }
        if given.len() > most {
            let problem = format!(
                "there are {} pictures, but the maximum is {most}; --max-pictures sets it",
                given.len()
            );
            return Err(Refusal::too_large(field, problem));
        }
        // Places are taken first: what does not fit need not be read.
        let places = self.queue.enter(field, given.len())?;
        let until = self.until();
        let mut pictures = Vec::with_capacity(given.len());
        for (number, given) in given.into_iter().enumerate() {
            let read = move |model: &PictureModel, picture: &Picture| model.read(picture);
            pictures.push(self.read_picture(&asked.model, (field, number), given, until, read).await?);
        }
        let pictures: Arc<[Ready]> = pictures.into();
        let (reply, receiver) = oneshot::channel();
        let inputs = Arc::clone(&pictures);
        self.queue.push(Job::See(Encode { model: asked.place, kind: asked.kind, inputs, reply, places }))?;
        let numbers = self.answer(receiver, until, ADVICE).await?;
        let tokens = pictures.iter().map(|picture| asked.model.tokens(picture)).sum();
        self.metrics.encoded(pictures.len(), tokens);
        Ok(Seen { pictures, numbers })
    }

    /// Lets `read` make something of a picture for a model, away from the threads that answer connections, and of only as many
    /// pictures at once as there are processors. `place` is the field that the picture is in, and its number.
    pub async fn read_picture<T: Send + 'static>(
        &self,
        model: &Arc<PictureModel>,
        place: (&'static str, usize),
        given: Given,
        until: Instant,
        read: impl FnOnce(&PictureModel, &Picture) -> Result<T, attentive_image::Problem> + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = timeout_at(until, self.place_to_read())
            .await
            .map_err(|_| Refusal::time("the pictures waited too long"))??;
        let model = Arc::clone(model);
        aside(move || {
            let _permit = permit;
            let (field, number) = place;
            let told = |problem| Refusal::field(field, format!("picture {} {problem}", number + 1));
            let bytes = given.bytes().map_err(told)?;
            let picture = Picture::decode(&bytes).and_then(|picture| read(&model, &picture));
            picture.map_err(|problem| Refusal::of_picture(field, number, &problem))
        })
        .await
    }
}
