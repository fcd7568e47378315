//! The sizes of a DETR, and its `config.json`.

use crate::checkpoint::{CONFIG, Staged};
use crate::error::Error;
use crate::families::labels::labels;
use crate::families::{ATTENTIVE_DETR, ConfigFile, DETR, Family};
use crate::layers::{MultiHeadConfig, StackConfig, activation_named, name_of_activation};
use crate::limits::{self, MOST_LAYERS, MOST_TOKENS, WIDEST};
use attentive_tensor::Activation;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// What a DETR is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct DetrConfig {
    /// The backbone.
    pub backbone: BackboneConfig,
    /// The width of the Transformer.
    pub d_model: usize,
    /// N of the encoder.
    pub encoder_layers: usize,
    /// N of the decoder.
    pub decoder_layers: usize,
    /// The number of heads of the encoder's and of the decoder's attentions.
    pub h: [usize; 2],
    /// The width between the two products of the encoder's and of the decoder's feed-forward networks.
    pub d_ff: [usize; 2],
    /// The function in the feed-forward networks.
    pub activation: Activation,
    /// The number of object queries: the most objects that can be found in a picture.
    pub queries: usize,
    /// Dropout of each sublayer's output.
    pub dropout: f32,
    /// Dropout of attention weights.
    pub attention_dropout: f32,
    /// The names of the classes, in order, without "no object", which is one more class.
    pub labels: Vec<String>,
    /// The weights of the terms of matching costs and losses.
    pub loss: LossWeights,
    /// Whether the next layer of the decoder reads normed hidden states, and the output of the last layer is normed twice. DETR does
    /// not do that; transformers does if `auxiliary_loss` is set.
    pub normed_between: bool,
}

/// The sizes of the backbone.
#[derive(Debug, Clone, PartialEq)]
pub struct BackboneConfig {
    /// The naming scheme of its weights in a folder.
    pub names: BackboneNames,
    /// The kind of its blocks.
    pub block: BlockKind,
    /// How many blocks each stage has.
    pub depths: Vec<usize>,
    /// The width of each stage.
    pub widths: Vec<usize>,
    /// The width of the stem.
    pub stem_width: usize,
    /// The number of channels of a pixel.
    pub channels: usize,
    /// Whether the first convolution of a bottleneck has the stride of 2, instead of the second.
    pub early_stride: bool,
    /// The norm after each convolution.
    pub norm: PictureNorm,
}

/// The naming scheme of a backbone's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackboneNames {
    /// timm's.
    Timm,
    /// Those of transformers' ResNet.
    ResNet,
}

/// The kind of a ResNet's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// Two convolutions of 3 × 3.
    Basic,
    /// 1 × 1 to a quarter of the width, 3 × 3, and 1 × 1 back.
    Bottleneck,
}

/// The norm after a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureNorm {
    /// A batch norm with the statistics that it was trained with.
    Frozen,
    /// A group norm with so many groups of channels. Unlike batch norm it needs no large batches, so models can learn from random weights.
    Group(usize),
}

/// The weights of the terms of matching costs and losses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossWeights {
    /// Of the probability of the class, in the matching cost.
    pub class_cost: f64,
    /// Of the L1 distance of the boxes, in the matching cost.
    pub box_cost: f64,
    /// Of the GIoU, in the matching cost.
    pub giou_cost: f64,
    /// Of the cross-entropy of the classes, in the loss. No `config.json` has it: it is 1, except in the loss of
    /// [`Detr::guided_loss`](super::Detr::guided_loss).
    pub class_loss: f64,
    /// Of the L1 distance of the boxes, in the loss.
    pub box_loss: f64,
    /// Of `1 - GIoU`, in the loss.
    pub giou_loss: f64,
    /// Of a row whose target is "no object", in the cross-entropy. A row with an object has the weight 1.
    pub no_object: f64,
}

