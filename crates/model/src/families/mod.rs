//! Models composed from the layers. A family is a configuration, wiring and a map of weight names.
//!
//! This is the registry: `config.json` of a folder says which family reads it.

pub mod bert;
mod deberta;
pub mod detr;
pub mod encoder_decoder;
mod gpt1;
pub mod gpt2;
mod gpt_neo;
mod labels;
mod roberta;
pub mod t5;
pub mod transformer;
pub mod vit;

use crate::checkpoint::{CONFIG, Staged, StoredType};
use crate::convert::{Converted, Plain, fields_of, must_be_free};
use crate::error::Error;
use attentive_tensor::Backend;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is said of a folder without it: most often the folder itself is misspelt.
const NO_CONFIG: &str =
    "no such file; a model is a folder with config.json and model.safetensors or pytorch_model.bin";

pub(crate) const MARIAN: &str = "marian";
/// A Transformer that Marian's code cannot compute.
pub(crate) const ATTENTIVE: &str = "attentive-transformer";
pub(crate) const BART: &str = "bart";
pub(crate) const MBART: &str = "mbart";
pub(crate) const M2M100: &str = "m2m_100";
pub(crate) const BERT: &str = "bert";
pub(crate) const ROBERTA: &str = "roberta";
pub(crate) const XLM_ROBERTA: &str = "xlm-roberta";
pub(crate) const DEBERTA: &str = "deberta";
pub(crate) const DEBERTA_V2: &str = "deberta-v2";
pub(crate) const GPT1: &str = "openai-gpt";
pub(crate) const GPT2: &str = "gpt2";
pub(crate) const GPT_NEO: &str = "gpt_neo";
pub(crate) const T5: &str = "t5";
pub(crate) const MT5: &str = "mt5";
pub(crate) const DETR: &str = "detr";
/// A DETR whose norms transformers does not have.
pub(crate) const ATTENTIVE_DETR: &str = "attentive-detr";
pub(crate) const VIT: &str = "vit";
pub(crate) const DEIT: &str = "deit";
pub(crate) const DINOV2: &str = "dinov2";
pub(crate) const DINOV2_WITH_REGISTERS: &str = "dinov2_with_registers";

/// The families of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// The original Transformer, and BART, mBART and M2M-100: [`transformer::Transformer`].
    Transformer,
    /// An encoder with heads, BERT or one of its [relatives](bert::Relative): [`bert::Bert`].
    Bert,
    /// A decoder alone, GPT-2, GPT-1 or GPT-Neo: [`gpt2::Gpt2`].
    Gpt2,
    /// An encoder and a decoder from text to text: [`t5::T5`].
    T5,
    /// From a picture to a set of boxes: [`detr::Detr`].
    Detr,
    /// An encoder of pictures, ViT or one of its [relatives](vit::Relative): [`vit::Vit`].
    Vit,
}

/// Each family, with the `model_type`s and the beginnings of the `architectures` that it reads.
const FAMILIES: [(Family, &[&str], &[&str]); 6] = [
    (Family::Transformer, &[MARIAN, ATTENTIVE, BART, MBART, M2M100], &["Marian", "Bart", "MBart", "M2M100"]),
    (
        Family::Bert,
        &[BERT, ROBERTA, XLM_ROBERTA, DEBERTA, DEBERTA_V2],
        &["Bert", "Roberta", "XLMRoberta", "Deberta", "DebertaV2"],
    ),
    (Family::Gpt2, &[GPT2, GPT1, GPT_NEO], &["GPT2", "OpenAIGPT", "GPTNeo"]),
    (Family::T5, &[T5, MT5], &["T5", "MT5"]),
    (Family::Detr, &[DETR, ATTENTIVE_DETR], &["Detr"]),
    (
        Family::Vit,
        &[VIT, DEIT, DINOV2, DINOV2_WITH_REGISTERS],
        &["ViT", "DeiT", "Dinov2", "Dinov2WithRegisters"],
    ),
];

impl Family {
    /// The family that reads a folder, as its `config.json` says. A type that no family reads is refused together with those that
    /// can be read.
    pub fn of(folder: &Path) -> Result<Family, Error> {
        ConfigFile::open(folder)?.family()
    }

