//! What transformers calls the weights of a DETR. The backbone has the names of timm, or those of transformers' own ResNet.

use crate::names::{Names, Rule};

/// The names of one backbone, and those that both have.
macro_rules! names {
    ($($of_backbone:expr),* $(,)?) => {
        Names {
            rules: &[
                $($of_backbone,)*
                Rule::new("projection.{}", "model.input_projection.{}").channels_first(),
                Rule::new("queries.weight", "model.query_position_embeddings.weight"),
                Rule::new("encoder.layers.{}.self_attn.{}.{}", "model.encoder.layers.{}.self_attn.{}.{}"),
                Rule::new("encoder.layers.{}.{}.{}", "model.encoder.layers.{}.{}.{}"),
                Rule::new("decoder.layers.{}.self_attn.{}.{}", "model.decoder.layers.{}.self_attn.{}.{}"),
                Rule::new("decoder.layers.{}.encoder_attn.{}.{}", "model.decoder.layers.{}.encoder_attn.{}.{}"),
                Rule::new("decoder.layers.{}.{}.{}", "model.decoder.layers.{}.{}.{}"),
                Rule::new("decoder.layer_norm.{}", "model.decoder.layernorm.{}"),
                Rule::new("classes.{}", "class_labels_classifier.{}"),
                Rule::new("boxes.layers.{}.{}", "bbox_predictor.layers.{}.{}"),
            ],
            prefix: "",
            old_endings: &[],
            buffers: &COUNTS,
            heads: &["mask_head.", "bbox_attention."],
            tied: &[],
        }
    };
}

/// PyTorch counts the batches that a norm was trained with. Inference does not need the count.
const COUNTS: [&str; 5] = [
    "model.backbone.conv_encoder.model.{}.num_batches_tracked",
    "model.backbone.conv_encoder.model.{}.{}.{}.num_batches_tracked",
    "model.backbone.conv_encoder.model.{}.{}.{}.{}.num_batches_tracked",
    "model.backbone.conv_encoder.model.embedder.embedder.normalization.num_batches_tracked",
    "model.backbone.conv_encoder.model.encoder.stages.{}.layers.{}.{}.{}.normalization.num_batches_tracked",
];

/// A part of the backbone, by our name and theirs.
macro_rules! part {
    ([$($ours:literal),*], [$($theirs:literal),*]) => {
        Rule::new(
            concat!("backbone.", $($ours),*),
            concat!("model.backbone.conv_encoder.model.", $($theirs),*),
        )
        .channels_first()
    };
}

/// Those of timm, which are ours.
pub(super) static TIMM: Names = names![
    part!(["{}.{}"], ["{}.{}"]),
    part!(["{}.{}.{}.{}"], ["{}.{}.{}.{}"]),
    part!(["{}.{}.downsample.{}.{}"], ["{}.{}.downsample.{}.{}"]),
];

macro_rules! stages {
    ($([$layer:literal, $stage:literal]),*) => {
        names![
            part!(["conv1.{}"], ["embedder.embedder.convolution.{}"]),
            part!(["bn1.{}"], ["embedder.embedder.normalization.{}"]),
            $(
                part!([$layer, ".{}.conv1.{}"], [$stage, ".layers.{}.layer.0.convolution.{}"]),
                part!([$layer, ".{}.bn1.{}"], [$stage, ".layers.{}.layer.0.normalization.{}"]),
                part!([$layer, ".{}.conv2.{}"], [$stage, ".layers.{}.layer.1.convolution.{}"]),
                part!([$layer, ".{}.bn2.{}"], [$stage, ".layers.{}.layer.1.normalization.{}"]),
                part!([$layer, ".{}.conv3.{}"], [$stage, ".layers.{}.layer.2.convolution.{}"]),
                part!([$layer, ".{}.bn3.{}"], [$stage, ".layers.{}.layer.2.normalization.{}"]),
                part!([$layer, ".{}.downsample.0.{}"], [$stage, ".layers.{}.shortcut.convolution.{}"]),
                part!([$layer, ".{}.downsample.1.{}"], [$stage, ".layers.{}.shortcut.normalization.{}"]),
            )*
        ]
    };
}

/// Those of transformers' ResNet.
pub(super) static RESNET: Names = stages![
    ["layer1", "encoder.stages.0"],
    ["layer2", "encoder.stages.1"],
    ["layer3", "encoder.stages.2"],
    ["layer4", "encoder.stages.3"]
];