impl Default for LossWeights {
    /// Those of the paper.
    fn default() -> LossWeights {
        LossWeights {
            class_cost: 1.0,
            box_cost: 5.0,
            giou_cost: 2.0,
            class_loss: 1.0,
            box_loss: 5.0,
            giou_loss: 2.0,
            no_object: 0.1,
        }
    }
}

impl BackboneConfig {
    /// The ResNet with this name in timm.
    fn named(name: &str) -> Option<BackboneConfig> {
        let (block, depths) = match name {
            "resnet18" => (BlockKind::Basic, [2, 2, 2, 2]),
            "resnet34" => (BlockKind::Basic, [3, 4, 6, 3]),
            "resnet50" => (BlockKind::Bottleneck, [3, 4, 6, 3]),
            "resnet101" => (BlockKind::Bottleneck, [3, 4, 23, 3]),
            _ => return None,
        };
        let factor = if block == BlockKind::Basic { 1 } else { 4 };
        Some(BackboneConfig {
            names: BackboneNames::Timm,
            block,
            depths: depths.to_vec(),
            widths: [64, 128, 256, 512].map(|width| factor * width).to_vec(),
            stem_width: 64,
            channels: 3,
            early_stride: false,
            norm: PictureNorm::Frozen,
        })
    }
}

/// `config.json`. Missing fields have the defaults of transformers' `DetrConfig`.
#[derive(Debug, Deserialize)]
#[serde(default)]
struct Config {
    d_model: usize,
    encoder_layers: usize,
    decoder_layers: usize,
    encoder_attention_heads: usize,
    decoder_attention_heads: usize,
    encoder_ffn_dim: usize,
    decoder_ffn_dim: usize,
    activation_function: String,
    num_queries: usize,
    num_channels: usize,
    dropout: f32,
    attention_dropout: f32,
    activation_dropout: f32,
    position_embedding_type: String,
    dilation: bool,
    auxiliary_loss: bool,
    class_cost: f64,
    bbox_cost: f64,
    giou_cost: f64,
    bbox_loss_coefficient: f64,
    giou_loss_coefficient: f64,
    eos_coefficient: f64,
    num_labels: Option<usize>,
    id2label: Option<BTreeMap<usize, String>>,
    use_timm_backbone: Option<bool>,
    backbone: Option<String>,
    backbone_config: Option<ResNet>,
    /// A field of our own: the number of groups of the backbone's group norms.
    backbone_groups: Option<usize>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            d_model: 256,
            encoder_layers: 6,
            decoder_layers: 6,
            encoder_attention_heads: 8,
            decoder_attention_heads: 8,
            encoder_ffn_dim: 2048,
            decoder_ffn_dim: 2048,
            activation_function: "relu".to_owned(),
            num_queries: 100,
            num_channels: 3,
            dropout: 0.1,
            attention_dropout: 0.0,
            activation_dropout: 0.0,
            position_embedding_type: "sine".to_owned(),
            dilation: false,
            auxiliary_loss: false,
            class_cost: 1.0,
            bbox_cost: 5.0,
            giou_cost: 2.0,
            bbox_loss_coefficient: 5.0,
            giou_loss_coefficient: 2.0,
            eos_coefficient: 0.1,
            num_labels: None,
            id2label: None,
            use_timm_backbone: None,
            backbone: None,
            backbone_config: None,
            backbone_groups: None,
        }
    }
}

/// `backbone_config`: a ResNet of transformers, or the name of a backbone of timm.
#[derive(Debug, Deserialize)]
#[serde(default)]
struct ResNet {
    model_type: String,
    backbone: Option<String>,
    num_channels: usize,
    embedding_size: usize,
    hidden_sizes: Vec<usize>,
    depths: Vec<usize>,
    layer_type: String,
    hidden_act: String,
    downsample_in_first_stage: bool,
    downsample_in_bottleneck: bool,
    out_features: Option<Vec<String>>,
    output_stride: Option<usize>,
}

