//! The families that share ViT's encoder, and how each differs from ViT.

use super::Task;
use super::names;
use crate::error::Error;
use crate::families::{ConfigFile, DEIT, DINOV2, DINOV2_WITH_REGISTERS, VIT};
use crate::layers::Resizing;
use crate::names::Names;
use std::path::Path;

/// A family that shares the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relative {
    /// ViT itself. The first DINO is one.
    Vit,
    /// DeiT: with a distillation token after the class token.
    Deit,
    /// DINOv2: with layer scale.
    Dinov2,
    /// DINOv2 with register tokens, whose outputs are not used.
    Dinov2WithRegisters,
}

/// How a family differs in its files and in its parts.
#[derive(Debug)]
pub(super) struct Particulars {
    /// `model_type` in `config.json`.
    pub model_type: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The class in transformers for each of [`Task::ALL`], if there is one.
    pub classes: [Option<&'static str>; Task::ALL.len()],
    /// The names of its weights.
    pub names: &'static Names,
    /// How positions are resized for pictures of other sizes.
    pub resizing: Resizing,
    /// The side of a patch, if `config.json` does not have it.
    pub patch_size: usize,
    /// ε of the norms, if `config.json` does not have it.
    pub epsilon: f32,
}

static VIT_PARTICULARS: Particulars = Particulars {
    model_type: VIT,
    title: "ViT",
    classes: [Some("ViTModel"), Some("ViTForImageClassification"), None],
    names: &names::VIT,
    resizing: Resizing::Plain,
    patch_size: 16,
    epsilon: 1e-12,
};

static DEIT_PARTICULARS: Particulars = Particulars {
    model_type: DEIT,
    title: "DeiT",
    classes: [
        Some("DeiTModel"),
        Some("DeiTForImageClassification"),
        Some("DeiTForImageClassificationWithTeacher"),
    ],
    names: &names::DEIT,
    ..VIT_PARTICULARS
};

static DINOV2_PARTICULARS: Particulars = Particulars {
    model_type: DINOV2,
    title: "DINOv2",
    classes: [Some("Dinov2Model"), Some("Dinov2ForImageClassification"), None],
    names: &names::DINOV2,
    resizing: Resizing::Plain,
    patch_size: 14,
    epsilon: 1e-6,
};

static DINOV2_WITH_REGISTERS_PARTICULARS: Particulars = Particulars {
    model_type: DINOV2_WITH_REGISTERS,
    title: "DINOv2 with registers",
    classes: [Some("Dinov2WithRegistersModel"), Some("Dinov2WithRegistersForImageClassification"), None],
    names: &names::DINOV2_WITH_REGISTERS,
    resizing: Resizing::Antialiased,
    patch_size: 16,
    ..DINOV2_PARTICULARS
};

impl Relative {
    const ALL: [Relative; 4] =
        [Relative::Vit, Relative::Deit, Relative::Dinov2, Relative::Dinov2WithRegisters];

    pub(super) fn particulars(self) -> &'static Particulars {
        match self {
            Relative::Vit => &VIT_PARTICULARS,
            Relative::Deit => &DEIT_PARTICULARS,
            Relative::Dinov2 => &DINOV2_PARTICULARS,
            Relative::Dinov2WithRegisters => &DINOV2_WITH_REGISTERS_PARTICULARS,
        }
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        self.particulars().title
    }

    /// The class of transformers for a task, if it has one.
    pub fn architecture(self, task: Task) -> Option<&'static str> {
        let place = Task::ALL.iter().position(|other| *other == task);
        place.and_then(|place| self.particulars().classes[place])
    }

    /// The family of a folder.
    pub fn of(folder: &Path) -> Result<Relative, Error> {
        let file = ConfigFile::open(folder)?;
        let architecture = file.architectures().first().map(String::as_str);
        Ok(Relative::find(file.model_type().unwrap_or_default(), architecture).unwrap_or(Relative::Vit))
    }

    /// The family that a configuration names: by `model_type`, or else by its class in transformers.
    pub(super) fn find(model_type: &str, architecture: Option<&str>) -> Option<Relative> {
        let by_type = |relative: &Relative| relative.particulars().model_type == model_type;
        let by_class = |relative: &Relative| relative.particulars().classes.contains(&architecture);
        let found = Relative::ALL.into_iter().find(by_type);
        found.or_else(|| {
            Relative::ALL.into_iter().find(|relative| architecture.is_some() && by_class(relative))
        })
    }

    /// Whether there is a distillation token.
    pub(super) fn is_distilled(self) -> bool {
        self == Relative::Deit
    }

    /// Whether it is a DINOv2: its classifier also reads the mean of the patches, and it has no pooler.
    pub(super) fn is_dinov2(self) -> bool {
        matches!(self, Relative::Dinov2 | Relative::Dinov2WithRegisters)
    }
}
