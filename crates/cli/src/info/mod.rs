//! `attentive info`: what a model is, and how it came about; a file for each kind of model.

mod bert;
mod detr;
mod gpt2;
mod left;
mod t5;
mod transformer;
mod vit;

use crate::error::Error;
use crate::model::Model;
use crate::output;
use attentive_model::families::Family;
use clap::Args;

/// The options of `attentive info`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Info {
    /// Model folder, or a name on the Hugging Face Hub
    #[arg(value_name = "DIR|NAME", required_unless_present = "model")]
    folder: Option<Model>,
    /// Model folder or name, as the other commands take it
    #[arg(long, value_name = "DIR|NAME", conflicts_with = "folder")]
    model: Option<Model>,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive info en-de
  attentive info --model en-de
  attentive info en-de --json";

pub(crate) fn run(info: &Info) -> Result<(), Error> {
    // The parser has made sure that there is one.
    let model = info.folder.iter().chain(&info.model).next();
    let folder = model.map(Model::folder).transpose()?.unwrap_or_default();
    match Family::of(&folder)? {
        Family::Transformer => {
            let report = transformer::Report::read(&folder)?;
            if info.json { output::json(&report) } else { output::table(&report.rows(), 2) }
        }
        Family::Bert => {
            let report = bert::Report::read(&folder)?;
            if info.json { output::json(&report) } else { output::table(&report.rows(), 2) }
        }
        Family::Gpt2 => {
            let report = gpt2::Report::read(&folder)?;
            if info.json { output::json(&report) } else { output::table(&report.rows(), 2) }
        }
        Family::Detr => {
            let report = detr::Report::read(&folder)?;
            if info.json { output::json(&report) } else { output::table(&report.rows(), 2) }
        }
        Family::T5 => {
            let report = t5::Report::read(&folder)?;
            if info.json { output::json(&report) } else { output::table(&report.rows(), 2) }
        }
        Family::Vit => {
            let report = vit::Report::read(&folder)?;
            if info.json { output::json(&report) } else { output::table(&report.rows(), 2) }
        }
    }
}
