//! `attentive pull`: what the Hub has of a model, into the cache.

use crate::downloads::Downloads;
use crate::error::Error;
use crate::model::is_readable;
use crate::{output, words};
use attentive_hub::{Hub, ModelName, Need};
use clap::Args;
use serde::Serialize;
use std::io::{Write, stderr};
use std::path::Path;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Pull {
    /// Model on the Hub; REVISION is a branch, a tag or a commit [default: main]
    #[arg(value_name = "NAME[@REVISION]", required = true)]
    names: Vec<ModelName>,
    /// Print one line of JSON per model instead of its folder
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive pull Helsinki-NLP/opus-mt-en-de
  attentive pull sentence-transformers/all-MiniLM-L6-v2@main --json

Prints the folder of the model. Only files that a model is read from are downloaded, several at a time. Each is checked \
against the hash that the Hub names. A download that breaks off goes on where it ended, when the command is run again. \
Other commands take a model from the cache as it is; `pull` looks whether the Hub has a newer one.

The cache is the one of Python's huggingface_hub, and so are the environment variables: HF_HOME, HF_HUB_CACHE, HF_TOKEN, \
HF_ENDPOINT, HF_HUB_OFFLINE, HF_HUB_ETAG_TIMEOUT, HF_HUB_DOWNLOAD_TIMEOUT, HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE.";

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    revision: &'a str,
    commit: &'a str,
    folder: &'a Path,
    files: usize,
    downloaded_bytes: u64,
}

pub(crate) fn run(pull: &Pull) -> Result<(), Error> {
    let hub = Hub::from_env()?;
    for name in &pull.names {
        let pulled = hub.pull(name, Need::Model, &is_readable, &Downloads::new())?;
        if pull.json {
            output::json(&Report {
                name: name.id(),
                revision: name.revision(),
                commit: &pulled.commit,
                folder: &pulled.folder,
                files: pulled.files,
                downloaded_bytes: pulled.bytes,
            })?;
            continue;
        }
        let done = match pulled.bytes {
            0 => "nothing to download".to_owned(),
            bytes => format!("{} downloaded", words::bytes(bytes)),
        };
        // The model is downloaded even if stderr is closed.
        let _ = writeln!(stderr(), "attentive: {name}: {}, {done}", words::count(pulled.files, "file"));
        output::write(&format!("{}\n", pulled.folder.display()))?;
    }
    Ok(())
}
