//! Which model a request is for.

use crate::app::App;
use crate::chosen::Chosen;
use crate::encode::Asked;
use crate::languages::Choice;
use crate::model::{LanguageModel, Model, PictureModel, TextModel, TranslationModel};
use crate::refusal::Refusal;
use crate::see::AskedToSee;
use attentive_tasks::{Kind, PictureKind};
use std::sync::Arc;

/// What completes a prompt: by continuing or answering it, or by translating it.
#[derive(Debug)]
pub(crate) enum Completer {
    /// A model that continues or answers it, and its place among all models.
    Language(usize, Arc<LanguageModel>),
    Translation(Chosen),
}

impl App {
    /// The model of a name, if it completes prompts; the first that does if no name is given.
    pub fn completer(&self, name: Option<&str>) -> Result<Completer, Refusal> {
        let models = self.models()?;
        // Of a translation model, the name may say the language as well.
        if name.is_none_or(|name| models.iter().any(|model| model.name() == name)) {
            let own = |model: &Model| {
                let translation = model.translation();
                let language = model.language().or(translation.and_then(|model| model.prompts.as_ref()));
                (language.is_some() || translation.is_some()).then(|| language.cloned())
            };
            if let (place, Some(model)) = find(models, name, "completes prompts", own)? {
                return Ok(Completer::Language(place, model));
            }
        }
        self.model(name, None, None).map(Completer::Translation)
    }

    /// The translation model of a name, `NAME` or `NAME:TARGET`, for texts in a language, if it is said; the first if none is given.
    pub fn model(
        &self,
        name: Option<&str>,
        source: Option<&str>,
        target: Option<&str>,
    ) -> Result<Chosen, Refusal> {
        let models = self.models()?;
        let (name, named_target) = match name {
            None => (None, None),
            // A name may have a colon of its own.
            Some(name) if models.iter().any(|model| model.name() == name) => (Some(name), None),
            Some(name) => match name.rsplit_once(':') {
                Some((name, target)) => (Some(name), Some(target)),
                None => (Some(name), None),
            },
        };
        let (place, model) = find(models, name, "translates", Model::translation)?;
        chosen(place, model, source, target.or(named_target))
    }

    /// The model of a name, if it translates from one language into another; the first that does if no name is given.
    pub fn model_for(
        &self,
        name: Option<&str>,
        source: Option<&str>,
        target: &str,
    ) -> Result<Chosen, Refusal> {
        if name.is_some() {
            return self.model(name, source, Some(target));
        }
        let models = self.models()?;
        // Without any there is a better reason than a language.
        find(models, None, "translates", Model::translation)?;
        let translate = |model: &Model, source: Option<&str>| {
            model.translation().is_some_and(|model| model.languages.translate(source, Some(target)))
        };
        let place = models.iter().position(|model| translate(model, source));
        match place.and_then(|place| Some((place, models[place].translation()?))) {
            Some((place, model)) => chosen(place, model, source, Some(target)),
            None => {
                let known = models.iter().any(|model| translate(model, None));
                let (field, asked) =
                    if known { ("source", source.unwrap_or_default()) } else { ("target", target) };
                Err(Refusal::field(field, format!("{asked:?} is not supported; see /languages")))
            }
        }
    }

    /// The model of a name, if it summarizes texts; the first that does if no name is given.
    pub fn summarizer(&self, name: Option<&str>) -> Result<(usize, Arc<LanguageModel>), Refusal> {
        let own = |model: &Model| model.translation()?.prompts.clone();
        find(self.models()?, name, "summarizes texts", own)
    }

    /// The language model of a name; the first if none is given.
    pub fn language(&self, name: Option<&str>) -> Result<(usize, Arc<LanguageModel>), Refusal> {
        find(self.models()?, name, "continues prompts", |model| model.language().cloned())
    }

    /// The model of a name, if it is one that does not translate; the first of all if no name is given and none translates.
    pub fn text_model(&self, name: Option<&str>) -> Result<Option<(usize, TextModel)>, Refusal> {
        let models = self.models()?;
        let place = match name {
            Some(name) => models.iter().position(|model| model.name() == name),
            None if models.iter().any(|model| model.translation().is_some()) => None,
            None => models.iter().position(|model| model.picture().is_none()),
        };
        let text_model = |place: usize| match models.get(place)? {
            Model::Translation(_) => None,
            Model::Language(model) => Some((place, TextModel::Language(Arc::clone(model)))),
            Model::Encoder(model) => Some((place, TextModel::Encoder(Arc::clone(model)))),
            Model::Picture(_) => None,
        };
        Ok(place.and_then(text_model))
    }

    /// The encoder of a name, if it is of this kind; the first of this kind if no name is given.
    pub fn encoder(&self, name: Option<&str>, kind: Kind) -> Result<Asked, Refusal> {
        let own = |model: &Model| model.encoder().filter(|model| model.can(kind)).cloned();
        let (place, model) = find(self.models()?, name, does(kind), own)?;
        Ok(Asked { place, model, kind })
    }

