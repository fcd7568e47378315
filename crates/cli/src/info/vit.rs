//! What a ViT is, or one of its relatives.

use super::left::Left;
use crate::error::Error;
use crate::words;
use attentive_image::Processor;
use attentive_model::families::vit::{Task, Vit};
use attentive_tensor::CpuBackend;
use serde::Serialize;
use std::path::Path;

/// What there is to say about a model.
#[derive(Serialize)]
pub(super) struct Report {
    family: &'static str,
    architecture: &'static str,
    /// The commands that it is for.
    commands: &'static [&'static str],
    parameters: usize,
    d_model: usize,
    heads: usize,
    d_ff: usize,
    layers: usize,
    /// Height and width, in pixels.
    image_size: [usize; 2],
    patch_size: [usize; 2],
    /// Of a picture of that size.
    tokens: usize,
    registers: usize,
    /// Whether the folder says how pictures are made ready.
    has_processor: bool,
    labels: Vec<String>,
    #[serde(flatten)]
    left: Left,
}

impl Report {
    pub(super) fn read(folder: &Path) -> Result<Report, Error> {
        let backend = CpuBackend::from_env().map_err(attentive_train::Error::from)?.shared();
        let task = Task::of(folder)?;
        let model = Vit::load_shapes(&backend, folder, task)?;
        let config = model.config();
        Ok(Report {
            family: config.relative.title(),
            architecture: config.relative.architecture(task).unwrap_or_default(),
            commands: if task.has_labels() { &["classify", "embed"] } else { &["embed"] },
            parameters: model.parameter_count(),
            d_model: config.d_model,
            heads: config.h,
            d_ff: config.d_ff,
            layers: config.layers,
            image_size: config.image_size,
            patch_size: config.patch_size,
            tokens: config.tokens(),
            registers: config.registers,
            has_processor: Processor::of(folder).is_ok(),
            labels: if task.has_labels() { config.labels.clone() } else { Vec::new() },
            left: Left::of(model.unused()),
        })
    }

    pub(super) fn rows(&self) -> Vec<[String; 2]> {
        let row = |name: &str, value: String| [name.to_owned(), value];
        let size = |[height, width]: [usize; 2]| format!("{width} × {height}");
        let mut rows = vec![
            row("family", format!("{} ({})", self.family, self.architecture)),
            row(
                "command",
                self.commands.iter().map(|name| format!("attentive {name}")).collect::<Vec<_>>().join(", "),
            ),
            row("layers", self.layers.to_string()),
            row("d_model", format!("{}, {} heads", self.d_model, self.heads)),
            row("d_ff", self.d_ff.to_string()),
            row("pictures", format!("{} pixels, {} tokens", size(self.image_size), self.tokens)),
            row("patches", format!("{} pixels", size(self.patch_size))),
            row("parameters", words::thousands(self.parameters)),
        ];
        if self.registers > 0 {
            rows.push(row("registers", self.registers.to_string()));
        }
        if !self.has_processor {
            rows.push(row(
                "missing",
                "preprocessor_config.json, without which no picture can be read".to_owned(),
            ));
        }
        match self.labels.len() {
            0 => {}
            1..=20 => rows.push(row("labels", self.labels.join(", "))),
            many => {
                rows.push(row("labels", format!("{} and {} more", self.labels[..10].join(", "), many - 10)))
            }
        }
        rows.extend(self.left.rows());
        rows
    }
}
