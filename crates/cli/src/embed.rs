//! `attentive embed`: texts to vectors.

use crate::error::Error;
use crate::output;
use crate::texts::Reading;
use attentive_tasks::{Embedder, Vectors, most_similar};
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
    /// Rank the texts by their similarity to TEXT instead of writing vectors
    #[arg(long, value_name = "TEXT")]
    similar: Option<String>,
    /// Number of texts that --similar shows
    #[arg(long, value_name = "N", default_value_t = 10, requires = "similar")]
    top: usize,
    /// Write one JSON object per text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive embed --model all-MiniLM-L6-v2 \"A dog runs.\" --json
  attentive embed --model all-MiniLM-L6-v2 --input texts.txt --output vectors.npy
  attentive embed --model all-MiniLM-L6-v2 --input texts.txt --similar \"a running dog\" --top 3

A text is a line. Its vector is made as the folder says (modules.json, 1_Pooling/config.json, \
sentence_bert_config.json); without these files it is the mean of the tokens' vectors, divided by \
its length. Without --json and --output, a vector is a line of numbers.";

pub(crate) fn run(embed: &Embed) -> Result<(), Error> {
    output::must_differ(["--input", "--output"], [embed.reading.input.as_deref(), embed.output.as_deref()])?;
    let (backend, form) = embed.reading.backend()?;
    let embedder = Embedder::open(&backend, &embed.reading.folder()?, form)?;
    let embedder = embedder.with_encoder(|encoder| embed.reading.change(encoder));
    match (&embed.similar, &embed.output) {
        (Some(query), _) => rank(embed, &embedder, query),
        (None, Some(path)) => output::to_file(path, |file| write_npy(embed, &embedder, file)),
        (None, None) => write_lines(embed, &embedder),
    }
}

/// Reads texts and hands out their vectors.
fn each_vector(
    embed: &Embed,
    embedder: &Embedder,
    mut take: impl FnMut(&str, &[f32]) -> Result<(), Error>,
) -> Result<(), Error> {
    embed.reading.each(|texts| {
        let inputs: Vec<Input> = texts.iter().map(|text| Input::Text(text)).collect();
        let read = embedder.encoder().read(&inputs)?;
        for (text, vector) in texts.iter().zip(embedder.vectors(&read)?.rows()) {
            take(text, vector)?;
        }
        Ok(read)
    })
}

#[derive(Serialize)]
struct Line<'a> {
    text: &'a str,
    embedding: &'a [f32],
}

fn write_lines(embed: &Embed, embedder: &Embedder) -> Result<(), Error> {
    // Each as soon as it is there: somebody may wait for it.
    each_vector(embed, embedder, |text, embedding| {
        if embed.json {
            return output::json(&Line { text, embedding });
        }
        let numbers: Vec<String> = embedding.iter().map(f32::to_string).collect();
        output::write(&(numbers.join(" ") + "\n"))
    })
}

/// One matrix, whose number of rows is known when all are written.
fn write_npy(embed: &Embed, embedder: &Embedder, file: &mut File) -> Result<(), Error> {
    if file.stream_position().is_err() {
        let problem =
            "a matrix cannot be written to a pipe: its header tells how many rows follow".to_owned();
        return Err(Error::Flag { option: "output", problem });
    }
    let width = embedder.encoder().model().config().d_model;
    let mut out = BufWriter::new(file);
    out.write_all(&npy_header(0, width))?;
    let mut rows = 0;
    each_vector(embed, embedder, |_, vector| {
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
    text: &'a str,
    line: usize,
    similarity: f32,
}

fn rank(embed: &Embed, embedder: &Embedder, query: &str) -> Result<(), Error> {
    let query = embedder.embed(&[query])?.numbers;
    let mut vectors = Vectors { width: query.len(), numbers: Vec::new() };
    let mut texts = Vec::new();
    each_vector(embed, embedder, |text, vector| {
        texts.push(text.to_owned());
        vectors.numbers.extend_from_slice(vector);
        Ok(())
    })?;
    let mut out = String::new();
    for (i, similarity) in most_similar(&query, &vectors, embed.top) {
        let ranked = Ranked { text: &texts[i], line: i + 1, similarity };
        if embed.json {
            out.push_str(&serde_json::to_string(&ranked)?);
        } else {
            out.push_str(&format!("{similarity:.4}  {}", ranked.text));
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
