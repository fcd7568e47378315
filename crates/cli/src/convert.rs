//! `attentive convert`: a model in another precision, or in the layout that other programs read.

use crate::error::Error;
use crate::output;
use attentive_model::checkpoint::StoredType;
use attentive_model::families::transformer::{Conversion, Converted, Layout, convert};
use attentive_tensor::{Cpu, CpuBackend, Isa, Threads};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::io::{Write, stderr};
use std::path::PathBuf;

/// The options of `attentive convert`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Convert {
    /// The folder of the model: config.json with model.safetensors or pytorch_model.bin
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// The folder that the new model is written to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What matrices are stored in
    #[arg(long, value_name = "PRECISION", value_enum, default_value = "f32")]
    precision: PrecisionName,
    /// The order of the model's width, if another than it has
    #[arg(long, value_name = "LAYOUT", value_enum)]
    layout: Option<LayoutName>,
    /// Print one line of JSON on stdout instead of a sentence on stderr
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive convert --model opus-mt-en-de --out small --precision int8    a quarter of the size
  attentive convert --model opus-mt-en-de --out half --precision bf16     half the size
  attentive convert --model old --out new                                 pytorch_model.bin to safetensors
  attentive convert --model mine --out theirs --layout marian             for transformers and CTranslate2

Tokenizer and generation settings are copied. In int8 every row of a matrix has a scale of its own, as with \
`--precision int8` of the whole model, but for the table of the embeddings, of which lookups too have int8 then; such a folder is computed with \
in int8 unless --precision says otherwise. Only attentive reads such a folder. bf16 and f32 are read by others, \
too, if the layout is Marian's.";

#[derive(Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum PrecisionName {
    /// 32-bit floating point
    F32,
    /// Its upper half
    Bf16,
    /// 8-bit integers with a scale for each row
    Int8,
}

#[derive(Clone, Copy, ValueEnum)]
enum LayoutName {
    /// All sines of the positions before all cosines, where the paper has them in turns
    Marian,
}

pub(crate) fn run(command: &Convert) -> Result<(), Error> {
    output::must_differ(["--model", "--out"], [Some(&command.model), Some(&command.out)])?;
    let conversion = Conversion {
        stored: match command.precision {
            PrecisionName::F32 => StoredType::F32,
            PrecisionName::Bf16 => StoredType::Bf16,
            PrecisionName::Int8 => StoredType::Int8,
        },
        layout: command.layout.map_or(Layout::AsItIs, |LayoutName::Marian| Layout::Marian),
    };
    // Nothing is computed, but the parts of a model ask for a backend.
    let backend = CpuBackend::new(Cpu { isa: Isa::from_env()?, threads: Threads::new(1) }).shared();
    let converted = convert(&backend, &command.model, &command.out, &conversion)?;
    report(command, &converted)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    precision: PrecisionName,
    tensors: usize,
    bytes: u64,
    bytes_before: u64,
}

fn report(command: &Convert, converted: &Converted) -> Result<(), Error> {
    let &Converted { tensors, bytes, bytes_before } = converted;
    if command.json {
        return output::json(&Report { precision: command.precision, tensors, bytes, bytes_before });
    }
    let [now, before] = [bytes, bytes_before].map(|bytes| bytes as f64 / 1e6);
    // Where nobody reads this, the model is there all the same.
    let _ = writeln!(
        stderr(),
        "{tensors} tensors in {}: {now:.1} MB, before {before:.1} MB",
        command.out.display()
    );
    Ok(())
}
