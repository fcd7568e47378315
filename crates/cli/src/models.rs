//! `attentive models`: what the cache has, and how to free it.

use crate::error::Error;
use crate::{output, words};
use attentive_hub::{Cached, Hub, ModelName, Snapshot};
use attentive_model::families::Family;
use attentive_tasks::{Kind, task_of_pictures};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::io::{Write, stderr};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Models {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Remove models from the cache
    Rm {
        /// Model to remove; with a revision, only that commit and what no other commit needs
        #[arg(value_name = "NAME[@REVISION]", required = true)]
        names: Vec<ModelName>,
    },
}

const EXAMPLES: &str = "\
Examples:
  attentive models                                  list the models in the cache
  attentive models rm Helsinki-NLP/opus-mt-en-de    remove one

A model that attentive cannot read is listed without tasks. The size is that of the files of a revision; revisions share files.";

/// A line of the list.
#[derive(Serialize)]
struct Row {
    name: String,
    /// The model type of `config.json`, if there is one.
    family: Option<String>,
    /// The commands that the model is for.
    tasks: Vec<&'static str>,
    revisions: Vec<String>,
    commit: Option<String>,
    bytes: u64,
    /// When one of its files was last read, in seconds since 1970.
    last_use: Option<u64>,
    #[serde(skip)]
    used: Option<SystemTime>,
}

pub(crate) fn run(models: &Models) -> Result<(), Error> {
    let hub = Hub::from_env()?;
    match &models.action {
        Some(Action::Rm { names }) => remove(&hub, names),
        None => list(&hub, models.json),
    }
}

fn remove(hub: &Hub, names: &[ModelName]) -> Result<(), Error> {
    for name in names {
        let freed = hub.remove(name)?;
        // The model is removed even if stderr is closed.
        let _ = writeln!(stderr(), "attentive: removed {name}: {} freed", words::bytes(freed.bytes));
    }
    Ok(())
}

fn list(hub: &Hub, json: bool) -> Result<(), Error> {
    let rows: Vec<Row> = hub.models()?.iter().flat_map(rows).collect();
    if json {
        return output::json(&rows);
    }
    if rows.is_empty() {
        let _ = writeln!(stderr(), "attentive: the cache has no models; `attentive pull NAME` downloads one");
        return Ok(());
    }
    let head = ["name", "family", "tasks", "revision", "size", "last use"].map(str::to_owned);
    let table: Vec<[String; 6]> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    output::table(&table, 4)
}

/// A row for each commit; one for a model of which no commit is there, only parts of files.
fn rows(model: &Cached) -> Vec<Row> {
    if model.snapshots.is_empty() {
        let (name, bytes) = (model.name.clone(), model.bytes);
        let (tasks, revisions) = (Vec::new(), Vec::new());
        return vec![Row {
            name,
            family: None,
            tasks,
            revisions,
            commit: None,
            bytes,
            last_use: None,
            used: None,
        }];
    }
    model.snapshots.iter().map(|snapshot| Row::new(&model.name, snapshot)).collect()
}

impl Row {
    fn new(name: &str, snapshot: &Snapshot) -> Row {
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs());
        Row {
            name: name.to_owned(),
            family: model_type(&snapshot.folder),
            tasks: tasks(&snapshot.folder),
            revisions: snapshot.revisions.clone(),
            commit: Some(snapshot.commit.clone()),
            bytes: snapshot.bytes,
            last_use: snapshot.used.and_then(seconds),
            used: snapshot.used,
        }
    }

    fn cells(&self) -> [String; 6] {
        let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        let commit = || self.commit.as_ref().map(|commit| commit[..8].to_owned()).unwrap_or_default();
        let revision = if self.revisions.is_empty() { commit() } else { self.revisions.join(", ") };
        [
            self.name.clone(),
            or_dash(self.family.clone().unwrap_or_default()),
            or_dash(self.tasks.join(", ")),
            or_dash(revision),
            words::bytes(self.bytes),
            or_dash(self.used.map(ago).unwrap_or_default()),
        ]
    }
}

/// The model type that a folder names, also one that nothing here reads.
fn model_type(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("config.json")).ok()?;
    let config: serde_json::Value = serde_json::from_str(&text).ok()?;
    let name = config["model_type"].as_str()?;
    Some(name.chars().filter(|c| !c.is_control()).take(40).collect())
}

/// The commands that the model of a folder is for; none if it cannot be read.
fn tasks(folder: &Path) -> Vec<&'static str> {
    match (Kind::of(folder), Family::of(folder)) {
        (Ok(Some(Kind::Embed)), _) => vec!["embed"],
        (Ok(Some(Kind::FillMask)), _) => vec!["fill-mask"],
        (Ok(Some(Kind::Classify)), _) => vec!["classify"],
        (Ok(Some(Kind::Rerank)), _) => vec!["rerank"],
        (Ok(Some(Kind::Tag)), _) => vec!["tag"],
        (Ok(None), Ok(Family::Transformer)) => vec!["translate"],
        (Ok(Some(Kind::Answer)), _) => vec!["answer"],
        (Ok(None), Ok(Family::Gpt2)) => vec!["generate", "perplexity"],
        (Ok(None), Ok(Family::T5)) => vec!["translate", "generate"],
        (Ok(None), Ok(Family::Detr)) => vec!["detect"],
        (Ok(None), Ok(Family::Vit)) => match task_of_pictures(folder) {
            Ok(Some(task)) if task.has_labels() => vec!["classify", "embed"],
            Ok(Some(_)) => vec!["embed"],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// How long ago something was.
fn ago(time: SystemTime) -> String {
    const DAY: u64 = 24 * 3600;
    let age = SystemTime::now().duration_since(time).unwrap_or(Duration::ZERO).as_secs();
    match age {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", age / 60),
        3600..DAY => format!("{} h ago", age / 3600),
        _ => format!("{} ago", words::count((age / DAY) as usize, "day")),
    }
}