    /// The model of pictures of a name, if it does this; the first that does if no name is given.
    pub fn picture_model(&self, name: Option<&str>, kind: PictureKind) -> Result<AskedToSee, Refusal> {
        let own = |model: &Model| model.picture().filter(|model| model.can(kind)).cloned();
        let (place, model) = find(self.models()?, name, sees(kind), own)?;
        Ok(AskedToSee { place, model, kind })
    }

    /// The model of pictures of a name, if it has attention between patches; the first that has if no name is given.
    pub fn patch_model(&self, name: Option<&str>) -> Result<(usize, Arc<PictureModel>), Refusal> {
        let own = |model: &Model| model.picture().filter(|model| model.encoder().is_some()).cloned();
        find(self.models()?, name, "shows its attention in pictures", own)
    }

    /// Whether a request that does not tell texts from pictures is for a model of pictures: the one that it names, or any if none
    /// reads texts and does what is asked.
    pub fn is_for_pictures(
        &self,
        name: Option<&str>,
        reads_texts: impl Fn(&Model) -> bool,
    ) -> Result<bool, Refusal> {
        let models = self.models()?;
        Ok(match name {
            Some(name) => models.iter().any(|model| model.name() == name && model.picture().is_some()),
            None => self.sees()? && !models.iter().any(reads_texts),
        })
    }
}

/// What encoders do, in a few words.
fn does(kind: Kind) -> &'static str {
    match kind {
        Kind::Embed => "makes embeddings",
        Kind::FillMask => "fills masks",
        Kind::Classify => "classifies texts",
        Kind::Rerank => "ranks texts for a query",
        Kind::Tag => "tags words",
        Kind::Answer => "answers questions",
    }
}

/// What models of pictures do, in a few words.
fn sees(kind: PictureKind) -> &'static str {
    match kind {
        PictureKind::Embed => "makes embeddings of pictures",
        PictureKind::Classify => "classifies pictures",
        PictureKind::Detect => "finds things in pictures",
    }
}

/// The model of a name if it can do something, or the first that can: its place among all, and what `own` makes of it. `does` says in a
/// few words what it has to do.
fn find<'a, T>(
    models: &'a [Model],
    name: Option<&str>,
    does: &str,
    own: impl Fn(&'a Model) -> Option<T>,
) -> Result<(usize, T), Refusal> {
    let Some(name) = name else {
        let mut able = models.iter().enumerate().filter_map(|(place, model)| Some((place, own(model)?)));
        return able.next().ok_or_else(|| {
            let others: Vec<String> = models.iter().map(where_to_ask).collect();
            Refusal::unable(format!("no model of this server {does}: {}", others.join("; ")))
        });
    };
    let place = models.iter().position(|model| model.name() == name).ok_or_else(|| {
        let names: Vec<String> = models.iter().map(|model| format!("`{}`", model.name())).collect();
        Refusal::missing("model", format!("there is no model {name:?}; the models are {}", names.join(", ")))
    })?;
    let able = own(&models[place]).map(|own| (place, own));
    able.ok_or_else(|| Refusal::unable(format!("not a model that {does}: {}", where_to_ask(&models[place]))))
}

/// What a model does, and at which addresses.
fn where_to_ask(model: &Model) -> String {
    let does = match model {
        Model::Translation(model) if model.prompts.is_some() => "answers prompts",
        Model::Translation(_) => "translates",
        Model::Language(_) => "continues prompts",
        Model::Encoder(model) => does(model.kind()),
        Model::Picture(model) => sees(model.kind()),
    };
    format!("`{}` {does} at {}", model.name(), model.routes().join(", "))
}

/// A model for languages that it knows.
fn chosen(
    place: usize,
    model: &Arc<TranslationModel>,
    source: Option<&str>,
    target: Option<&str>,
) -> Result<Chosen, Refusal> {
    let (model, languages) = (Arc::clone(model), &model.languages);
    let only = |how: &str, codes: String| format!("`{}` translates only {how} {codes}", model.name);
    let source = match source {
        Some(asked) if !languages.sources.is_empty() => {
            let problem = || Refusal::field("source", only("from", languages.source_codes()));
            Some(languages.source(asked).ok_or_else(problem)?)
        }
        _ => None,
    };
    let target = match target {
        Some(asked) if !languages.targets.is_empty() => {
            let problem = || Refusal::field("target", only("into", languages.target_codes()));
            Some(languages.target(asked).ok_or_else(problem)?)
        }
        _ => model.usual_target(),
    };
    if target.is_none() && languages.choice == Choice::Spoken {
        let (name, codes) = (&model.name, languages.target_codes());
        let problem = format!(
            "is missing, here or in the name of the model as in `{name}:fr`: `{name}` translates into {codes}"
        );
        return Err(Refusal::field("target", problem));
    }
    if let Some((source, target)) =
        source.zip(target).filter(|(source, target)| !languages.has_pair(source, target))
    {
        let problem = format!(
            "`{}` does not translate from `{}` into `{}`; see /languages",
            model.name, source.code, target.code
        );
        return Err(Refusal::field("target", problem));
    }
    let (source, target) = (source.cloned(), target.cloned());
    Ok(Chosen { place, model, source, target })
}
