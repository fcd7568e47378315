//! What `config.json` of a DeBERTa says beyond BERT's.

use crate::error::Error;
use crate::families::bert::BertConfig;
use crate::layers::{activation_named, name_of_activation};
use crate::limits;
use attentive_tensor::Activation;
use serde::{Deserialize, Serialize};

/// How tokens and distances meet in the scores, and what else is particular.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disentangled {
    /// Whether queries, keys and values come from one matrix, as in the first version.
    pub fused: bool,
    /// Whether distances have a part in the scores at all.
    pub relative: bool,
    /// The largest distance with a bucket of its own.
    pub max_distance: usize,
    /// How many buckets there are for the distances of one direction, which get wider with the logarithm; each distance is one if none
    /// is given.
    pub buckets: Option<usize>,
    /// Whether a query's content is held against the distance of a key.
    pub content_to_position: bool,
    /// Whether a key's content is held against the distance of the query.
    pub position_to_content: bool,
    /// Whether distances are projected by the matrices of the contents.
    pub shared: bool,
    /// Whether the table of distances is normed.
    pub normed: bool,
    /// Whether positions are added to the embedded tokens, too.
    pub absolute: bool,
    /// The width, in tokens, and the function of the convolution behind the first layer.
    pub convolution: Option<(usize, Activation)>,
    /// Dropout before the dense layer of a text's class, and the function behind that layer.
    pub pooler: (f32, Activation),
}

impl Disentangled {
    /// Those of the first version.
    pub fn first(max_distance: usize) -> Disentangled {
        Disentangled {
            fused: true,
            relative: true,
            max_distance,
            buckets: None,
            content_to_position: true,
            position_to_content: true,
            shared: false,
            normed: false,
            absolute: false,
            convolution: None,
            pooler: (0.0, Activation::Gelu),
        }
    }

    /// Those of the third version.
    pub fn third(max_distance: usize) -> Disentangled {
        let first = Disentangled::first(max_distance);
        Disentangled { fused: false, buckets: Some(256), shared: true, normed: true, ..first }
    }
}

/// The fields of the file. What is missing is what transformers takes for it.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::families) struct Fields {
    #[serde(default)]
    relative_attention: bool,
    #[serde(default = "none")]
    max_relative_positions: i64,
    #[serde(default = "none")]
    position_buckets: i64,
    #[serde(default = "yes")]
    position_biased_input: bool,
    #[serde(default)]
    pos_att_type: Option<Terms>,
    #[serde(default)]
    share_att_key: bool,
    #[serde(default = "without")]
    norm_rel_ebd: String,
    #[serde(default)]
    conv_kernel_size: usize,
    #[serde(default = "one")]
    conv_groups: usize,
    #[serde(default = "tanh")]
    conv_act: String,
    #[serde(default)]
    pooler_dropout: f32,
    #[serde(default = "gelu")]
    pooler_hidden_act: String,
    #[serde(default)]
    pub cls_dropout: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attention_head_size: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedding_size: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pooler_hidden_size: Option<usize>,
    #[serde(default, skip_serializing_if = "is_false")]
    talking_head: bool,
    /// Whether the head for masked words has BERT's names. It is read under both, and written under these.
    #[serde(rename = "legacy", skip_deserializing)]
    has_bert_names: bool,
}

/// The field that says how the head for masked words is named.
pub(in crate::families) const LEGACY: &str = "legacy";

/// `c2p|p2c`, or a list of the two.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Terms {
    List(Vec<String>),
    Joined(String),
}

fn none() -> i64 {
    -1
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}

fn without() -> String {
    "none".to_owned()
}

fn tanh() -> String {
    "tanh".to_owned()
}

