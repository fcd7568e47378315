//! What a person said about a run, on the command line and in a file, and which of it a mistake is about.

use super::Train;
use crate::error::Error;
use attentive_train::{Draft, settings};
use std::path::PathBuf;
use toml::Table;

/// What was said, by name.
pub(super) struct Said {
    flags: Table,
    /// The file that `--config` names, or the settings of the run that goes on.
    file: Option<(PathBuf, Table)>,
}

impl Said {
    /// What the folder's run began with if it is to go on, or else the file, if there is one; and the flags.
    pub(super) fn read(train: &Train) -> Result<Said, Error> {
        let begun = settings::path(&train.out);
        let path = match &train.config {
            Some(config) => Some(config.clone()),
            None if train.resume => {
                let failed = |source| attentive_train::Error::File { path: begun.clone(), source };
                begun.try_exists().map_err(failed)?.then_some(begun)
            }
            None => None,
        };
        let file = path.map(|path| settings::read(&path).map(|table| (path, table))).transpose()?;
        let flags = train.flags.table()?;
        if train.resume && file.is_none() && !flags.contains_key("source") {
            let folder = train.out.display();
            let problem = format!(
                "there is no run in {folder}: check the name, or begin a run with --source and --target, or with --task and --data"
            );
            return Err(Error::Flag { option: "resume", problem });
        }
        Ok(Said { flags, file })
    }

    /// Settings with what was not said left open.
    pub(super) fn draft(&self) -> Result<Draft, attentive_train::Error> {
        let file = self.file.as_ref().map(|(_, table)| table.clone()).unwrap_or_default();
        Draft::merge(file, self.flags.clone())
    }

    /// A mistake under the name by which it was made: a flag, or a key of a file.
    pub(super) fn blame(&self, error: attentive_train::Error) -> Error {
        match error {
            attentive_train::Error::Setting { name, problem } => self.blame_setting(name, problem),
            attentive_train::Error::Changed { folder, name, then, now } => {
                let is_flag = self.flags.contains_key(&name);
                let name = if is_flag { format!("--{}", name.replace('_', "-")) } else { name };
                attentive_train::Error::Changed { folder, name, then, now }.into()
            }
            other => other.into(),
        }
    }

    /// The flag of a setting, by the name that belongs to the task.
    fn flag(&self, name: &'static str) -> &'static str {
        let task = self.flags.get("task").or(self.file.as_ref().and_then(|(_, table)| table.get("task")));
        let translates =
            task.and_then(toml::Value::as_str).is_none_or(|task| ["translate", "seq2seq"].contains(&task));
        match name {
            "source" if !translates => "data",
            "valid_source" if !translates => "valid_data",
            name => name,
        }
    }

    fn blame_setting(&self, name: &'static str, problem: String) -> Error {
        match &self.file {
            Some((path, table)) if table.contains_key(name) && !self.flags.contains_key(name) => {
                let (path, problem) = (path.clone(), format!("`{name}`: {problem}"));
                attentive_train::Error::SettingsFile { path, problem }.into()
            }
            _ => Error::Flag { option: self.flag(name), problem },
        }
    }
}
