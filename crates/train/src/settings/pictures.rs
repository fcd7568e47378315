//! Settings of tasks of pictures, as models and augmentations take them.

use super::{Measure, Settings, TaskKind};
use crate::Error;
use crate::corpus::pictures::{Augment, ColorJitter};
use crate::schedule::Schedule;
use attentive_model::families::detr::DetrConfig;
use attentive_model::families::vit::VitConfig;
use attentive_model::layers::ProjectionSizes;

/// What is done to pictures before a ViT learns from them.
pub(super) const AUGMENTATIONS: [&str; 9] = [
    "scale",
    "hflip",
    "color_jitter",
    "color_jitter_prob",
    "grayscale_prob",
    "gaussian_blur_prob",
    "solarize_prob",
    "reprob",
    "mixup",
];

/// Settings that only `dino` has.
pub(super) const OF_DINO: [&str; 12] = [
    "global_crops_scale",
    "local_crops_scale",
    "local_crops_number",
    "local_crops_size",
    "out_dim",
    "hidden_dim",
    "bottleneck_dim",
    "momentum_teacher",
    "warmup_teacher_temp",
    "teacher_temp",
    "warmup_teacher_temp_steps",
    "freeze_last_layer",
];

impl Settings {
    /// The defaults of DINO, but for the sizes of its head and of a batch, which suit small models.
    pub(super) fn of_pictures_without_labels() -> Settings {
        Settings {
            task: TaskKind::Dino,
            longest: 1 << 16,
            batch_tokens: 1 << 20,
            batch_size: Some(64),
            schedule: Schedule::Cosine,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.04,
            weight_decay_end: Some(0.4),
            clip: 3.0,
            label_smoothing: 0.0,
            early_stopping: Measure::Accuracy,
            hflip: 0.5,
            color_jitter: vec![0.4, 0.4, 0.2, 0.1],
            color_jitter_prob: 0.8,
            grayscale_prob: 0.2,
            gaussian_blur_prob: 1.0,
            solarize_prob: 0.2,
            ..Settings::default()
        }
    }

    /// The sizes of a ViT for pictures of this height and width.
    pub fn vit(&self, size: [usize; 2]) -> Result<VitConfig, attentive_model::Error> {
        let preset = VitConfig::preset(&self.preset)?;
        let d_model = self.d_model.unwrap_or(preset.d_model);
        let patch = self.patch_size.unwrap_or(match size[0].min(size[1]) {
            0..=48 => 4,
            49..=96 => 8,
            _ => 16,
        });
        let config = VitConfig {
            image_size: size,
            patch_size: [patch; 2],
            d_model,
            h: self.heads.unwrap_or(if self.d_model.is_some() { (d_model / 64).max(1) } else { preset.h }),
            d_ff: self.d_ff.unwrap_or(4 * d_model),
            layers: self.encoder_layers.unwrap_or(preset.layers),
            dropout: self.dropout.map_or(preset.dropout, |p| p as f32),
            attention_dropout: self.attention_dropout.map_or(preset.attention_dropout, |p| p as f32),
            pooler: (d_model, preset.pooler.1),
            ..preset
        };
        config.check()?;
        Ok(config)
    }

    /// The sizes of a DETR with these classes.
    pub fn detr(&self, labels: Vec<String>) -> Result<DetrConfig, attentive_model::Error> {
        let preset = DetrConfig::preset(&self.preset, labels)?;
        let config = DetrConfig {
            d_model: self.d_model.unwrap_or(preset.d_model),
            h: self.heads.map_or(preset.h, |h| [h; 2]),
            d_ff: self.d_ff.map_or(preset.d_ff, |d_ff| [d_ff; 2]),
            encoder_layers: self.encoder_layers.unwrap_or(preset.encoder_layers),
            decoder_layers: self.decoder_layers.unwrap_or(preset.decoder_layers),
            dropout: self.dropout.map_or(preset.dropout, |p| p as f32),
            attention_dropout: self.attention_dropout.map_or(preset.attention_dropout, |p| p as f32),
            ..preset
        };
        config.check()?;
        Ok(config)
    }

    /// What is done to pictures before they are learned from.
    pub(crate) fn augment(&self) -> Augment {
        Augment {
            scale: self.scale,
            hflip: self.hflip,
            color_jitter: ColorJitter::of(&self.color_jitter).unwrap_or_default(),
            color_jitter_prob: self.color_jitter_prob,
            grayscale_prob: self.grayscale_prob,
            gaussian_blur_prob: self.gaussian_blur_prob,
            solarize_prob: self.solarize_prob,
            reprob: self.reprob,
        }
    }