impl Default for ResNet {
    fn default() -> ResNet {
        ResNet {
            model_type: "resnet".to_owned(),
            backbone: None,
            num_channels: 3,
            embedding_size: 64,
            hidden_sizes: vec![256, 512, 1024, 2048],
            depths: vec![3, 4, 6, 3],
            layer_type: "bottleneck".to_owned(),
            hidden_act: "relu".to_owned(),
            downsample_in_first_stage: false,
            downsample_in_bottleneck: false,
            out_features: None,
            output_stride: None,
        }
    }
}

impl ResNet {
    fn read(&self, norm: PictureNorm) -> Result<BackboneConfig, Error> {
        let refused = |problem: String| Err(Error::config("backbone_config", problem));
        if self.model_type == "timm_backbone" {
            if self.output_stride.is_some_and(|stride| stride != 32) {
                return refused("an output_stride other than 32 (dilation) is not supported".to_owned());
            }
            return timm(self.backbone.as_deref().unwrap_or("resnet50"), self.num_channels);
        }
        if self.model_type != "resnet" {
            let kind = &self.model_type;
            return refused(format!("the backbone `{kind}` is not supported, only resnet and timm_backbone"));
        }
        if self.hidden_act != "relu" || self.downsample_in_first_stage {
            return refused("only relu, and no downsample_in_first_stage, are supported".to_owned());
        }
        let last = format!("stage{}", self.depths.len());
        if self.out_features.as_ref().is_some_and(|features| features.last() != Some(&last)) {
            return refused(format!("out_features must end with {last}"));
        }
        let block = match self.layer_type.as_str() {
            "basic" => BlockKind::Basic,
            "bottleneck" => BlockKind::Bottleneck,
            other => return refused(format!("layer_type `{other}` is not basic or bottleneck")),
        };
        Ok(BackboneConfig {
            names: BackboneNames::ResNet,
            block,
            depths: self.depths.clone(),
            widths: self.hidden_sizes.clone(),
            stem_width: self.embedding_size,
            channels: self.num_channels,
            early_stride: self.downsample_in_bottleneck,
            norm,
        })
    }
}

fn timm(name: &str, channels: usize) -> Result<BackboneConfig, Error> {
    let found = BackboneConfig::named(name.split('.').next().unwrap_or(name));
    let config = found.ok_or_else(|| {
        let problem = format!("`{name}` is not supported, only resnet18, resnet34, resnet50 and resnet101");
        Error::config("backbone", problem)
    })?;
    Ok(BackboneConfig { channels, ..config })
}

impl Config {
    fn read(&self) -> Result<DetrConfig, Error> {
        if self.position_embedding_type != "sine" {
            let problem = format!("`{}` is not supported, only sine", self.position_embedding_type);
            return Err(Error::config("position_embedding_type", problem));
        }
        if self.dilation {
            return Err(Error::config("dilation", "true is not supported, only false"));
        }
        if self.activation_dropout != 0.0 {
            return Err(Error::config("activation_dropout", "is not supported, only 0"));
        }
        let norm = self.backbone_groups.map_or(PictureNorm::Frozen, PictureNorm::Group);
        let backbone = match &self.backbone_config {
            Some(config) if self.use_timm_backbone != Some(true) => config.read(norm)?,
            _ if self.use_timm_backbone == Some(false) => ResNet::default().read(norm)?,
            _ => timm(self.backbone.as_deref().unwrap_or("resnet50"), self.num_channels)?,
        };
        let config = DetrConfig {
            backbone,
            d_model: self.d_model,
            encoder_layers: self.encoder_layers,
            decoder_layers: self.decoder_layers,
            h: [self.encoder_attention_heads, self.decoder_attention_heads],
            d_ff: [self.encoder_ffn_dim, self.decoder_ffn_dim],
            activation: activation_named("activation_function", &self.activation_function)?,
            queries: self.num_queries,
            dropout: self.dropout,
            attention_dropout: self.attention_dropout,
            labels: labels(self.id2label.as_ref(), self.num_labels)?,
            loss: LossWeights {
                class_cost: self.class_cost,
                box_cost: self.bbox_cost,
                giou_cost: self.giou_cost,
                class_loss: 1.0,
                box_loss: self.bbox_loss_coefficient,
                giou_loss: self.giou_loss_coefficient,
                no_object: self.eos_coefficient,
            },
            normed_between: self.auxiliary_loss,
        };
        config.check().map_err(in_their_words)?;
        Ok(config)
    }
}

