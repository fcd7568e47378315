//! A filter, a stopping rule and a sampler of one's own, in some ten lines each.
//!
//! ```sh
//! cargo run --release -p attentive-generate --example own_rules -- opus-mt-en-de "A dog runs on the grass."
//! ```

use attentive_generate::{Context, Filter, Generator, Options, Random, Sampler, Stop};
use attentive_tasks::ModelFolder;
use attentive_tensor::CpuBackend;
use attentive_text::tokenizer::{Side, Tokenizer};
use std::error::Error;
use std::path::Path;

/// Forbids every token with a letter in it: a lipogram.
struct Without(Vec<usize>);

impl Without {
    fn letter(letter: char, tokenizer: &Tokenizer) -> Without {
        let piece = |token: usize| tokenizer.piece(token as u32, Side::Target).unwrap_or_default();
        let has_letter = |token: &usize| piece(*token).to_lowercase().contains(letter);
        Without((0..tokenizer.vocabulary_size(Side::Target)).filter(has_letter).collect())
    }
}

impl Filter for Without {
    fn filter(&self, _: &Context, scores: &mut [f32]) {
        self.0.iter().for_each(|&token| scores[token] = f32::NEG_INFINITY);
    }
}

/// Ends when as much was written as was to be read.
struct AsLongAsTheSource;

impl Stop for AsLongAsTheSource {
    fn stop(&self, context: &Context) -> bool {
        context.tokens.len() >= context.source.len()
    }
}

/// Tosses a coin between the two best tokens.
struct Coin;

impl Sampler for Coin {
    fn sample(&self, logits: &[f32], random: Random) -> Option<u32> {
        let mut tokens: Vec<u32> = (0..logits.len() as u32).collect();
        tokens.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]));
        tokens.get((random.uniform(0) > 0.7) as usize).copied()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, text] = &arguments[..] else { return Err("give a model's folder and a text".into()) };
    let backend = CpuBackend::from_env()?.shared();
    let open = || ModelFolder::open(&backend, Path::new(folder));

    let codec = open()?.codec;
    let tokenizer = codec.tokenizer();
    let source = tokenizer.encode(text, Side::Source)?;
    let generators = [
        ("as it is", Generator::with_copies(open()?.copies, Options::default())?),
        (
            "without e",
            Generator::with_copies(open()?.copies, Options::default())?
                .with_filter(Without::letter('e', tokenizer)),
        ),
        (
            "cut short",
            Generator::with_copies(open()?.copies, Options::default())?.with_stop(AsLongAsTheSource),
        ),
        ("by coins", Generator::with_copies(open()?.copies, Options::default())?.with_sampler(Coin)),
    ];
    for (name, mut generator) in generators {
        for results in generator.generate([source.clone()]) {
            println!("{name:>10}: {}", tokenizer.decode(results?[0].content())?);
        }
    }
    Ok(())
}
