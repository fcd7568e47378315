//! The families that share ViT's encoder, and what tells each from ViT.

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
    /// DeiT: with a second token before the patches, which learned from a teacher.
    Deit,
    /// DINOv2: with layer scale.
    Dinov2,
    /// DINOv2 with tokens that nothing is read from.
    Dinov2WithRegisters,
}

/// What a family says of itself in files.
#[derive(Debug)]
pub(super) struct Particulars {
    /// `model_type` in `config.json`.
    pub model_type: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// The class of transformers for each task, in the order of [`Task::ALL`], if there is one.
    pub classes: [Option<&'static str>; Task::ALL.len()],
    /// What its weights are called.
    pub names: &'static Names,
    /// How positions get another size.
    pub resizing: Resizing,
    /// The side of a patch, where `config.json` says nothing of it.
    pub patch_size: usize,
    /// What norms add to the variance, where it says nothing of that.
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

    /// What people call it.
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

    /// The family that a configuration names: by its type, or by the class that it was saved from.
    pub(super) fn find(model_type: &str, architecture: Option<&str>) -> Option<Relative> {
        let by_type = |relative: &Relative| relative.particulars().model_type == model_type;
        let by_class = |relative: &Relative| relative.particulars().classes.contains(&architecture);
        let found = Relative::ALL.into_iter().find(by_type);
        found.or_else(|| {
            Relative::ALL.into_iter().find(|relative| architecture.is_some() && by_class(relative))
        })
    }

    /// Whether a token behind the first learned from a teacher.
    pub(super) fn is_distilled(self) -> bool {
        self == Relative::Deit
    }

    /// Whether it is a DINOv2: its classes see the mean of the patches, too, and it has no dense layer over the first token.
    pub(super) fn is_dinov2(self) -> bool {
        matches!(self, Relative::Dinov2 | Relative::Dinov2WithRegisters)
    }
}
