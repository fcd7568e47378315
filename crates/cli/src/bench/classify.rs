//! `attentive bench classify`: how fast pictures become classes or vectors.
//!
//! Pixels are random and ready: what is timed is the model alone. A batch is computed several times, and the middle time counts.

use super::{median, shares};
use crate::error::Error;
use crate::machine::peak_mb;
use crate::model::Model;
use crate::options::{Compute, between};
use crate::output;
use crate::precision::DecodingPrecision;
use attentive_model::families::vit::{Batch, Picture, Task, Vit, VitConfig};
use attentive_tasks::cosine;
use attentive_tensor::{Backend, CpuBackend, Distribution, Precision, Random, Tape};
use clap::Args;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;

/// The options of `attentive bench classify`.
#[derive(Args)]
pub(crate) struct Classify {
    /// Model folder, with config.json and model.safetensors; or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|NAME")]
    model: Model,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    precision: DecodingPrecision,
    /// Number of pictures to compute at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = between::<1, 1024>)]
    batch: usize,
    /// Number of times to compute the batch; the median time is printed
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = between::<1, 1000>)]
    repeat: usize,
    /// Print one line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    peer: String,
    /// The model.
    shape: String,
    batch: usize,
    pictures_per_s: f64,
    ms: f64,
    /// The least cosine between vectors of this precision and of f32.
    cosine: f32,
    peak_mb: Option<f64>,
    /// Of the time, for each kind of kernel.
    #[serde(serialize_with = "shares::as_object")]
    shares: Vec<(&'static str, f64)>,
}

/// Pictures whose vectors are compared with those of f32.
const COMPARED: usize = 8;

pub(crate) fn run(classify: &Classify) -> Result<(), Error> {
    let cpu = classify.compute.cpu()?;
    let (precision, int8) = classify.precision.of_encoder(cpu.isa);
    let name = if int8 { "int8".to_owned() } else { precision.to_string() };
    let folder = classify.model.folder()?;
    let task = Task::of(&folder)?;
    let backend_of = |precision| CpuBackend::new(cpu.clone()).with_precision(precision).shared();
    let backend = backend_of(precision);
    let load = if int8 { Vit::load_in_int8 } else { Vit::load_packed };
    let model = load(&backend, &folder, task)?;
    let pixels = pixels(&*backend, model.config());
    let found = vectors(&backend, &model, &pixels[..COMPARED]);
    let pictures: Vec<Vec<f32>> = pixels.iter().cycle().take(classify.batch).cloned().collect();
    compute(&backend, &model, &pictures)?;
    backend.take_profile();
    let mut seconds = Vec::new();
    for _ in 0..classify.repeat {
        let begin = Instant::now();
        compute(&backend, &model, &pictures)?;
        seconds.push(begin.elapsed().as_secs_f64());
    }
    let shares = shares::shares(&*backend, seconds.iter().sum());
    let (seconds, peak_mb) = (median(&mut seconds), peak_mb());
    let exact = backend_of(Precision::F32);
    let exact = vectors(&exact, &Vit::load_packed(&exact, &folder, task)?, &pixels[..COMPARED]);
    let report = Report {
        peer: format!("attentive {} {} {name}", env!("CARGO_PKG_VERSION"), cpu.isa),
        shape: classify.model.name(),
        batch: classify.batch,
        pictures_per_s: classify.batch as f64 / seconds,
        ms: seconds * 1e3,
        cosine: found.iter().zip(&exact).map(|(found, exact)| cosine(found, exact)).fold(1.0, f32::min),
        peak_mb,
        shares,
    };
    if classify.json { output::json(&report) } else { print(&report) }
}

/// Normally distributed pictures of the size that the model was trained with.
fn pixels(backend: &dyn Backend, config: &VitConfig) -> Vec<Vec<f32>> {
    let [height, width] = config.image_size;
    let shape = [COMPARED, config.channels * height * width];
    let numbers = backend.random(shape.into(), Distribution::Normal { deviation: 1.0 }, Random::new(1));
    backend.download_f32(&numbers).chunks_exact(shape[1]).map(<[f32]>::to_vec).collect()
}

fn batch(backend: &dyn Backend, model: &Vit, pictures: &[Vec<f32>]) -> Batch {
    let [height, width] = model.config().image_size;
    let pictures: Vec<Picture> = pictures.iter().map(|numbers| Picture { height, width, numbers }).collect();
    Batch::new(backend, model.config(), &pictures)
}

/// From pixels to what the model answers: logits, or vectors where it has no head.
fn compute(backend: &Arc<dyn Backend>, model: &Vit, pictures: &[Vec<f32>]) -> Result<(), Error> {
    let tape = Tape::inference(backend);
    let batch = batch(&**backend, model, pictures);
    let hidden = model.encode(&tape, &batch);
    let answer = match model.task() {
        Task::Hidden => model.vectors(&tape, &hidden, &batch),
        _ => model.logits(&tape, &hidden, &batch)?,
    };
    backend.download_f32(answer.value());
    Ok(())
}

fn vectors(backend: &Arc<dyn Backend>, model: &Vit, pictures: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let tape = Tape::inference(backend);
    let batch = batch(&**backend, model, pictures);
    let hidden = model.encode(&tape, &batch);
    let vectors = model.vectors(&tape, &hidden, &batch);
    backend.download_f32(vectors.value()).chunks_exact(model.config().d_model).map(<[f32]>::to_vec).collect()
}

fn print(report: &Report) -> Result<(), Error> {
    let mut rows = vec![
        ["pictures/s".to_owned(), format!("{:.1}", report.pictures_per_s)],
        [format!("ms for {}", report.batch), format!("{:.1}", report.ms)],
        ["cosine to f32".to_owned(), format!("{:.5}", report.cosine)],
    ];
    rows.extend(report.peak_mb.map(|peak| ["peak MB".to_owned(), format!("{peak:.0}")]));
    rows.extend(shares::rows(&report.shares));
    output::table(&rows, 1)
}
