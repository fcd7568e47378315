//! Settings of tasks of pictures, as augmentations take them.

use super::Settings;
use crate::Error;
use crate::corpus::pictures::{Augment, ColorJitter};

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