fn gelu() -> String {
    "gelu".to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A width that the file may name, but that must be what it is without the name.
fn must_be(field: &'static str, found: Option<usize>, expected: usize) -> Result<(), Error> {
    match found.filter(|&found| found != expected) {
        None => Ok(()),
        Some(found) => Err(Error::config(field, format!("{found} is not supported, only {expected}"))),
    }
}

impl Fields {
    /// What the file asks for, or the first thing in it that cannot be had.
    pub fn read(&self, fused: bool, [d_model, h, positions]: [usize; 3]) -> Result<Disentangled, Error> {
        must_be("attention_head_size", self.attention_head_size, d_model / h.max(1))?;
        must_be("embedding_size", self.embedding_size, d_model)?;
        must_be("pooler_hidden_size", self.pooler_hidden_size, d_model)?;
        must_be("conv_groups", Some(self.conv_groups), 1)?;
        if self.talking_head {
            return Err(Error::config("talking_head", "true is not supported, only false"));
        }
        let terms: Vec<String> = match &self.pos_att_type {
            None => Vec::new(),
            Some(Terms::List(terms)) => terms.clone(),
            Some(Terms::Joined(terms)) => {
                terms.to_lowercase().split('|').map(|term| term.trim().to_owned()).collect()
            }
        };
        if let Some(term) = terms.iter().find(|term| !["c2p", "p2c", "", "none"].contains(&term.as_str())) {
            let problem = format!("`{term}` is not supported, only c2p and p2c");
            return Err(Error::config("pos_att_type", problem));
        }
        let has = |name: &str| terms.iter().any(|term| term == name);
        let size = |number: i64| usize::try_from(number).ok().filter(|&number| number > 0);
        let max_distance = size(self.max_relative_positions).unwrap_or(positions);
        limits::check_size("max_relative_positions", max_distance, limits::MOST_TOKENS)?;
        let buckets = size(self.position_buckets).filter(|_| !fused);
        if let Some(buckets) = buckets.filter(|&buckets| buckets < 4 || buckets / 2 + 1 >= max_distance) {
            let problem = format!("{buckets} buckets do not fit {max_distance} distances");
            return Err(Error::config("position_buckets", problem));
        }
        if self.conv_kernel_size > 0
            && (self.conv_kernel_size.is_multiple_of(2) || fused || self.conv_kernel_size > 99)
        {
            let problem = format!(
                "{} is not supported, only odd numbers below 100, after the first version",
                self.conv_kernel_size
            );
            return Err(Error::config("conv_kernel_size", problem));
        }
        let norms: Vec<&str> = self.norm_rel_ebd.split('|').map(str::trim).collect();
        let activation = activation_named("conv_act", &self.conv_act)?;
        limits::check_dropout("pooler_dropout", self.pooler_dropout)?;
        Ok(Disentangled {
            fused,
            relative: self.relative_attention,
            max_distance,
            buckets,
            content_to_position: has("c2p"),
            position_to_content: has("p2c"),
            shared: self.share_att_key && !fused,
            normed: norms.iter().any(|norm| norm.eq_ignore_ascii_case("layer_norm")),
            absolute: self.position_biased_input,
            convolution: (self.conv_kernel_size > 0).then_some((self.conv_kernel_size, activation)),
            pooler: (self.pooler_dropout, activation_named("pooler_hidden_act", &self.pooler_hidden_act)?),
        })
    }

    /// The fields of a model.
    pub fn of(config: &Disentangled, whole: &BertConfig) -> Fields {
        let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let terms = [("p2c", config.position_to_content), ("c2p", config.content_to_position)];
        let terms = terms.into_iter().filter(|(_, has)| *has).map(|(term, _)| term.to_owned());
        let own_distance = Some(config.max_distance).filter(|&distance| distance != whole.max_positions);
        let (width, activation) = config.convolution.unwrap_or((0, Activation::Tanh));
        Fields {
            relative_attention: config.relative,
            max_relative_positions: own_distance.map_or(-1, signed),
            position_buckets: config.buckets.map_or(-1, signed),
            position_biased_input: config.absolute,
            pos_att_type: Some(Terms::List(terms.collect())),
            share_att_key: config.shared,
            norm_rel_ebd: if config.normed { "layer_norm".to_owned() } else { without() },
            conv_kernel_size: width,
            conv_groups: 1,
            conv_act: name_of_activation(activation).to_owned(),
            pooler_dropout: config.pooler.0,
            pooler_hidden_act: name_of_activation(config.pooler.1).to_owned(),
            cls_dropout: whole.classifier_dropout,
            attention_head_size: None,
            embedding_size: None,
            pooler_hidden_size: None,
            talking_head: false,
            has_bert_names: true,
        }
    }
}

impl Disentangled {
    /// How many terms the scores have.
    pub fn terms(&self) -> usize {
        1 + usize::from(self.content_to_position) + usize::from(self.position_to_content)
    }

    /// The rows of the table for one direction.
    pub fn span(&self) -> usize {
        self.buckets.unwrap_or(self.max_distance)
    }

    /// The row of the table for the distance `query - key`.
    pub fn row(&self, distance: i64) -> usize {
        let span = self.span() as i64;
        let bucket = self.buckets.map_or(distance, |buckets| bucket(distance, buckets, self.max_distance));
        (bucket + span).clamp(0, 2 * span - 1) as usize
    }
}

/// Distances up to half of the buckets have one each; the others share them, the more the further away they are.
fn bucket(distance: i64, buckets: usize, max_distance: usize) -> i64 {
    let exact = buckets / 2;
    let far = distance.unsigned_abs() as usize;
    if far <= exact {
        return distance;
    }
    // In f32, since transformers has it so: which side of a border a distance is on depends on it.
    let growth = (far as f32 / exact as f32).ln() / (((max_distance - 1) as f64 / exact as f64) as f32).ln();
    let wide = (growth * (exact - 1) as f32).ceil() as i64 + exact as i64;
    wide * distance.signum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `make_log_bucket_position(torch.tensor([…]), 256, 512)` of transformers 5.23.
    #[test]
    fn buckets_are_those_of_transformers() {
        let distances =
            [0, 1, 127, 128, 129, 130, 131, 150, 200, 255, 256, 300, 400, 510, 511, -129, -300, -511];
        let found = distances.map(|distance| bucket(distance, 256, 512));
        assert_eq!(found, EXPECTED);
        let small: Vec<i64> = (0..26).map(|distance| bucket(distance, 8, 24)).collect();
        assert_eq!(small, [0, 1, 2, 3, 4, 5, 5, 5, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8]);
    }

    const EXPECTED: [i64; 18] =
        [0, 1, 127, 128, 129, 130, 131, 143, 169, 192, 192, 207, 233, 255, 255, -129, -207, -255];
}
