//! `attentive embed`: texts or pictures to vectors.

use crate::error::Error;
use crate::texts::Reading;
use crate::{output, pictures};
use attentive_tasks::{Embedder, PictureEmbedder, Vectors, most_similar, task_of_pictures};
use attentive_text::tokenizer::Input;
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Embed {
    #[command(flatten)]
    reading: Reading,
    /// Write one float32 matrix in NumPy's format to FILE (it appears when it is complete) [default: text on stdout]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "similar"])]
    output: Option<PathBuf>,
    /// Rank the texts or pictures by their similarity to one instead of writing vectors
    #[arg(long, value_name = "TEXT|PICTURE")]
    similar: Option<String>,
    /// Number of texts or pictures that --similar shows
    #[arg(long, value_name = "N", default_value_t = 10, requires = "similar")]
    top: usize,
    /// Write one JSON object per text or picture
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive embed --model all-MiniLM-L6-v2 \"A dog runs.\" --json
  attentive embed --model all-MiniLM-L6-v2 --input texts.txt --output vectors.npy
  attentive embed --model all-MiniLM-L6-v2 --input texts.txt --similar \"a running dog\" --top 3
  attentive embed --model dinov2-base photos/*.jpg --similar query.jpg

A model for pictures (ViT, DeiT, DINOv2) takes names of PNG, JPEG and WebP files instead of texts; the vector of a picture is that \
of its class token, divided by its length. A text is a line. Its vector is made as the folder says (modules.json, 1_Pooling/config.json, \
sentence_bert_config.json); without these files it is the mean of the tokens' vectors, divided by \
its length. Without --json and --output, a vector is a line of numbers.";

pub(crate) fn run(embed: &Embed) -> Result<(), Error> {
    output::must_differ(["--input", "--output"], [embed.reading.input.as_deref(), embed.output.as_deref()])?;
    let embedder = Source::open(&embed.reading)?;
    match (&embed.similar, &embed.output) {
        (Some(query), _) => rank(embed, &embedder, query),
        (None, Some(path)) => output::to_file(path, |file| write_npy(embed, &embedder, file)),
        (None, None) => write_lines(embed, &embedder),
    }
}

/// Where vectors come from.
enum Source {
    Texts(Embedder),
    Pictures(PictureEmbedder),
}

impl Source {
    fn open(reading: &Reading) -> Result<Source, Error> {
        let (backend, form) = reading.backend()?;
        let folder = reading.folder()?;
        Ok(match task_of_pictures(&folder)? {
            Some(_) => {
                let embedder = PictureEmbedder::open(&backend, &folder, form)?;
                Source::Pictures(embedder.with_encoder(|encoder| reading.change_pictures(encoder)))
            }
            None => {
                let embedder = Embedder::open(&backend, &folder, form)?;
                Source::Texts(embedder.with_encoder(|encoder| reading.change(encoder)))
            }
        })
    }

    fn width(&self) -> usize {
        match self {
            Source::Texts(embedder) => embedder.encoder().model().config().d_model,
            Source::Pictures(embedder) => embedder.encoder().model().config().d_model,
        }
    }

    /// The vector of one text or picture.
    fn vector(&self, of: &str) -> Result<Vec<f32>, Error> {
        Ok(match self {
            Source::Texts(embedder) => embedder.embed(&[of])?,
            Source::Pictures(embedder) => embedder.vectors(&[pictures::read(embedder.encoder(), of)?])?,
        }
        .numbers)
    }

    /// Reads texts, or pictures by the names of their files, and hands out their vectors.
    fn each(
        &self,
        reading: &Reading,
        mut take: impl FnMut(&str, &[f32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut take_all = |of: &[String], vectors: &Vectors| {
            of.iter().zip(vectors.rows()).try_for_each(|(of, vector)| take(of, vector))
        };
        match self {
            Source::Texts(embedder) => reading.each(|texts| {
                let inputs: Vec<Input> = texts.iter().map(|text| Input::Text(text)).collect();
                let read = embedder.encoder().read(&inputs)?;
                take_all(texts, &embedder.vectors(&read)?)?;
                Ok(read)
            }),
            Source::Pictures(embedder) => pictures::each(reading, embedder.encoder(), |paths, pictures| {
                take_all(paths, &embedder.vectors(pictures)?)
            }),
        }
    }

    /// A text and no picture, or the other way round.
    fn named<'a>(&self, of: &'a str) -> [Option<&'a str>; 2] {
        match self {
            Source::Texts(_) => [Some(of), None],
            Source::Pictures(_) => [None, Some(of)],
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<&'a str>,
    embedding: &'a [f32],
}

fn write_lines(embed: &Embed, embedder: &Source) -> Result<(), Error> {
    // Each line is flushed: a reader may wait for it.
    embedder.each(&embed.reading, |of, embedding| {
        if embed.json {
            let [text, picture] = embedder.named(of);
            return output::json(&Line { text, picture, embedding });
        }
        let numbers: Vec<String> = embedding.iter().map(f32::to_string).collect();
        output::write(&(numbers.join(" ") + "\n"))
    })
}

/// One matrix, whose number of rows is known when all are written.
fn write_npy(embed: &Embed, embedder: &Source, file: &mut File) -> Result<(), Error> {
    if file.stream_position().is_err() {
        let problem =
            "a matrix cannot be written to a pipe: its header tells how many rows follow".to_owned();
        return Err(Error::Flag { option: "output", problem });
    }
    let width = embedder.width();
    let mut out = BufWriter::new(file);
    out.write_all(&npy_header(0, width))?;
    let mut rows = 0;
    embedder.each(&embed.reading, |_, vector| {
        rows += 1;
        let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        Ok(out.write_all(&bytes)?)
    })?;
    out.flush()?;
    let file = out.get_mut();
    file.seek(SeekFrom::Start(0))?;
    Ok(file.write_all(&npy_header(rows, width))?)
}

/// The header of version 1.0 of the format: 128 bytes whatever the numbers.
fn npy_header(rows: usize, width: usize) -> Vec<u8> {
    let mut header = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let words = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
    header.extend(words.bytes());
    header.resize(127, b' ');
    header.push(b'\n');
    header
}

#[derive(Serialize)]
struct Ranked<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<&'a str>,
    line: usize,
    similarity: f32,
}

fn rank(embed: &Embed, embedder: &Source, query: &str) -> Result<(), Error> {
    let query = embedder.vector(query)?;
    let mut vectors = Vectors { width: query.len(), numbers: Vec::new() };
    let mut names = Vec::new();
    embedder.each(&embed.reading, |of, vector| {
        names.push(of.to_owned());
        vectors.numbers.extend_from_slice(vector);
        Ok(())
    })?;
    let mut out = String::new();
    for (i, similarity) in most_similar(&query, &vectors, embed.top) {
        if embed.json {
            let [text, picture] = embedder.named(&names[i]);
            out.push_str(&serde_json::to_string(&Ranked { text, picture, line: i + 1, similarity })?);
        } else {
            out.push_str(&format!("{similarity:.4}  {}", names[i]));
        }
        out.push('\n');
    }
    output::write(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_as_long_whatever_the_number_of_rows() {
        for rows in [0, 7, 12_345_678_901] {
            let header = npy_header(rows, 384);
            assert_eq!((header.len(), header[127], &header[8..10]), (128, b'\n', &[118, 0][..]));
        }
    }
}
