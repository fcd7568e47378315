//! Where a command finds its model: in a folder, or by its name on the Hugging Face Hub.

use crate::downloads::Downloads;
use crate::error::Error;
use attentive_hub::{Hub, ModelName, Need};
use attentive_model::families::Family;
use attentive_tasks::model_name;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A model as a person names it: a folder, or `OWNER/NAME[@REVISION]`. A folder that exists wins.
#[derive(Debug, Clone)]
pub(crate) struct Model(PathBuf);

impl From<OsString> for Model {
    fn from(text: OsString) -> Model {
        Model(text.into())
    }
}

impl Model {
    /// What was written.
    pub(crate) fn written(&self) -> &Path {
        &self.0
    }

    /// The folder of the model. One that is named by its name on the Hub is downloaded, unless the cache has it.
    pub(crate) fn folder(&self) -> Result<PathBuf, Error> {
        folder(&self.0, Need::Model)
    }

    /// What the model is called: by its name on the Hub, or as its folder.
    pub(crate) fn name(&self) -> String {
        match hub_name(&self.0) {
            Some(name) => name.id().to_owned(),
            None => model_name(&self.0).unwrap_or_else(|| "model".to_owned()),
        }
    }
}

/// The folder of a model that is a folder or a name on the Hub.
pub(crate) fn folder(model: &Path, need: Need) -> Result<PathBuf, Error> {
    let Some(name) = hub_name(model) else { return Ok(model.to_owned()) };
    let watch = Downloads::new();
    Hub::from_env()?.find(&name, need, &is_readable, &watch).map_err(|error| match error {
        Error::Hub(source) if source.is_about_name() => {
            Error::NoFolder { folder: model.to_owned(), source: source.into() }
        }
        other => other,
    })
}

/// Refuses a model of a family that nothing here reads, before its weights are downloaded.
pub(crate) fn is_readable(folder: &Path) -> Result<(), Error> {
    Ok(Family::of(folder).map(|_| ())?)
}

/// The name on the Hub, if there is no such file or folder and the text can be a name.
fn hub_name(model: &Path) -> Option<ModelName> {
    if model.exists() { None } else { model.to_str()?.parse().ok() }
}