/// A mistake in a field of [`DetrConfig`], by the name that it has in the file.
fn in_their_words(error: Error) -> Error {
    const WORDS: [(&str, &str); 6] = [
        ("h", "encoder_attention_heads"),
        ("d_ff", "encoder_ffn_dim"),
        ("queries", "num_queries"),
        ("labels", "id2label"),
        ("depths", "backbone_config"),
        ("widths", "backbone_config"),
    ];
    error.in_words(&WORDS)
}

impl DetrConfig {
    /// The sizes that have a name, to be learned from scratch: `tiny` and `small` for pictures of a few hundred pixels; `base` for
    /// larger ones; `big` has the sizes of DETR with ResNet-50, which makes pictures 32 times smaller, the others 16 times.
    ///
    /// A box needs positions, but the values of attention contain none. The model can learn them only from the zero padding at the edges of
    /// the picture, as far as the receptive fields of the convolutions reach. Those of three stages span such pictures; those of two do
    /// not.
    pub fn preset(name: &str, labels: Vec<String>) -> Result<DetrConfig, Error> {
        use BlockKind::{Basic, Bottleneck};
        let (block, depths, widths, groups): (_, &[usize], &[usize], _) = match name {
            "tiny" => (Basic, &[1, 1, 1], &[32, 64, 128], 8),
            "small" => (Basic, &[2, 2, 2], &[32, 64, 128], 8),
            "base" => (Basic, &[2, 2, 2], &[64, 128, 256], 16),
            "big" => (Bottleneck, &[3, 4, 6, 3], &[256, 512, 1024, 2048], 32),
            _ => return Err(Error::config("preset", format!("no `{name}`: use tiny, small, base or big"))),
        };
        let (d_model, h, d_ff, encoder_layers, decoder_layers) = match name {
            "tiny" => (128, 4, 256, 1, 2),
            "small" => (128, 8, 256, 2, 3),
            "base" => (256, 8, 1024, 3, 4),
            _ => (256, 8, 2048, 6, 6),
        };
        Ok(DetrConfig {
            backbone: BackboneConfig {
                names: BackboneNames::ResNet,
                block,
                depths: depths.to_vec(),
                widths: widths.to_vec(),
                stem_width: if block == Basic { widths[0] } else { 64 },
                channels: 3,
                early_stride: false,
                norm: PictureNorm::Group(groups),
            },
            d_model,
            encoder_layers,
            decoder_layers,
            h: [h; 2],
            d_ff: [d_ff; 2],
            activation: Activation::Relu,
            queries: 100,
            dropout: 0.0,
            attention_dropout: 0.0,
            labels,
            loss: LossWeights::default(),
            normed_between: false,
        })
    }

    /// Reads the `config.json` of a folder.
    pub fn load(folder: &Path) -> Result<DetrConfig, Error> {
        let file: Config = ConfigFile::open(folder)?.read_as(Family::Detr)?;
        file.read().map_err(|error| Error::Format { path: folder.join(CONFIG), problem: error.to_string() })
    }

    /// Writes the `config.json` of a folder beside the old one.
    pub fn stage(&self, folder: &Path) -> Result<Staged, Error> {
        let text = serde_json::to_string_pretty(&self.file()).expect("plain values") + "\n";
        Staged::new(&folder.join(CONFIG), text.as_bytes())
    }

