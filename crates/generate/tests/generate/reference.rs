//! The same translations as transformers, with the reference model on a whole test set.
//!
//! `expected/` beside the model holds what transformers 5.22 wrote in single precision: greedy search, and a beam of 5 with
//! length penalty 1.0 and `early_stopping=False`, at most 128 tokens.

use crate::common::{golden, shared};
use attentive_generate::{
    EarlyStopping, EncoderDecoderSteps, Generator, Hypothesis, LengthPenalty, MaxLength, Options, Request,
    Row, Seq2Seq,
};
use attentive_model::families::transformer::Transformer;
use attentive_tensor::CpuBackend;
use attentive_text::tokenizer::{Side, Tokenizer};
use serde::Deserialize;
use std::path::{Path, PathBuf};

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.strip_suffix('\n').unwrap_or(&text).split('\n').map(str::to_owned).collect()
}

struct Reference {
    folder: PathBuf,
    tokenizer: Tokenizer,
    sources: Vec<Vec<u32>>,
}

impl Reference {
    fn open() -> Option<Reference> {
        let (folder, data) = (shared("reference/marian-multi30k")?, shared("data/multi30k")?);
        let tokenizer = Tokenizer::load(&folder).unwrap();
        let sources = lines(&data.join("test_2016_flickr.en"));
        let sources = sources.iter().map(|line| tokenizer.encode(line, Side::Source).unwrap()).collect();
        Some(Reference { folder, tokenizer, sources })
    }

    fn steps(&self) -> EncoderDecoderSteps<Transformer> {
        let backend = CpuBackend::from_env().unwrap().shared();
        EncoderDecoderSteps::new(&backend, &Transformer::load(&backend, &self.folder).unwrap())
    }

    /// Compares all lines with those of a file. What differs must be a tie: the score of what was expected is ours.
    fn compare(&self, options: Options, expected: &str) {
        let mut generator = Generator::new(self.steps(), options).unwrap();
        let results: Vec<Hypothesis> =
            generator.generate(self.sources.clone()).map(|results| results.unwrap().swap_remove(0)).collect();
        let expected = lines(&self.folder.join("expected").join(expected));
        assert_eq!(results.len(), expected.len());
        let mut others = 0;
        for (line, (result, expected)) in results.iter().zip(&expected).enumerate() {
            let text = self.tokenizer.decode(result.content()).unwrap();
            if text != *expected {
                let score = self.score(&mut generator, line, expected);
                println!("line {}: {} `{text}`, expected {score} `{expected}`", line + 1, result.score);
                assert!((score - result.score).abs() < 1e-4, "line {} differs and is no tie", line + 1);
                others += 1;
            }
        }
        println!("{} of {} lines are equal, {others} are ties", results.len() - others, results.len());
    }

    /// The score that the model gives a translation.
    fn score(&self, generator: &mut Generator, line: usize, text: &str) -> f32 {
        let prefix = self.tokenizer.encode(text, Side::Target).unwrap();
        let request = Request { source: self.sources[line].clone(), prefix: prefix.clone() };
        let results = generator.generate([request]).next().unwrap().unwrap();
        let scores = &results[0].token_scores[..prefix.len()];
        scores.iter().sum::<f32>() / generator.options().penalty.divisor(prefix.len())
    }
}

/// What transformers was asked for.
fn options(beam: usize) -> Options {
    Options {
        beam,
        penalty: LengthPenalty::Power(1.0),
        early_stopping: EarlyStopping::No,
        max_length: MaxLength::Tokens(128),
        forced_eos: Some(0),
        ..Options::default()
    }
}

#[test]
fn greedy_search_writes_what_transformers_writes() {
    let Some(reference) = Reference::open() else { return };
    reference.compare(options(1), "test_2016_flickr.greedy.de");
}

#[test]
fn a_beam_of_five_writes_what_transformers_writes() {
    let Some(reference) = Reference::open() else { return };
    reference.compare(options(5), "test_2016_flickr.beam5.de");
}

#[derive(Deserialize)]
struct FirstStep {
    source: Vec<u32>,
    logits: Vec<(usize, f32)>,
}

#[test]
fn the_logits_of_the_first_step_are_those_of_transformers() {
    let Some(reference) = Reference::open() else { return };
    let text = std::fs::read_to_string(golden("generate_reference.json")).unwrap();
    let expected: Vec<FirstStep> = serde_json::from_str(&text).unwrap();
    let mut steps = reference.steps();
    let sources: Vec<(usize, &[u32])> = expected.iter().map(|step| &step.source[..]).enumerate().collect();
    steps.admit(&sources);
    let (start, width) = (steps.spec().start, steps.spec().vocabulary);
    let rows: Vec<Row> = (0..expected.len()).map(|slot| Row { slot, parent: None, token: start }).collect();
    steps.step(&rows);
    let logits = steps.logits();
    let mut farthest = 0f32;
    for (row, (expected, line)) in
        logits.chunks(width).zip(expected.iter().zip(reference.sources.iter().step_by(50)))
    {
        assert_eq!(expected.source, *line);
        for &(token, logit) in &expected.logits {
            farthest = farthest.max((row[token] - logit).abs());
        }
    }
    println!("the logits differ by at most {farthest:.1e}");
    assert!(farthest < 1e-4, "{farthest}");
}
