//! `attentive inspect`: what a model looks at, as a page or a picture.

mod pictures;
#[cfg(feature = "png")]
mod png;

use crate::dashes;
use crate::error::Error;
use crate::model::Model;
use crate::options::Compute;
use crate::output;
use crate::precision::DecodingPrecision;
use attentive_generate::{
    AttentionKind, AttentionMatrix, AttentionSelector, Generator, Inspection, Options, Request, Sizes, Step,
};
use attentive_model::families::Family;
use attentive_model::families::bert::Task;
use attentive_serve::attention::{Attention, Part, Vectors};
use attentive_serve::hidden::Hidden;
use attentive_serve::{picture, standalone};
use attentive_tasks::{Codec, Encoder, LanguageModel, ModelFolder, Split, TooLong};
use attentive_text::tokenizer::{Input, Side};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Inspect {
    /// Text to inspect; an encoder-decoder translates it first. For a model of pictures, a PNG, JPEG or WebP file
    #[arg(value_name = "TEXT", value_parser = dashes::text)]
    text: String,
    /// Model folder, with config.json, model.safetensors and a tokenizer; or a name on the Hugging Face Hub
    #[arg(long, value_name = "DIR|NAME")]
    model: Model,
    /// File to write: an interactive .html page, or an .svg or .png picture (.png of a text needs a build with
    /// `--features png`)
    #[arg(long, value_name = "FILE", value_parser = format)]
    out: (PathBuf, Format),
    /// Translation to inspect [default: the model's own translation]
    #[arg(long, value_name = "TEXT")]
    translation: Option<String>,
    /// Kind of attention to draw [default: all]
    #[arg(long)]
    kind: Option<Kind>,
    /// Layer to draw, counted from 1 [default: all]
    #[arg(long, value_name = "L", value_parser = crate::options::between::<1, 1000>)]
    layer: Option<usize>,
    /// Head to draw, counted from 1, or `mean` for the mean of all heads [default: all]
    #[arg(long, value_name = "H", value_parser = head)]
    head: Option<Head>,
    /// Patch of a picture whose attention is drawn, as ROW,COLUMN counted from 1 [default: the class token]
    #[arg(long, value_name = "R,C", value_parser = patch)]
    patch: Option<[usize; 2]>,
    #[command(flatten)]
    compute: Compute,
    /// Precision to compute in [default: int8 if the model is stored in int8, else f32]
    #[arg(long, value_name = "PRECISION")]
    precision: Option<DecodingPrecision>,
}

const EXAMPLES: &str = "\
Examples:
  attentive inspect --model opus-mt-en-de \"A dog runs.\" --out attention.html
  attentive inspect --model opus-mt-en-de \"A dog runs.\" --out heads.svg --kind cross
  attentive inspect --model opus-mt-en-de \"A dog runs.\" --out head.svg --kind cross --layer 5 --head 3
  attentive inspect --model bert-base-uncased \"A dog runs.\" --out bert.html
  attentive inspect --model gpt2 \"A dog runs because it\" --out gpt2.html
  attentive inspect --model facebook/dino-vits16 photo.jpg --out heads.png

The page needs no server and no network. With --kind, --layer and --head a picture shows one large heat map with \
the tokens on its axes. Otherwise it shows a small heat map of each head. A model of pictures shows the picture once for each head of \
the last layer, or of --layer: bright where the head selectors.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Html,
    Svg,
    Png,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// Self-attention of the encoder: from each source token to all source tokens
    Encoder,
    /// Self-attention of the decoder: from each target token to those before it; of a language model, from each token to itself and those before it
    Decoder,
    /// Cross-attention: from each target token to all source tokens
    Cross,
}

#[derive(Debug, Clone, Copy)]
enum Head {
    Mean,
    Number(usize),
}

/// What was seen of a model of these sizes.
struct Seen {
    attention: Attention,
    sizes: Sizes,
    /// Of heads, for a page.
    vectors: Vec<Vectors>,
    /// Of the steps of the model, for a page.
    hidden: Vec<Hidden>,
}

/// How many numbers the vectors of a page may have together, and how many the parts of its weights: more would make the page slow.
const MOST_NUMBERS: usize = 1_000_000;