    /// What is done to the views of DINO: to each of the global ones, and to those that are local.
    ///
    /// The first global view is blurred as often as the settings say, the second a tenth as often, a local one half as often. Only the
    /// second is solarized.
    pub(crate) fn augment_views(&self) -> [Augment; 3] {
        let view = |scale, blur: f64, solarize_prob| Augment {
            scale,
            gaussian_blur_prob: blur * self.gaussian_blur_prob,
            solarize_prob,
            ..self.augment()
        };
        [
            view(self.global_crops_scale, 1.0, 0.0),
            view(self.global_crops_scale, 0.1, self.solarize_prob),
            view(self.local_crops_scale, 0.5, 0.0),
        ]
    }

    /// The sizes of DINO's head behind a model of this width.
    pub fn projection(&self, d_model: usize) -> ProjectionSizes {
        ProjectionSizes {
            d_model,
            hidden: self.hidden_dim,
            bottleneck: self.bottleneck_dim,
            out: self.out_dim,
        }
    }

    /// The temperature of DINO's teacher at a step, counted from 1.
    pub(crate) fn teacher_temp(&self, step: u64) -> f64 {
        let warmup = self.warmup_teacher_temp_steps as f64;
        let done = (step.saturating_sub(1) as f64 / warmup.max(1.0)).min(1.0);
        if warmup > 0.0 {
            self.warmup_teacher_temp + done * (self.teacher_temp - self.warmup_teacher_temp)
        } else {
            self.teacher_temp
        }
    }

    /// Refuses what DINO cannot learn with.
    pub(super) fn check_dino(&self) -> Result<(), Error> {
        check_scale("global_crops_scale", self.global_crops_scale)?;
        check_scale("local_crops_scale", self.local_crops_scale)?;
        for (name, number, least, most) in [
            ("local_crops_number", self.local_crops_number, 0, 64),
            ("local_crops_size", self.local_crops_size.unwrap_or(1), 1, 1 << 14),
            ("out_dim", self.out_dim, 2, 1 << 18),
            ("hidden_dim", self.hidden_dim, 1, 1 << 16),
            ("bottleneck_dim", self.bottleneck_dim, 1, 1 << 16),
        ] {
            if !(least..=most).contains(&number) {
                let problem = format!("must be from {least} to {most}, not {number}");
                return Err(Error::setting(name, problem));
            }
        }
        if !(0.0..=1.0).contains(&self.momentum_teacher) {
            let problem = format!("must be from 0 to 1, not {}", self.momentum_teacher);
            return Err(Error::setting("momentum_teacher", problem));
        }
        for (name, temperature) in
            [("warmup_teacher_temp", self.warmup_teacher_temp), ("teacher_temp", self.teacher_temp)]
        {
            if !(temperature > 0.0 && temperature.is_finite()) {
                return Err(Error::setting(name, format!("must be above 0, not {temperature}")));
            }
        }
        Ok(())
    }

    /// Refuses augmentations that cannot be.
    pub(super) fn check_augmentations(&self) -> Result<(), Error> {
        check_scale("scale", self.scale)?;
        for (name, p) in [
            ("hflip", self.hflip),
            ("color_jitter_prob", self.color_jitter_prob),
            ("grayscale_prob", self.grayscale_prob),
            ("gaussian_blur_prob", self.gaussian_blur_prob),
            ("solarize_prob", self.solarize_prob),
            ("reprob", self.reprob),
        ] {
            if !(0.0..=1.0).contains(&p) {
                return Err(Error::setting(name, format!("must be from 0 to 1, not {p}")));
            }
        }
        if !(self.mixup >= 0.0 && self.mixup.is_finite()) {
            return Err(Error::setting("mixup", format!("must be 0 or above, not {}", self.mixup)));
        }
        let refused = |problem: String| Err(Error::setting("color_jitter", problem));
        match ColorJitter::of(&self.color_jitter) {
            None if self.color_jitter.is_empty() => Ok(()),
            None => refused(format!(
                "must be one, three or four numbers, not {}: brightness, contrast, saturation, hue",
                self.color_jitter.len()
            )),
            Some(jitter) if !(0.0..=0.5).contains(&jitter.hue) => {
                refused(format!("the hue must be from 0 to 0.5, not {}", jitter.hue))
            }
            Some(_) => match self.color_jitter.iter().find(|number| !(number.is_finite() && **number >= 0.0))
            {
                Some(number) => refused(format!("must be 0 or above, not {number}")),
                None => Ok(()),
            },
        }
    }
}

/// Refuses shares of an area that cannot be.
fn check_scale(name: &'static str, [least, most]: [f64; 2]) -> Result<(), Error> {
    if least > 0.0 && least <= most && most <= 1.0 {
        return Ok(());
    }
    let problem =
        format!("must be two numbers above 0 and at most 1, the smaller one first, not {least} and {most}");
    Err(Error::setting(name, problem))
}
