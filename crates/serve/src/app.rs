//! What all handlers share.

use crate::auth::Keys;
use crate::chosen::Chosen;
use crate::metrics::Metrics;
use crate::model::Model;
use crate::queue::Queue;
use crate::refusal::Refusal;
use crate::settings::Settings;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// The server, for its handlers.
#[derive(Debug)]
pub(crate) struct App {
    pub settings: Settings,
    pub keys: Keys,
    pub queue: Queue,
    pub metrics: Metrics,
    models: OnceLock<Vec<Arc<Model>>>,
    leaving: AtomicBool,
    /// When it began, in seconds since 1970.
    pub since: u64,
    answers: AtomicU64,
}

impl App {
    pub fn new(settings: Settings, queue: Queue) -> App {
        App {
            keys: Keys::new(settings.keys.clone()),
            settings,
            queue,
            metrics: Metrics::default(),
            models: OnceLock::new(),
            leaving: AtomicBool::new(false),
            since: now(),
            answers: AtomicU64::new(0),
        }
    }

    /// Tells that the models are there.
    pub fn set_models(&self, models: Vec<Arc<Model>>) {
        let _ = self.models.set(models);
    }

    /// Tells that nothing new is to be begun.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Whether the server is on its way out.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// The models, if they have been read.
    pub fn models(&self) -> Result<&[Arc<Model>], Refusal> {
        self.models.get().map(Vec::as_slice).ok_or_else(|| Refusal::busy("the models are being loaded", 1))
    }

    /// The model of a name, `NAME` or `NAME:TARGET`; the first if none is given.
    pub fn model(&self, name: Option<&str>, target: Option<&str>) -> Result<Chosen, Refusal> {
        let models = self.models()?;
        let (name, named_target) = match name {
            None => (None, None),
            // A name may have a colon of its own.
            Some(name) if models.iter().any(|model| model.name == name) => (Some(name), None),
            Some(name) => match name.rsplit_once(':') {
                Some((name, target)) => (Some(name), Some(target)),
                None => (Some(name), None),
            },
        };
        let place = name.map_or(Some(0), |name| models.iter().position(|model| model.name == name));
        let names = || models.iter().map(|model| format!("`{}`", model.name)).collect::<Vec<_>>().join(", ");
        let place = place.ok_or_else(|| {
            let asked = name.unwrap_or_default();
            Refusal::missing("model", format!("there is no model {asked:?}; the models are {}", names()))
        })?;
        self.chosen(place, target.or(named_target))
    }

    /// The model of a name, if it translates from one language into another; the first that does if no name is given.
    pub fn model_for(
        &self,
        name: Option<&str>,
        source: Option<&str>,
        target: &str,
    ) -> Result<Chosen, Refusal> {
        if name.is_some() {
            let chosen = self.model(name, Some(target))?;
            return match &chosen.model.languages.source {
                Some(own) if source.is_some_and(|asked| !own.is(asked)) => {
                    let problem = format!("`{}` translates only from `{}`", chosen.model.name, own.code);
                    Err(Refusal::field("source", problem))
                }
                _ => Ok(chosen),
            };
        }
        let models = self.models()?;
        match models.iter().position(|model| model.languages.translate(source, Some(target))) {
            Some(place) => self.chosen(place, Some(target)),
            None => {
                let known = models.iter().any(|model| model.languages.translate(None, Some(target)));
                let (field, asked) =
                    if known { ("source", source.unwrap_or_default()) } else { ("target", target) };
                Err(Refusal::field(field, format!("{asked:?} is not supported; see /languages")))
            }
        }
    }

    fn chosen(&self, place: usize, target: Option<&str>) -> Result<Chosen, Refusal> {
        let model = Arc::clone(&self.models()?[place]);
        let languages = &model.languages;
        let target = match target {
            Some(asked) if !languages.targets.is_empty() => {
                let problem = || {
                    Refusal::field(
                        "target",
                        format!("`{}` translates only into {}", model.name, languages.codes()),
                    )
                };
                Some(languages.target(asked).ok_or_else(problem)?.clone())
            }
            _ => languages.targets.first().cloned(),
        };
        Ok(Chosen { place, model, target })
    }

    /// A name for an answer that no other answer has.
    pub fn answer_id(&self, kind: &str) -> String {
        format!("{kind}-{:x}-{:x}", self.since, self.answers.fetch_add(1, Ordering::Relaxed))
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