pub(crate) fn run(inspect: &Inspect) -> Result<(), Error> {
    let (path, format) = &inspect.out;
    if cfg!(not(feature = "png")) && *format == Format::Png && !Path::new(&inspect.text).is_file() {
        return Err(Error::Usage(NO_PNG.to_owned()));
    }
    let folder = inspect.model.folder()?;
    let contents = match Family::of(&folder)? {
        Family::Vit => pictures::draw(inspect, &folder)?,
        family => inspect.draw_text(family, &folder)?,
    };
    output::to_file(path, |file| Ok(file.write_all(&contents)?))
}

#[cfg(feature = "png")]
fn png(svg: &str) -> Result<Vec<u8>, Error> {
    png::from_svg(svg)
}

#[cfg(not(feature = "png"))]
fn png(_: &str) -> Result<Vec<u8>, Error> {
    Err(Error::Usage(NO_PNG.to_owned()))
}

impl Inspect {
    /// The file of a text that a model reads.
    fn draw_text(&self, family: Family, folder: &Path) -> Result<Vec<u8>, Error> {
        let Seen { attention, sizes, vectors, hidden } = self.look(family, folder)?;
        Ok(match self.out.1 {
            Format::Html => standalone(&attention, &sizes, &vectors, &hidden).into_bytes(),
            Format::Svg => self.draw(&attention).into_bytes(),
            Format::Png => png(&self.draw(&attention))?,
        })
    }

    /// Looks into the sentence as the family of the model does.
    fn look(&self, family: Family, folder: &Path) -> Result<Seen, Error> {
        if self.patch.is_some() {
            let problem = "only pictures have patches: remove the option".to_owned();
            return Err(Error::Flag { option: "patch", problem });
        }
        match family {
            Family::Transformer | Family::T5 => self.look_into_translation(folder),
            Family::Bert => self.look_into_text(folder),
            Family::Gpt2 => self.look_into_prompt(folder),
            Family::Detr => {
                let problem = "a model that reads pictures; `attentive detect` shows what it finds";
                Err(Error::Inspect(format!("{}: {problem}", folder.display())))
            }
            Family::Vit => unreachable!("pictures are drawn otherwise"),
        }
    }

    fn name(&self) -> String {
        self.model.name()
    }

    /// The text for a model that has one stack alone, and does not translate.
    fn text_alone(&self, is_encoder: bool) -> Result<&str, Error> {
        if self.translation.is_some() {
            let problem = "the model does not translate: remove the option".to_owned();
            return Err(Error::Flag { option: "translation", problem });
        }
        let problem = match self.kind {
            Some(Kind::Decoder | Kind::Cross) if is_encoder => "an encoder alone: use --kind encoder",
            Some(Kind::Encoder | Kind::Cross) if !is_encoder => "a decoder alone: use --kind decoder",
            _ if self.text.trim().is_empty() => {
                return Err(Error::Usage("TEXT is empty: give a sentence to inspect".to_owned()));
            }
            _ => return Ok(self.text.trim()),
        };
        Err(Error::Flag { option: "kind", problem: format!("the model has {problem}") })
    }

    /// Reads the text with a decoder alone.
    fn look_into_prompt(&self, folder: &Path) -> Result<Seen, Error> {
        let text = self.text_alone(false)?;
        let decoders = self.compute.decoder(self.precision.unwrap_or(DecodingPrecision::F32))?;
        let int8 = decoders.int8.unwrap_or(false);
        let LanguageModel { copies, tokenizer, .. } =
            LanguageModel::open_on(&decoders.backends, int8, folder)?;
        let (model, tokens) = (&copies[0], tokenizer.encode(text, Side::Source)?);
        let most = model.spec().max_target;
        if tokens.len() > most {
            let problem = format!(
                "the text has {} tokens, and the model reads {most} at most: shorten it",
                tokens.len()
            );
            return Err(Error::Inspect(problem));
        }
        let sizes = model.sizes();
        let selectors =
            self.selectors(&[AttentionKind::Causal], |kind| (sizes.layers(kind), sizes.heads(kind)))?;
        // All tokens are read: the pass leaves out the last one of the target.
        let inspection = model.inspect(&tokens, &tokens[..1]);
        self.seen(&inspection, sizes, &selectors, |weights| {
            Attention::of_tokens(&self.name(), &tokenizer, &tokens, weights)
        })
    }

