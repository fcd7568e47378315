//! `attentive serve`: a server for translation, embeddings and classes of texts and pictures, and a page that shows what a model looks at.

use crate::error::Error;
use crate::interrupt;
use crate::machine;
use crate::model::Model;
use crate::options::{Compute, Decoders, between};
use crate::precision::DecodingPrecision;
use crate::{output, words};
use attentive_serve::{Does, Engine, Limits, ModelPlace, Served, Server, Settings};
use attentive_tensor::{Backend, CpuBackend, Precision};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::io::stderr;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tracing_subscriber::filter::LevelFilter;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// Model folder to serve, under the name of the folder or NAME, or a model of the Hugging Face Hub by its name: a translation
    /// model, a T5, a BART, a GPT-2 model, or a BERT model that embeds, classifies or tags texts, fills masks, ranks texts or answers
    /// questions, a ViT that classifies or embeds pictures, or a DETR that finds things in pictures; repeat for several models
    /// [default: the built-in model of `attentive demo`]
    #[arg(long, value_name = "[NAME=]DIR|HUB_NAME")]
    model: Vec<String>,
    /// Address to listen on; 0.0.0.0 accepts connections from other machines
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port to listen on; 0 takes any free port
    #[arg(long, default_value_t = 8080)]
    port: u16,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in; with int8 products, activations of encoders are in bf16 on processors with AMX, all others in f32
    /// [default: int8 if the model is stored in int8, else f32]
    #[arg(long, value_name = "PRECISION")]
    precision: Option<DecodingPrecision>,
    /// Number of sentences that each thread translates at once
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = between::<1, 4096>)]
    batch: usize,
    /// Maximum number of sentences and texts in the queue; further requests get status 503 with Retry-After
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = between::<1, 1_000_000>)]
    queue: usize,
    /// Accept only requests with an API key from FILE, one key per line
    #[arg(long, value_name = "FILE", help_heading = ACCESS)]
    api_keys: Option<PathBuf>,
    /// Allow web pages of ORIGIN, such as `https://example.org`, or * for all; repeat for several
    #[arg(long, value_name = "ORIGIN", help_heading = ACCESS)]
    cors: Vec<String>,
    /// Answer requests to host NAME, such as `translate.example.org`; repeat for several [default: the names of this machine's
    /// loopback if --host is loopback, else any]
    #[arg(long, value_name = "NAME", help_heading = ACCESS)]
    allow_host: Vec<String>,
    /// Maximum size of a request body in bytes
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = between::<1024, 1_073_741_824>, help_heading = LIMITS)]
    max_body: usize,
    /// Maximum size of a request body with pictures in bytes
    #[arg(long, value_name = "N", default_value_t = 20 << 20, value_parser = between::<1024, 1_073_741_824>, help_heading = LIMITS)]
    max_picture_body: usize,
    /// Maximum length of a text in characters
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = between::<1, 10_000_000>, help_heading = LIMITS)]
    max_characters: usize,
    /// Maximum number of texts in a request
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = between::<1, 1_000_000>, help_heading = LIMITS)]
    max_texts: usize,
    /// Maximum number of pictures in a request
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = between::<1, 1024>, help_heading = LIMITS)]
    max_pictures: usize,
    /// Maximum beam size and number of results
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = between::<1, 1024>, help_heading = LIMITS)]
    max_beam: usize,
    /// Maximum time for a request in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = between::<1, 86_400>, help_heading = LIMITS)]
    timeout: usize,
    /// Maximum number of connections from one address; further ones are closed unless one of them is idle [default: no limit]
    #[arg(long, value_name = "N", value_parser = between::<1, 1_000_000>, help_heading = LIMITS)]
    per_address: Option<usize>,
    /// Format of the request log on stderr
    #[arg(long, value_enum, default_value = "text", help_heading = LOGS)]
    log: LogFormat,
    /// Log the texts of requests as well
    #[arg(long, help_heading = LOGS)]
    log_texts: bool,
}

const ACCESS: &str = "Access";
const LIMITS: &str = "Limits";
const LOGS: &str = "Logs";

