//! What settings are where nobody says otherwise: the recipe of the paper, or of each task what its users expect.

use super::{Measure, Norm, PrecisionChoice, Settings, TaskKind, TokenizerKind};
use crate::schedule::Schedule;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            task: TaskKind::Translate,
            from: None,
            source: Vec::new(),
            target: Vec::new(),
            valid_source: Vec::new(),
            valid_target: Vec::new(),
            hold_out: 0,
            source_field: "source".to_owned(),
            target_field: "target".to_owned(),
            prefix: String::new(),
            source_language: None,
            target_language: None,
            longest: 256,
            ratio: 9.0,
            tokenizer: None,
            tokenizer_kind: TokenizerKind::Bpe,
            vocab_size: 8000,
            character_coverage: 1.0,
            bpe_dropout: 0.0,
            preset: "small".to_owned(),
            d_model: None,
            heads: None,
            d_ff: None,
            encoder_layers: None,
            decoder_layers: None,
            dropout: None,
            attention_dropout: None,
            norm: Norm::Post,
            image_size: None,
            patch_size: None,
            scale: [1.0; 2],
            hflip: 0.0,
            color_jitter: Vec::new(),
            color_jitter_prob: 1.0,
            grayscale_prob: 0.0,
            gaussian_blur_prob: 0.0,
            solarize_prob: 0.0,
            reprob: 0.0,
            mixup: 0.0,
            global_crops_scale: [0.4, 1.0],
            local_crops_scale: [0.05, 0.4],
            local_crops_number: 8,
            local_crops_size: None,
            out_dim: 4096,
            hidden_dim: 2048,
            bottleneck_dim: 256,
            momentum_teacher: 0.996,
            warmup_teacher_temp: 0.04,
            teacher_temp: 0.04,
            warmup_teacher_temp_steps: 0,
            freeze_last_layer: 0,
            batch_tokens: 8192,
            batch_size: None,
            accumulate: 1,
            schedule: Schedule::Paper,
            schedule_steps: None,
            mask_share: 0.15,
            learning_rate: None,
            last_learning_rate: 0.0,
            warmup: 4000,
            beta1: 0.9,
            beta2: 0.98,
            epsilon: 1e-9,
            weight_decay: 0.0,
            weight_decay_end: None,
            clip: 0.0,
            label_smoothing: 0.1,
            ema: 0.0,
            average: 0,
            steps: None,
            epochs: None,
            minutes: None,
            patience: None,
            early_stopping: Measure::Loss,
            validate_every: 500,
            validate_lines: 1000,
            validate_beam: 1,
            save_every: None,
            keep: 3,
            log_every: 50,
            seed: 1,
            precision: PrecisionChoice::Auto,
            threads: None,
        }
    }
}

impl Settings {
    /// The defaults of a task. But for a translator's they are what transformers fine-tunes with, in batches of 32 texts of a BERT.
    pub fn of(task: TaskKind) -> Settings {
        let measure = match task {
            TaskKind::Translate => return Settings::default(),
            TaskKind::Lm | TaskKind::Mlm | TaskKind::Seq2Seq => Measure::Loss,
            TaskKind::Classify | TaskKind::ClassifyImages => Measure::Accuracy,
            TaskKind::Tag | TaskKind::Answer => Measure::F1,
            TaskKind::Detect => return Settings::of_pictures_with_boxes(),
            TaskKind::Dino => return Settings::of_pictures_without_labels(),
        };
        let is_encoder =
            matches!(task, TaskKind::Mlm | TaskKind::Classify | TaskKind::Tag | TaskKind::Answer);
        Settings {
            task,
            longest: match task {
                TaskKind::Lm => 1024,
                TaskKind::Answer => 384,
                // Pictures have as many tokens as their size says.
                TaskKind::ClassifyImages => 1 << 16,
                _ => 512,
            },
            tokenizer_kind: match task {
                TaskKind::Seq2Seq => TokenizerKind::Unigram,
                TaskKind::Lm => TokenizerKind::Bpe,
                _ => TokenizerKind::WordPiece,
            },
            batch_tokens: match task {
                TaskKind::ClassifyImages => 1 << 20,
                _ if is_encoder => 16_384,
                _ => 8192,
            },
            batch_size: match task {
                TaskKind::ClassifyImages => Some(64),
                _ => is_encoder.then_some(32),
            },
            // Each validation writes a text for each.
            validate_lines: if task == TaskKind::Seq2Seq { 200 } else { 1000 },
            schedule: Schedule::Linear,
            beta2: 0.999,
            epsilon: 1e-8,
            clip: 1.0,
            label_smoothing: 0.0,
            early_stopping: measure,
            ..Settings::default()
        }
    }

    /// The defaults of DETR, but for the batch and the learning rate, which suit small models.
    fn of_pictures_with_boxes() -> Settings {
        Settings {
            task: TaskKind::Detect,
            // Pictures have as many tokens as their size says.
            longest: 1 << 16,
            // As many pixels as two photos have in the size that DETR reads.
            batch_tokens: 1 << 15,
            batch_size: Some(16),
            schedule: Schedule::Linear,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 1e-4,
            clip: 0.1,
            label_smoothing: 0.0,
            early_stopping: Measure::Ap,
            ..Settings::default()
        }
    }

    /// The defaults of DINO, but for the sizes of its head and of a batch, which suit small models.
    fn of_pictures_without_labels() -> Settings {
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
}