    /// The family that reads a folder, if it is one of `families`; others are refused together with the types of these.
    pub fn among(folder: &Path, families: &[Family]) -> Result<Family, Error> {
        let file = ConfigFile::open(folder)?;
        let found = file.family()?;
        if families.contains(&found) { Ok(found) } else { Err(file.other_than(families, found)) }
    }

    /// The `model_type`s that it reads.
    pub fn types(self) -> &'static [&'static str] {
        FAMILIES.iter().find(|(family, ..)| *family == self).map_or(&[], |(_, types, _)| types)
    }

    fn of_type(model_type: &str) -> Option<Family> {
        FAMILIES.iter().find(|(_, types, _)| types.contains(&model_type)).map(|(family, ..)| *family)
    }

    fn of_architecture(architecture: &str) -> Option<Family> {
        // Bert of BertForMaskedLM, Marian of MarianMTModel, GPT2 of GPT2LMHeadModel.
        let stem = architecture.split("For").next().unwrap_or_default();
        const ENDS: [&str; 4] = ["Model", "MT", "LMHead", "DoubleHeads"];
        let stem = ENDS.iter().fold(stem, |stem, end| stem.strip_suffix(end).unwrap_or(stem));
        FAMILIES.iter().find(|(_, _, names)| names.contains(&stem)).map(|(family, ..)| *family)
    }
}

/// `` `a`, `b` and `c` ``
fn listed(names: &[&str]) -> String {
    enumerated(names, "and")
}