    fn file(&self) -> Value {
        let (backbone, loss) = (&self.backbone, &self.loss);
        let timm = backbone.names == BackboneNames::Timm;
        let stages = backbone.depths.len();
        let kind = if backbone.block == BlockKind::Basic { "basic" } else { "bottleneck" };
        let name = match (backbone.block, &backbone.depths[..]) {
            (BlockKind::Basic, [2, ..]) => "resnet18",
            (BlockKind::Basic, _) => "resnet34",
            (BlockKind::Bottleneck, [_, _, 23, _]) => "resnet101",
            _ => "resnet50",
        };
        let resnet = json!({
            "model_type": "resnet",
            "num_channels": backbone.channels,
            "embedding_size": backbone.stem_width,
            "hidden_sizes": backbone.widths,
            "depths": backbone.depths,
            "layer_type": kind,
            "hidden_act": "relu",
            "downsample_in_bottleneck": backbone.early_stride,
            "out_features": [format!("stage{stages}")],
        });
        let own = backbone.norm != PictureNorm::Frozen;
        let names = self.labels.iter().enumerate();
        let mut file = json!({
            "model_type": if own { ATTENTIVE_DETR } else { DETR },
            "architectures": ["DetrForObjectDetection"],
            "d_model": self.d_model,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            "encoder_attention_heads": self.h[0],
            "decoder_attention_heads": self.h[1],
            "encoder_ffn_dim": self.d_ff[0],
            "decoder_ffn_dim": self.d_ff[1],
            "activation_function": name_of_activation(self.activation),
            "num_queries": self.queries,
            "num_channels": backbone.channels,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation_dropout": 0.0,
            "position_embedding_type": "sine",
            "dilation": false,
            // In transformers this field also changes the forward pass, so it is true only if the model was trained that way.
            "auxiliary_loss": self.normed_between,
            "class_cost": whole(loss.class_cost),
            "bbox_cost": whole(loss.box_cost),
            "giou_cost": whole(loss.giou_cost),
            "bbox_loss_coefficient": whole(loss.box_loss),
            "giou_loss_coefficient": whole(loss.giou_loss),
            "eos_coefficient": loss.no_object,
            "id2label": names.clone().map(|(i, name)| (i.to_string(), name)).collect::<BTreeMap<_, _>>(),
            "label2id": names.map(|(i, name)| (name, i)).collect::<BTreeMap<_, _>>(),
            "use_timm_backbone": timm,
            "backbone": timm.then_some(name),
            "backbone_config": (!timm).then_some(resnet),
            "dtype": "float32",
        });
        if let PictureNorm::Group(groups) = backbone.norm {
            file["backbone_groups"] = groups.into();
        }
        file
    }

