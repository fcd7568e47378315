//! Decoding on a device whose memory the host cannot read.

use crate::common::{backend, golden, results, sources};
use attentive_generate::{EncoderDecoderSteps, Generator, MaxLength, Options};
use attentive_model::families::transformer::Transformer;
use attentive_tensor::sealed::SealedBackend;
use attentive_tensor::{Backend, Precision};
use std::sync::Arc;

/// Loads the small golden model in some way.
type Load = fn(&Arc<dyn Backend>, &std::path::Path) -> Result<Transformer, attentive_model::Error>;

#[test]
fn a_step_of_a_search_downloads_the_best_tokens_and_nothing_else() {
    let beam = Options { max_length: MaxLength::Tokens(7), batch: 4, ..Options::default() };
    let searches = [
        Options { beam: 1, ..beam.clone() },
        beam.clone(),
        // Filters that change a few tokens leave the logits where they are.
        Options { beam: 1, repetition_penalty: 1.3, min_length: 4, ..beam.clone() },
        Options { no_repeat_ngram: 2, repetition_penalty: 0.8, banned: vec![vec![3], vec![5, 6]], ..beam },
    ];
    for precision in [Precision::F32, Precision::Bf16] {
        let loads: [Load; 3] = [Transformer::load, Transformer::load_packed, Transformer::load_in_int8];
        for (load, options) in
            loads.into_iter().flat_map(|load| searches.clone().map(|options| (load, options)))
        {
            let open = backend(precision, 1);
            let sealed = Arc::new(SealedBackend::new(Arc::clone(&open)));
            let run = |backend: Arc<dyn Backend>| {
                let model = load(&backend, &golden("generate")).unwrap();
                let sources = sources(3, 4, &model);
                let steps = EncoderDecoderSteps::new(&backend, &model);
                results(&mut Generator::new(steps, options.clone()).unwrap(), sources)
            };
            let expected = run(Arc::clone(&open));
            let found = run(Arc::clone(&sealed) as Arc<dyn Backend>);
            assert_eq!(found, expected, "{precision}, {options:?}");
            // All sentences go side by side: a step for each token of the longest, and the start token.
            let longest = expected.iter().flatten().map(|hypothesis| hypothesis.tokens.len()).max().unwrap();
            let downloads = sealed.downloads();
            assert!(
                (longest..=7).contains(&downloads),
                "{downloads} downloads for {longest} tokens, {options:?}"
            );
        }
    }
}
