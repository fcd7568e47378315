//! `attentive convert`: a model in another precision, or in the layout that other programs read.

use crate::error::Error;
use crate::model::Model;
use crate::output;
use attentive_model::Converted;
use attentive_model::checkpoint::StoredType;
use attentive_model::families::transformer::{Conversion, Layout};
use attentive_model::families::{self, Family, transformer};
use attentive_tasks::tokenizer_of;
use attentive_tensor::{Cpu, CpuBackend, Isa, Threads};
use attentive_text::tokenizer::Tokenizer;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::io::{Write, stderr};
use std::path::PathBuf;

/// The options of `attentive convert`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Convert {
    /// Model folder, with config.json and model.safetensors or pytorch_model.bin; or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|NAME")]
    model: Model,
    /// Folder to write the converted model to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Precision to store matrices in
    #[arg(long, value_name = "PRECISION", value_enum, default_value = "f32")]
    precision: PrecisionName,
    /// Layout of the dimensions of the model [default: unchanged]
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
  attentive convert --model bert-base-uncased --out half --precision bf16
  attentive convert --model gpt2 --out half --precision bf16
  attentive convert --model flan-t5-base --out half --precision bf16
  attentive convert --model detr-resnet-50 --out half --precision bf16

The tokenizer and all settings are copied; without a tokenizer a folder cannot read text. BERT, GPT-2, T5, ViT, DETR \
and their relatives are stored in f32 or bf16. int8 stores each row of a matrix with its own scale, the \
embeddings included. Commands compute a model that is stored in int8 in int8, unless --precision is given, and only \
attentive can read it. Other programs can read f32 and bf16 if the layout is marian.";

#[derive(Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum PrecisionName {
    /// 32-bit floating point
    F32,
    /// bfloat16: the upper half of f32
    Bf16,
    /// 8-bit integers with one scale per row
    Int8,
}

#[derive(Clone, Copy, ValueEnum)]
enum LayoutName {
    /// Positional encodings with all sines before all cosines; the paper alternates them
    Marian,
}

pub(crate) fn run(command: &Convert) -> Result<(), Error> {
    output::must_differ(["--model", "--out"], [Some(command.model.written()), Some(&command.out)])?;
    let stored = match command.precision {
        PrecisionName::F32 => StoredType::F32,
        PrecisionName::Bf16 => StoredType::Bf16,
        PrecisionName::Int8 => StoredType::Int8,
    };
    // Nothing is computed, but the parts of a model ask for a backend.
    let backend = CpuBackend::new(Cpu { isa: Isa::from_env()?, threads: Threads::new(1) }).shared();
    let (from, to) = (&command.model.folder()?, &command.out);
    match Family::of(from)? {
        Family::Transformer => {
            let layout = command.layout.map_or(Layout::AsItIs, |LayoutName::Marian| Layout::Marian);
            let converted = transformer::convert(&backend, from, to, &Conversion { stored, layout })?;
            let problem = tokenizer_of(to).err().map(|error| error.to_string());
            report(command, &converted, problem)
        }
        family @ (Family::T5 | Family::Bert | Family::Detr | Family::Gpt2 | Family::Vit) => {
            if command.layout.is_some() {
                let problem = "only translation models have a layout: remove the option".to_owned();
                return Err(Error::Flag { option: "layout", problem });
            }
            let converted = families::convert(&backend, from, to, stored)?;
            // A model of pictures reads no text.
            let reads_text = !matches!(family, Family::Detr | Family::Vit);
            let problem = reads_text.then(|| Tokenizer::load(to).err()).flatten();
            report(command, &converted, problem.map(|error| error.to_string()))
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    precision: PrecisionName,
    tensors: usize,
    bytes: u64,
    bytes_before: u64,
    /// Why the new folder cannot read text, if it cannot.
    no_tokenizer: Option<String>,
}

fn report(command: &Convert, converted: &Converted, no_tokenizer: Option<String>) -> Result<(), Error> {
    let &Converted { tensors, bytes, bytes_before } = converted;
    if command.json {
        let precision = command.precision;
        return output::json(&Report { precision, tensors, bytes, bytes_before, no_tokenizer });
    }
    let [now, before] = [bytes, bytes_before].map(|bytes| bytes as f64 / 1e6);
    // The model is written even if stderr is closed.
    let _ = writeln!(
        stderr(),
        "wrote {tensors} tensors to {}: {now:.1} MB, before {before:.1} MB",
        command.out.display()
    );
    if let Some(error) = no_tokenizer {
        let _ = writeln!(stderr(), "attentive: the new folder cannot read text: {error}");
    }
    Ok(())
}