    /// Whether a model can have these sizes.
    pub fn check(&self) -> Result<(), Error> {
        let backbone = &self.backbone;
        let sizes = [
            ("d_model", self.d_model, WIDEST),
            ("encoder_layers", self.encoder_layers, MOST_LAYERS),
            ("decoder_layers", self.decoder_layers, MOST_LAYERS),
            ("h", self.h[0], WIDEST),
            ("decoder_attention_heads", self.h[1], WIDEST),
            ("d_ff", self.d_ff[0], WIDEST),
            ("decoder_ffn_dim", self.d_ff[1], WIDEST),
            ("queries", self.queries, MOST_TOKENS),
            ("labels", self.labels.len(), WIDEST),
            ("embedding_size", backbone.stem_width, WIDEST),
            ("depths", backbone.depths.len(), 4),
        ];
        sizes.into_iter().try_for_each(|(field, size, most)| limits::check_size(field, size, most))?;
        backbone.depths.iter().try_for_each(|&depth| limits::check_size("depths", depth, MOST_LAYERS))?;
        backbone.widths.iter().try_for_each(|&width| limits::check_size("widths", width, WIDEST))?;
        for (field, p) in [("dropout", self.dropout), ("attention_dropout", self.attention_dropout)] {
            limits::check_dropout(field, p)?;
        }
        if backbone.depths.len() != backbone.widths.len() {
            return Err(Error::config("widths", "must have a width for each stage"));
        }
        if backbone.channels != 3 {
            return Err(Error::config("num_channels", format!("must be 3, not {}", backbone.channels)));
        }
        if !self.d_model.is_multiple_of(4) {
            return Err(Error::config("d_model", format!("{} is not divisible by 4", self.d_model)));
        }
        let narrowest =
            |width: usize| if backbone.block == BlockKind::Bottleneck { width / 4 } else { width };
        if let PictureNorm::Group(groups) = backbone.norm {
            let mut widths =
                backbone.widths.iter().map(|&width| narrowest(width)).chain([backbone.stem_width]);
            if groups == 0 || widths.any(|width| !width.is_multiple_of(groups)) {
                let problem = format!("{groups} groups do not divide the widths of the backbone");
                return Err(Error::config("backbone_groups", problem));
            }
        }
        if backbone.block == BlockKind::Bottleneck && backbone.widths.iter().any(|width| width % 4 != 0) {
            return Err(Error::config("widths", "those of bottlenecks must be divisible by 4"));
        }
        let losses = &self.loss;
        if !(losses.no_object > 0.0 && losses.no_object.is_finite()) {
            // The loss of a picture without objects would be 0 / 0.
            let problem = format!("must be more than 0, not {}", losses.no_object);
            return Err(Error::config("eos_coefficient", problem));
        }
        let others = [
            ("class_cost", losses.class_cost),
            ("bbox_cost", losses.box_cost),
            ("giou_cost", losses.giou_cost),
            ("bbox_loss_coefficient", losses.box_loss),
            ("giou_loss_coefficient", losses.giou_loss),
        ];
        if let Some((field, weight)) =
            others.into_iter().find(|(_, weight)| !(*weight >= 0.0 && weight.is_finite()))
        {
            return Err(Error::config(field, format!("must be at least 0, not {weight}")));
        }
        self.stacks()?;
        limits::check_parameters(self.parameters())
    }

    /// About how many parameters the Transformer has: those of its attentions, of its feed-forward networks and of its queries.
    fn parameters(&self) -> u64 {
        let [d, queries] = [self.d_model, self.queries].map(|size| size as u64);
        let stack = |layers: usize, attentions: u64, d_ff: usize| {
            let layer = d.saturating_mul(4 * attentions * d + 2 * d_ff as u64);
            layer.saturating_mul(layers as u64)
        };
        let encoder = stack(self.encoder_layers, 1, self.d_ff[0]);
        encoder.saturating_add(stack(self.decoder_layers, 2, self.d_ff[1])).saturating_add(queries * d)
    }

    /// The layers of the encoder and of the decoder.
    pub(super) fn stacks(&self) -> Result<(StackConfig, StackConfig), Error> {
        let stack = |layers, i: usize| -> Result<StackConfig, Error> {
            let attention = MultiHeadConfig::new(self.d_model, self.h[i])
                .map_err(|error| error.in_words(&[("h", ["h", "decoder_attention_heads"][i])]))?;
            let attention = MultiHeadConfig { dropout: self.attention_dropout, ..attention };
            Ok(StackConfig {
                activation: self.activation,
                dropout: self.dropout,
                ..StackConfig::new(layers, attention, self.d_ff[i])
            })
        };
        Ok((stack(self.encoder_layers, 0)?, stack(self.decoder_layers, 1)?))
    }
}

/// transformers expects an integer in the JSON if the value is one.
fn whole(x: f64) -> Value {
    if x.fract() == 0.0 && x.abs() < 1e9 { json!(x as i64) } else { json!(x) }
}