const EXAMPLES: &str = "\
Examples:
  attentive serve                           serve the model of the demo at http://127.0.0.1:8080
  attentive serve --model opus-mt-en-de --model fr=opus-mt-en-fr
  attentive serve --model all-MiniLM-L6-v2  serve embeddings
  attentive serve --model gpt2              serve continuations of prompts
  attentive serve --model bart-large-cnn    serve summaries
  attentive serve --model nllb-200-distilled-600M
                                            serve translations among many languages
  attentive serve --model google/vit-base-patch16-224 --model facebook/detr-resnet-50
                                            serve classes of pictures, and boxes around what is in them
  attentive serve --model Helsinki-NLP/opus-mt-en-de
                                            download a model of the Hugging Face Hub and serve it under this name
  attentive serve --model opus-mt-en-de --host 0.0.0.0 --api-keys keys.txt --log json

  curl http://127.0.0.1:8080/translate -H 'Content-Type: application/json' \\
    -d '{\"q\": \"twenty-one\", \"source\": \"en\", \"target\": \"de\"}'
  curl http://127.0.0.1:8080/v1/embeddings -H 'Content-Type: application/json' \\
    -d '{\"model\": \"all-MiniLM-L6-v2\", \"input\": [\"A dog runs.\", \"A cat sleeps.\"]}'
  curl http://127.0.0.1:8080/v1/completions -H 'Content-Type: application/json' \\
    -d '{\"model\": \"gpt2\", \"prompt\": \"Once upon a time\", \"max_tokens\": 40, \"temperature\": 0.8}'
  curl http://127.0.0.1:8080/v1/classify -F image=@photo.jpg
  curl http://127.0.0.1:8080/v1/detect -F image=@photo.jpg -F threshold=0.7

The server works with clients of LibreTranslate (/translate, /languages, /detect), of OpenAI (/v1/completions, \
/v1/chat/completions, /v1/embeddings) and of text-embeddings-inference (/embed, /predict, /info). \
/openapi.json describes all requests. The page at / translates, and shows attention step by step. \
Ctrl-C or SIGTERM finishes the requests that have begun and then quits; a second one quits at once.";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    /// One line of text per request
    Text,
    /// One JSON object per request
    Json,
    /// Only errors
    Off,
}

pub(crate) fn run(serve: &Serve) -> Result<(), Error> {
    begin_log(serve.log);
    let named: Vec<(String, Model)> = serve.model.iter().map(|model| named(model)).collect();
    ModelPlace::must_differ(&places(&named, |model| Ok(model.written().to_owned()))?)?;
    let server = Server::bind(SocketAddr::new(serve.host, serve.port), serve.settings()?)?;
    // All checks above come before any download.
    let models = places(&named, Model::folder)?;
    let decoders = serve.compute.decoders(serve.precision)?;
    let engine = Engine {
        backends: decoders.backends.clone(),
        encoder: serve.encoder_backend()?,
        int8: decoders.int8,
    };
    let (leave, left) = oneshot::channel();
    let leave = Mutex::new(Some(leave));
    interrupt::on_signal(move || {
        if let Some(leave) = leave.lock().ok().and_then(|mut leave| leave.take()) {
            let _ = leave.send(());
        }
    });
    let address = server.address();
    let ready = move |models: &[Served]| tell(address, &decoders, models);
    Ok(server.run_and_tell(engine, models, ready, async { drop(left.await) })?)
}

/// Says what is served and where, now that requests are answered.
fn tell(address: SocketAddr, decoders: &Decoders, models: &[Served]) {
    for Served { name, int8, does, routes } in models {
        let (does, how) = match does {
            Does::Translate { options } => ("translation".to_owned(), words::search(options)),
            Does::Continue { limit } => {
                let how = format!("at most {limit} tokens in a prompt and its continuation");
                ("continuation of prompts".to_owned(), how)
            }
            Does::Embed { width, limit } => (format!("embeddings of {width} numbers"), at_most(*limit)),
            Does::Classify { labels, limit } => {
                (format!("{} classes of texts", labels.len()), at_most(*limit))
            }
            Does::FillMask { limit } => ("words for masks and embeddings".to_owned(), at_most(*limit)),
            Does::Answer { limit } => ("answers to questions and embeddings".to_owned(), at_most(*limit)),
            Does::Rerank { limit } => ("ranks of texts".to_owned(), at_most(*limit)),
            Does::Tag { labels, limit } => (format!("{} labels of words", labels.len()), at_most(*limit)),
            Does::EmbedPictures { width } => (format!("embeddings of {width} numbers"), of_pictures()),
            Does::ClassifyPictures { labels } => {
                (format!("{} classes of pictures and embeddings", labels.len()), of_pictures())
            }
            Does::Detect { labels } => (format!("boxes of {} classes", labels.len()), of_pictures()),
        };
        let (computed, routes) = (decoders.description(*int8), routes.join(", "));
        tracing::info!("model {name}: {does} in {computed}; {how}; {routes}");
    }
    // A server whose stdout is closed serves all the same.
    let _ = output::write(&format!("listening on http://{address}\n"));
}