    /// Reads the text with an encoder alone.
    fn look_into_text(&self, folder: &Path) -> Result<Seen, Error> {
        let text = self.text_alone(true)?;
        let (backend, form) = self.compute.encoder(self.precision.unwrap_or(DecodingPrecision::F32))?;
        let encoder = Encoder::open(&backend, folder, Task::Hidden, form)?.with_too_long(TooLong::Refuse);
        let texts = encoder.read(&[Input::Text(text)])?;
        let encoding = &texts.encodings[0];
        let config = encoder.model().config();
        let inspection = encoder.inspect(encoding);
        let selectors = self.selectors(&[AttentionKind::Encoder], |_| (config.layers, config.h))?;
        self.seen(&inspection, encoder.sizes(), &selectors, |weights| {
            Attention::of_text(&self.name(), encoder.tokenizer(), encoding, weights)
        })
    }

    /// Translates the sentence if need be, and looks into it.
    fn look_into_translation(&self, folder: &Path) -> Result<Seen, Error> {
        let decoders = self.compute.decoders(self.precision)?;
        let ModelFolder { copies, codec, options, .. } = decoders.open(folder)?;
        let source = self.source(&codec)?;
        let mut generator = Generator::with_copies(copies, Options { n_best: 1, ..options })?;
        let (target, scores) = match &self.translation {
            Some(text) => {
                let mut tokens = codec.prefix(text)?;
                tokens.push(codec.spec().eos);
                (tokens, Vec::new())
            }
            None => {
                let request = Request { source: source.clone(), prefix: Vec::new() };
                let best = generator.generate([request]).next().transpose()?.unwrap_or_default();
                best.into_iter().next().map(|best| (best.tokens, best.token_scores)).unwrap_or_default()
            }
        };
        if target.len() > codec.spec().max_target {
            let problem = format!(
                "the text has more than {} tokens, the maximum of the model: shorten it",
                codec.spec().max_target
            );
            return Err(Error::Flag { option: "translation", problem });
        }
        let inspection = generator.model().inspect(&source, &target);
        let sizes = generator.model().sizes();
        let kinds = match self.kind {
            None => &[AttentionKind::Encoder, AttentionKind::Decoder, AttentionKind::Cross][..],
            Some(Kind::Encoder) => &[AttentionKind::Encoder],
            Some(Kind::Decoder) => &[AttentionKind::Decoder],
            Some(Kind::Cross) => &[AttentionKind::Cross],
        };
        let selectors = self.selectors(kinds, |kind| (sizes.layers(kind), sizes.heads(kind)))?;
        self.seen(&inspection, sizes, &selectors, |weights| {
            Attention::new(&self.name(), &codec, [&source, &target], weights).with_scores(&scores)
        })
    }

    /// What is drawn of a model: `attention` makes it of the weights, and a page has more.
    fn seen(
        &self,
        inspection: &Inspection,
        sizes: Sizes,
        selectors: &[AttentionSelector],
        attention: impl FnOnce(Weights) -> Attention,
    ) -> Result<Seen, Error> {
        let weights = weights(inspection, selectors)?;
        if self.out.1 != Format::Html {
            return Ok(Seen {
                attention: attention(weights),
                sizes,
                vectors: Vec::new(),
                hidden: Vec::new(),
            });
        }
        let parts = parts(inspection, &weights)?;
        let add = |attention: Attention, (part, weights)| attention.with_part(part, weights);
        let attention = parts.into_iter().fold(attention(weights), add);
        let step = |step| Ok(Hidden::new(step, &inspection.hidden(step)?));
        let steps = Step::all(sizes.encoder_layers, sizes.decoder_layers).into_iter();
        let hidden = steps.map(step).collect::<Result<_, Error>>()?;
        Ok(Seen { attention, sizes, vectors: vectors(inspection, selectors)?, hidden })
    }

    /// The tokens of the sentence, which must be one that the model reads at once.
    fn source(&self, codec: &Codec) -> Result<Vec<u32>, Error> {
        let mut parts = codec.cut(self.text.trim(), "", Split::Lines)?.parts;
        match parts.len() {
            0 => Err(Error::Usage("TEXT is empty: give a sentence to inspect".to_owned())),
            1 => Ok(parts.swap_remove(0).source),
            count => Err(Error::Inspect(format!(
                "the text is too long for the model, which reads it in {count} parts: inspect one sentence at a time"
            ))),
        }
    }

