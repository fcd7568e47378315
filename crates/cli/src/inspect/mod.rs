//! `attentive inspect`: what a model looks at, as a page or a picture.

#[cfg(feature = "png")]
mod png;

use crate::error::Error;
use crate::options::Compute;
use crate::output;
use crate::precision::DecodingPrecision;
use attentive_generate::{
    AttentionKind, Codec, Generator, Look, ModelFolder, Options, Request, Seq2Seq, Split,
};
use attentive_serve::attention::Attention;
use attentive_serve::{picture, standalone};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Inspect {
    /// The sentence to look into
    #[arg(value_name = "TEXT")]
    text: String,
    /// The model: a folder with config.json, model.safetensors and a tokenizer
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// The file to write: .html is a page to look around in, .svg is a picture; .png needs a program built with
    /// `--features png`
    #[arg(long, value_name = "FILE", value_parser = format)]
    out: (PathBuf, Format),
    /// What the sentence was translated to; otherwise the model translates it
    #[arg(long, value_name = "TEXT")]
    translation: Option<String>,
    /// Only attention from these tokens to those; all kinds if not given
    #[arg(long)]
    kind: Option<Kind>,
    /// Only this layer, counted from 1
    #[arg(long, value_name = "L", value_parser = crate::options::between::<1, 1000>)]
    layer: Option<usize>,
    /// Only this head, counted from 1, or `mean` for the mean of all
    #[arg(long, value_name = "H", value_parser = head)]
    head: Option<Head>,
    #[command(flatten)]
    compute: Compute,
    /// What to compute in [default: int8 for a model that is stored in int8, else f32]
    #[arg(long, value_name = "PRECISION")]
    precision: Option<DecodingPrecision>,
}

const EXAMPLES: &str = "\
Examples:
  attentive inspect --model opus-mt-en-de \"A dog runs.\" --out attention.html
  attentive inspect --model opus-mt-en-de \"A dog runs.\" --out heads.svg --kind cross
  attentive inspect --model opus-mt-en-de \"A dog runs.\" --out head.svg --kind cross --layer 5 --head 3

The page needs no server and no network. A picture of one layer and one head (or the mean) is large and has the tokens \
on its axes; otherwise all heads are drawn small, beside each other.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Html,
    Svg,
    #[cfg(feature = "png")]
    Png,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// From the source to the source
    Encoder,
    /// From each step to what was written before
    Decoder,
    /// From each step to the source
    Cross,
}

#[derive(Debug, Clone, Copy)]
enum Head {
    Mean,
    Number(usize),
}

pub(crate) fn run(inspect: &Inspect) -> Result<(), Error> {
    let (path, format) = &inspect.out;
    let attention = inspect.look()?;
    let contents = match format {
        Format::Html => standalone(&attention).into_bytes(),
        Format::Svg => inspect.draw(&attention).into_bytes(),
        #[cfg(feature = "png")]
        Format::Png => png::from_svg(&inspect.draw(&attention))?,
    };
    output::to_file(path, |file| Ok(file.write_all(&contents)?))
}

