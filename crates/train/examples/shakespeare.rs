//! nanoGPT's recipe for a character-level GPT, from the weights and on the batches of `golden/shakespeare.py`: the mean loss of the steps
//! 251 to 300 is that of PyTorch within 0.03.
//!
//! ```text
//! python golden/shakespeare.py input.txt OUT
//! cargo run --release -p attentive-train --example shakespeare -- OUT
//! ```

use attentive_model::checkpoint::Checkpoint;
use attentive_model::families::gpt2::{Gpt2, Gpt2Config};
use attentive_train::corpus::{Example, ExampleBatch};
use attentive_train::schedule::Schedule;
use attentive_train::settings::TaskKind;
use attentive_train::tasks::LearningGpt2;
use attentive_train::{Learner, Settings};
use std::error::Error;
use std::path::PathBuf;

/// The step from which on losses are compared.
const FIRST_COMPARED: u64 = 251;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: shakespeare OUT")?);
    let settings = Settings {
        schedule: Schedule::Cosine,
        schedule_steps: Some(5000),
        learning_rate: Some(1e-3),
        last_learning_rate: 1e-4,
        warmup: 100,
        beta2: 0.99,
        weight_decay: 0.1,
        ..Settings::of(TaskKind::Lm)
    };
    let backend = settings.backend()?;
    let config = Gpt2Config::load(&folder.join("model"))?;
    let model = Gpt2::load_to_learn(&backend, &folder.join("model"), &config)?;
    let mut learner = Learner::new(&backend, Box::new(LearningGpt2::new(model)), &settings);
    let rate = settings.learning_rate(config.d_model);

    let file = Checkpoint::open(folder.join("batches.safetensors"))?;
    // `[steps, texts of a batch, context + 1]`
    let (tokens, shape) = file.get("batches")?.ok_or("there are no batches")?;
    let (batch, text) = (shape[1], shape[2]);
    let mut compared = Vec::new();
    for (tokens, step) in tokens.chunks_exact(batch * text).zip(1..) {
        let example = |text: &[f32]| {
            let ids: Vec<i32> = text.iter().map(|&id| id as i32).collect();
            let (source, labels) = (ids[..ids.len() - 1].to_vec(), ids[1..].to_vec());
            Example { source, labels, ..Example::default() }
        };
        let batch = ExampleBatch { examples: tokens.chunks_exact(text).map(example).collect() };
        learner.step(&settings, step, rate.at(step), std::slice::from_ref(&batch), false)?;
        let loss = learner.take_loss() / batch.answers() as f64;
        if step == 1 || step % 25 == 0 {
            println!("step {step}: loss {loss:.4}");
        }
        if step >= FIRST_COMPARED {
            compared.push(loss);
        }
    }
    if !compared.is_empty() {
        let mean = compared.iter().sum::<f64>() / compared.len() as f64;
        println!("mean loss from step {FIRST_COMPARED} on: {mean:.4}");
    }
    Ok(())
}