    /// What is to be looked at, kind by kind and layer by layer: heads, and then their mean. `sizes` are the layers and heads of a
    /// kind; what the model does not have is refused.
    fn selectors(
        &self,
        kinds: &[AttentionKind],
        sizes: impl Fn(AttentionKind) -> (usize, usize),
    ) -> Result<Vec<AttentionSelector>, Error> {
        let most = kinds.iter().map(|&kind| sizes(kind).0).min().unwrap_or(0);
        if let Some(layer) = self.layer.filter(|&layer| layer > most) {
            let problem = format!("there is no layer {layer}; the model has layers 1 to {most}");
            return Err(Error::Flag { option: "layer", problem });
        }
        let most = kinds.iter().map(|&kind| sizes(kind).1).min().unwrap_or(0);
        if let Some(Head::Number(head)) = self.head
            && head > most
        {
            let problem = format!("there is no head {head}; the model has heads 1 to {most}");
            return Err(Error::Flag { option: "head", problem });
        }
        let mut selectors = Vec::new();
        for &kind in kinds {
            let (layers, heads) = sizes(kind);
            let heads: Vec<Option<usize>> = match self.head {
                None => (0..heads).map(Some).chain([None]).collect(),
                Some(Head::Mean) => vec![None],
                Some(Head::Number(head)) => vec![Some(head - 1)],
            };
            let layers = self.layer.map_or(0..layers, |layer| layer - 1..layer);
            selectors
                .extend(layers.flat_map(|layer| {
                    heads.iter().map(move |&head| AttentionSelector { kind, layer, head })
                }));
        }
        Ok(selectors)
    }

    /// One attention large, or all of them small.
    fn draw(&self, attention: &Attention) -> String {
        match &attention.attention[..] {
            [only] => picture::heatmap(attention, only),
            _ => picture::grid(attention),
        }
    }
}

/// Weights, and which attentions have them.
type Weights = Vec<(AttentionSelector, AttentionMatrix)>;

/// The weights of each of the looks.
fn weights(inspection: &Inspection, selectors: &[AttentionSelector]) -> Result<Weights, Error> {
    let seen = selectors.iter().map(|&selector| Ok((selector, inspection.weights(selector)?)));
    Ok(seen.collect::<Result<Weights, attentive_generate::Error>>()?)
}

/// The weights of attentions with a bias, of each part of their scores alone; none if they are too many.
fn parts(
    inspection: &Inspection,
    all: &[(AttentionSelector, AttentionMatrix)],
) -> Result<Vec<(Part, Weights)>, Error> {
    let biased = || all.iter().filter(|(_, matrix)| matrix.biased);
    let parts = [Part::Content, Part::Bias];
    if parts.len() * biased().map(|(_, matrix)| matrix.weights.len()).sum::<usize>() > MOST_NUMBERS {
        return Ok(Vec::new());
    }
    let selectors: Vec<AttentionSelector> = biased().map(|(selector, _)| *selector).collect();
    let part = |part: Part| Ok((part, weights(&inspection.of_part(part.into(), &selectors)?, &selectors)?));
    parts.into_iter().map(part).collect()
}

/// The vectors of heads, from the last layer backwards, as many as a page may have.
fn vectors(inspection: &Inspection, selectors: &[AttentionSelector]) -> Result<Vec<Vectors>, Error> {
    let mut found = Vec::new();
    let mut left = MOST_NUMBERS;
    for &selector in selectors.iter().rev().filter(|selector| selector.head.is_some()) {
        let vectors = Vectors::new(selector, inspection.vectors(selector)?).rounded();
        let Some(rest) = left.checked_sub(vectors.numbers()) else { break };
        left = rest;
        found.push(vectors);
    }
    Ok(found)
}

/// The way out, for a program without the feature.
const NO_PNG: &str = "this program was built without PNG support: write an .svg file instead, or install it with \
                      `cargo install --path crates/cli --features png`";

fn format(text: &str) -> Result<(PathBuf, Format), String> {
    let path = PathBuf::from(text);
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    let format = match ending.as_deref() {
        Some("html" | "htm") => Format::Html,
        Some("svg") => Format::Svg,
        Some("png") => Format::Png,
        _ => return Err("the file name must end in .html, .svg or .png".to_owned()),
    };
    Ok((path, format))
}

fn head(text: &str) -> Result<Head, String> {
    if text == "mean" {
        return Ok(Head::Mean);
    }
    crate::options::between::<1, 1000>(text)
        .map(Head::Number)
        .map_err(|problem| format!("{problem}, or `mean`"))
}

fn patch(text: &str) -> Result<[usize; 2], String> {
    let numbers: Vec<usize> = text.split(',').filter_map(|part| part.trim().parse().ok()).collect();
    match numbers[..] {
        [row, column] if row > 0 && column > 0 && text.matches(',').count() == 1 => Ok([row, column]),
        _ => Err("a row and a column are needed, counted from 1, as in 3,5".to_owned()),
    }
}