impl Inspect {
    /// Translates the sentence if need be, and looks into it.
    fn look(&self) -> Result<Attention, Error> {
        let decoders = self.compute.decoders(self.precision)?;
        let ModelFolder { copies, codec, options, .. } = decoders.open(&self.model)?;
        let source = self.source(&codec)?;
        let mut generator = Generator::with_copies(copies, Options { n_best: 1, ..options })?;
        let target = match &self.translation {
            Some(text) => {
                let mut tokens = codec.prefix(text)?;
                tokens.push(codec.spec().eos);
                tokens
            }
            None => {
                let request = Request { source: source.clone(), prefix: Vec::new() };
                let best = generator.generate([request]).next().transpose()?.unwrap_or_default();
                best.into_iter().next().map(|best| best.tokens).unwrap_or_default()
            }
        };
        if target.len() > codec.spec().max_target {
            let problem = format!("it has more than the {} tokens of the model", codec.spec().max_target);
            return Err(Error::Flag { option: "translation", problem });
        }
        let inspection = generator.model().inspect(&source, &target);
        let looks = self.looks(generator.model())?;
        let seen = looks.into_iter().map(|look| Ok((look, inspection.weights(look)?)));
        let seen = seen.collect::<Result<Vec<_>, attentive_generate::Error>>()?;
        let name = self.model.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Attention::new(&name, &codec, [&source, &target], seen))
    }

    /// The tokens of the sentence, which must be one that the model reads at once.
    fn source(&self, codec: &Codec) -> Result<Vec<u32>, Error> {
        let mut parts = codec.cut(self.text.trim(), "", Split::Lines)?.parts;
        match parts.len() {
            0 => Err(Error::Usage("TEXT is empty: give a sentence to look into".to_owned())),
            1 if parts[0].cut > 0 => Err(Error::Inspect(format!(
                "this sentence has {} tokens more than the model reads: look into a shorter one",
                parts[0].cut
            ))),
            1 => Ok(parts.swap_remove(0).source),
            count => Err(Error::Inspect(format!(
                "the model reads this text in {count} parts: look into one sentence at a time"
            ))),
        }
    }

    /// What is to be looked at, kind by kind and layer by layer: heads, and then their mean. What the model does not have is
    /// refused when it is looked at.
    fn looks(&self, model: &impl Seq2Seq) -> Result<Vec<Look>, Error> {
        let sizes = model.sizes();
        let kinds = match self.kind {
            None => vec![AttentionKind::Encoder, AttentionKind::Decoder, AttentionKind::Cross],
            Some(Kind::Encoder) => vec![AttentionKind::Encoder],
            Some(Kind::Decoder) => vec![AttentionKind::Decoder],
            Some(Kind::Cross) => vec![AttentionKind::Cross],
        };
        let layers_of = |kind| match kind {
            AttentionKind::Encoder => sizes.encoder_layers,
            AttentionKind::Decoder | AttentionKind::Cross => sizes.decoder_layers,
        };
        let most = kinds.iter().map(|&kind| layers_of(kind)).min().unwrap_or(0);
        if let Some(layer) = self.layer.filter(|&layer| layer > most) {
            let problem = format!("there is no layer {layer}, the last is {most}");
            return Err(Error::Flag { option: "layer", problem });
        }
        if let Some(Head::Number(head)) = self.head
            && head > sizes.h
        {
            let problem = format!("there is no head {head}, the last is {}", sizes.h);
            return Err(Error::Flag { option: "head", problem });
        }
        let heads: Vec<Option<usize>> = match self.head {
            None => (0..sizes.h).map(Some).chain([None]).collect(),
            Some(Head::Mean) => vec![None],
            Some(Head::Number(head)) => vec![Some(head - 1)],
        };
        let layers = |kind| match self.layer {
            Some(layer) => layer - 1..layer,
            None => 0..layers_of(kind),
        };
        let of_layer = |kind, layer| heads.iter().map(move |&head| Look { kind, layer, head });
        let looks =
            kinds.into_iter().flat_map(|kind| layers(kind).flat_map(move |layer| of_layer(kind, layer)));
        Ok(looks.collect())
    }

    /// One attention large, or all of them small.
    fn draw(&self, attention: &Attention) -> String {
        match &attention.attention[..] {
            [only] => picture::heatmap(attention, only),
            _ => picture::grid(attention),
        }
    }
}

/// The way out, for a program without the feature.
#[cfg(not(feature = "png"))]
const NO_PNG: &str = "this program was built without PNG: write a .svg instead, or install it with \
                      `cargo install --path crates/cli --features png`";

fn format(text: &str) -> Result<(PathBuf, Format), String> {
    let path = PathBuf::from(text);
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    let format = match ending.as_deref() {
        Some("html" | "htm") => Format::Html,
        Some("svg") => Format::Svg,
        #[cfg(feature = "png")]
        Some("png") => Format::Png,
        #[cfg(not(feature = "png"))]
        Some("png") => return Err(NO_PNG.to_owned()),
        _ => return Err("the name must end in .html, .svg or .png".to_owned()),
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