/// What an encoder reads.
fn at_most(limit: usize) -> String {
    format!("at most {limit} tokens in a text")
}

/// What a model of pictures reads.
fn of_pictures() -> String {
    "pictures in PNG, JPEG or WebP".to_owned()
}

impl Serve {
    /// What encoders compute on: one backend with all threads, in the precision that was asked for.
    fn encoder_backend(&self) -> Result<Arc<dyn Backend>, Error> {
        let cpu = self.compute.cpu()?;
        let precision = self.precision.map_or(Precision::F32, |precision| precision.of_encoder(cpu.isa).0);
        Ok(CpuBackend::new(cpu).with_precision(precision).shared())
    }

    fn settings(&self) -> Result<Settings, Error> {
        Ok(Settings {
            batch: self.batch,
            queue: self.queue,
            keys: self.api_keys.as_deref().map(read_keys).transpose()?.unwrap_or_default(),
            origins: self.cors.clone(),
            hosts: self.allow_host.clone(),
            log_texts: self.log_texts,
            limits: Limits {
                body: self.max_body,
                picture_body: self.max_picture_body,
                characters: self.max_characters,
                texts: self.max_texts,
                pictures: self.max_pictures,
                beam: self.max_beam,
                results: self.max_beam,
                time: Duration::from_secs(self.timeout as u64),
                connections: connections(),
                connections_per_address: self.per_address,
                ..Limits::default()
            },
        })
    }
}

/// How many connections there may be: each is an open file, and models and logs need some, too.
fn connections() -> usize {
    const OTHERS: u64 = 64;
    let usual = Limits::default().connections;
    let files = machine::raise_open_files(usual as u64 + OTHERS);
    let files = files.map_or(usual as u64, |files| files.saturating_sub(OTHERS));
    usual.min(files.max(1) as usize)
}

/// A model and what it is called: `DIR`, a name on the Hub, or `NAME=` before one of them. A folder may have `=` in its own name.
fn named(model: &str) -> (String, Model) {
    let of = |text: &str| Model::from(OsString::from(text));
    match model.split_once('=') {
        Some((name, folder)) if !name.is_empty() && !Path::new(model).exists() => {
            (name.to_owned(), of(folder))
        }
        _ => (of(model).name(), of(model)),
    }
}

/// The models as the server reads them; the built-in one if there is none.
fn places(
    models: &[(String, Model)],
    folder: impl Fn(&Model) -> Result<PathBuf, Error>,
) -> Result<Vec<ModelPlace>, Error> {
    if models.is_empty() {
        return Ok(vec![ModelPlace::numbers()]);
    }
    models.iter().map(|(name, model)| Ok(ModelPlace::named(name, folder(model)?))).collect()
}

/// The keys of a file: a line each, without empty ones and those that begin with `#`.
fn read_keys(path: &Path) -> Result<Vec<String>, Error> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::Input { input: name.clone(), source })?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let keys: Vec<String> = lines.map(str::to_owned).collect();
    if keys.is_empty() {
        return Err(Error::Line {
            input: name,
            line: 1,
            problem: "the file has no key: write one key per line".to_owned(),
        });
    }
    Ok(keys)
}

fn begin_log(format: LogFormat) {
    let log = tracing_subscriber::fmt().with_writer(stderr).with_target(false);
    match format {
        LogFormat::Text => log.with_max_level(LevelFilter::INFO).init(),
        LogFormat::Json => log.with_max_level(LevelFilter::INFO).json().flatten_event(true).init(),
        LogFormat::Off => log.with_max_level(LevelFilter::ERROR).init(),
    }
}
