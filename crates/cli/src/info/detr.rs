//! What a DETR is.

use super::left::Left;
use crate::error::Error;
use crate::words;
use attentive_model::families::detr::{BlockKind, Detr, PictureNorm};
use attentive_tensor::CpuBackend;
use serde::Serialize;
use std::path::Path;

/// What there is to say about a model.
#[derive(Serialize)]
pub(super) struct Report {
    family: &'static str,
    /// The command that it is for.
    command: &'static str,
    parameters: usize,
    backbone: &'static str,
    backbone_depths: Vec<usize>,
    backbone_widths: Vec<usize>,
    /// Groups of channels of its norms; none if they are frozen.
    backbone_groups: Option<usize>,
    d_model: usize,
    heads: [usize; 2],
    d_ff: [usize; 2],
    encoder_layers: usize,
    decoder_layers: usize,
    queries: usize,
    labels: Vec<String>,
    #[serde(flatten)]
    left: Left,
}

impl Report {
    pub(super) fn read(folder: &Path) -> Result<Report, Error> {
        let backend = CpuBackend::from_env().map_err(attentive_train::Error::from)?.shared();
        let model = Detr::load_shapes(&backend, folder)?;
        let (config, backbone) = (model.config(), &model.config().backbone);
        Ok(Report {
            family: "DETR",
            command: "detect",
            parameters: model.parameter_count(),
            backbone: match backbone.block {
                BlockKind::Basic => "ResNet of basic blocks",
                BlockKind::Bottleneck => "ResNet of bottlenecks",
            },
            backbone_depths: backbone.depths.clone(),
            backbone_widths: backbone.widths.clone(),
            backbone_groups: match backbone.norm {
                PictureNorm::Frozen => None,
                PictureNorm::Group(groups) => Some(groups),
            },
            d_model: config.d_model,
            heads: config.h,
            d_ff: config.d_ff,
            encoder_layers: config.encoder_layers,
            decoder_layers: config.decoder_layers,
            queries: config.queries,
            labels: config.labels.clone(),
            left: Left::of(model.unused()),
        })
    }

    pub(super) fn rows(&self) -> Vec<[String; 2]> {
        let row = |name: &str, value: String| [name.to_owned(), value];
        let list = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let norm =
            self.backbone_groups.map_or("frozen batch norm".to_owned(), |n| format!("norm of {n} groups"));
        let most = 8;
        let more = self.labels.len().saturating_sub(most);
        let shown = self.labels.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
        let labels = if more == 0 { shown } else { format!("{shown} and {more} more") };
        let mut rows = vec![
            row("family", self.family.to_owned()),
            row("command", format!("attentive {}", self.command)),
            row("backbone", format!("{}, {norm}", self.backbone)),
            row("its stages", format!("{} blocks", list(&self.backbone_depths))),
            row("their widths", list(&self.backbone_widths)),
            row("layers", format!("{} + {} (encoder + decoder)", self.encoder_layers, self.decoder_layers)),
            row("d_model", format!("{}, {} + {} heads", self.d_model, self.heads[0], self.heads[1])),
            row("d_ff", format!("{} + {}", self.d_ff[0], self.d_ff[1])),
            row("object queries", self.queries.to_string()),
            row("parameters", words::thousands(self.parameters)),
            row("labels", labels),
        ];
        rows.extend(self.left.rows());
        rows
    }
}