fn enumerated(names: &[&str], word: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match &quoted[..] {
        [others @ .., last] if !others.is_empty() => format!("{} {word} {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

/// What every `config.json` has.
#[derive(Debug, Deserialize)]
struct Common {
    model_type: Option<String>,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    /// A field of BERT.
    type_vocab_size: Option<u64>,
}

/// The `config.json` of a folder, of any family.
pub(crate) struct ConfigFile {
    path: PathBuf,
    text: String,
    common: Common,
}

impl ConfigFile {
    /// Reads the file.
    pub fn open(folder: &Path) -> Result<ConfigFile, Error> {
        let path = folder.join(CONFIG);
        let text = std::fs::read_to_string(&path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => Error::Format { path: path.clone(), problem: NO_CONFIG.to_owned() },
            _ => Error::File { path: path.clone(), source },
        })?;
        let common = parse(&path, &text)?;
        Ok(ConfigFile { path, text, common })
    }

    /// The family that reads the folder.
    fn family(&self) -> Result<Family, Error> {
        let (model_type, architecture) = (self.common.model_type.as_deref(), self.architectures().first());
        // When the first files were written, BERT was alone with its segments, and nobody named a type.
        let first = (architecture.is_none() && self.common.type_vocab_size.is_some()).then_some(Family::Bert);
        let by_name = || architecture.map_or(first, |name| Family::of_architecture(name));
        model_type.map_or_else(by_name, Family::of_type).ok_or_else(|| {
            let known: Vec<&str> = FAMILIES.iter().flat_map(|(_, types, _)| *types).copied().collect();
            let problem = match model_type.or(architecture.map(String::as_str)) {
                Some(found) => format!("the model type `{found}` is not supported, only {}", listed(&known)),
                None => format!("there is no model_type; supported are {}", listed(&known)),
            };
            Error::Format { path: self.path.clone(), problem }
        })
    }

    /// What the folder says of its type.
    pub fn model_type(&self) -> Option<&str> {
        self.common.model_type.as_deref()
    }

    /// The classes of transformers that the folder was saved from.
    pub fn architectures(&self) -> &[String] {
        self.common.architectures.as_deref().unwrap_or_default()
    }

    /// That a model of one of `families` is needed, and that this one is of another.
    fn other_than(&self, families: &[Family], found: Family) -> Error {
        let found = self.common.model_type.as_deref().unwrap_or(found.types()[0]);
        let needed: Vec<&str> = families.iter().flat_map(|family| family.types()).copied().collect();
        let problem = format!("this is a model of type `{found}`, but {} is needed here", one_of(&needed));
        Error::Format { path: self.path.clone(), problem }
    }

    /// Reads the fields of a family. A file of another family lacks some of them; to name these would mislead.
    pub fn read_as<T: DeserializeOwned>(&self, family: Family) -> Result<T, Error> {
        if self.common.model_type.is_some() || !self.architectures().is_empty() {
            let found = self.family()?;
            if found != family {
                return Err(self.other_than(&[family], found));
            }
        }
        parse(&self.path, &self.text)
    }
}

/// `` `a`, `b` or `c` ``
fn one_of(names: &[&str]) -> String {
    enumerated(names, "or")
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::Format { path: path.to_owned(), problem: error.to_string() })
}

/// Reads the model in the folder `from` and writes it, in one file and with all that belongs to it, to the folder `to`, which may not
/// hold a model yet: a BERT, a GPT-2, a T5, a ViT or a DETR, of which the type of the numbers changes alone. Buffers and heads of other tasks stay
/// behind. A Transformer has [`transformer::convert`].
pub fn convert(
    backend: &Arc<dyn Backend>,
    from: &Path,
    to: &Path,
    stored: StoredType,
) -> Result<Converted, Error> {
    let family = Family::among(from, &[Family::Bert, Family::Detr, Family::Gpt2, Family::T5, Family::Vit])?;
    let plain = Plain::new(stored)?;
    must_be_free(to)?;
    let plan = match family {
        Family::Bert => bert::plan(backend, from)?,
        Family::Detr => detr::tensors(backend, from)?.into(),
        Family::Gpt2 => gpt2::tensors(backend, from)?.into(),
        Family::Vit => vit::plan(backend, from)?,
        _ => t5::tensors(backend, from)?.into(),
    };
    plain.write([from, to], plan)
}

/// Writes a `config.json` with these fields, and with those of the folder `origin` that are not among them: how the model wants to be
/// decoded, and for which tasks.
fn config_like(folder: &Path, fields: &impl Serialize, origin: &Path) -> Result<Staged, Error> {
    let mut all = fields_of(origin)?;
    // What is written has f32, under the new name.
    all.shift_remove("torch_dtype");
    all.shift_remove("quantization_config");
    if let Value::Object(own) = serde_json::to_value(fields).expect("a plain structure") {
        all.extend(own);
    }
    let text = serde_json::to_string_pretty(&all).expect("a plain structure") + "\n";
    Staged::new(&folder.join(CONFIG), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_lead_to_their_families() {
        for (name, family) in [
            ("MarianMTModel", Some(Family::Transformer)),
            ("MarianModel", Some(Family::Transformer)),
            ("BertModel", Some(Family::Bert)),
            ("BertForMaskedLM", Some(Family::Bert)),
            ("GPT2Model", Some(Family::Gpt2)),
            ("OpenAIGPTLMHeadModel", Some(Family::Gpt2)),
            ("GPT2LMHeadModel", Some(Family::Gpt2)),
            ("GPTNeoForCausalLM", Some(Family::Gpt2)),
            ("GPT2ForSequenceClassification", Some(Family::Gpt2)),
            ("BartForConditionalGeneration", Some(Family::Transformer)),
            ("M2M100ForConditionalGeneration", Some(Family::Transformer)),
            ("T5ForConditionalGeneration", Some(Family::T5)),
            ("DetrForObjectDetection", Some(Family::Detr)),
            ("MT5ForConditionalGeneration", Some(Family::T5)),
            ("RobertaForMaskedLM", Some(Family::Bert)),
            ("XLMRobertaModel", Some(Family::Bert)),
            ("DebertaV2ForMaskedLM", Some(Family::Bert)),
            ("ViTModel", Some(Family::Vit)),
            ("DeiTForImageClassificationWithTeacher", Some(Family::Vit)),
            ("Dinov2WithRegistersForImageClassification", Some(Family::Vit)),
            ("LlamaForCausalLM", None),
            ("Model", None),
            ("", None),
        ] {
            assert_eq!(Family::of_architecture(name), family, "{name}");
        }
    }
}
