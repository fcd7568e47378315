//! Sentences that come, share a batch and leave.

use super::{bits, models, ways};
use crate::common::{backend, generator, padding_inside, results, sources, unsure};
use attentive_generate::{
    EncoderDecoderSteps, Error, Generator, Hypothesis, MaxLength, Options, Request, Sampling, Seq2Seq,
};
use attentive_tensor::Precision;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

#[test]
fn what_cannot_be_decoded_is_an_error_in_its_place() {
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    let mut generator = generator(&backend, &model, Options { batch: 2, ..Options::default() });
    let good = vec![5, 6, 0];
    let sources = [good.clone(), vec![], vec![1; 65], good.clone(), vec![24, 0], good.clone(), vec![1; 64]];
    let found: Vec<Result<Vec<Hypothesis>, Error>> = generator.generate(sources).collect();
    assert!(matches!(found[1], Err(Error::EmptySource)));
    assert!(matches!(found[2], Err(Error::LongSource { tokens: 65, most: 64 })));
    assert!(matches!(found[4], Err(Error::Token { token: 24, vocabulary: 24 })));
    let expected = found[0].as_ref().unwrap();
    assert!([3, 5].iter().all(|&place: &usize| found[place].as_ref().unwrap() == expected));
    assert!(found[6].is_ok());
    let long = Request { source: good, prefix: vec![1; 64] };
    assert!(matches!(generator.generate([long]).next(), Some(Err(Error::LongPrefix { tokens: 64, .. }))));
}

#[test]
fn every_token_is_told_as_it_is_written() {
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    for options in
        [Options::greedy(), Options { sampling: Some(Sampling::default()), n_best: 2, ..Options::default() }]
    {
        // Sentence, draw, token and score.
        type Told = Vec<(u64, usize, u32, f32)>;
        let told: Arc<Mutex<Told>> = Arc::default();
        let teller = Arc::clone(&told);
        let mut generator = generator(&backend, &model, options).on_token(move |written| {
            let token = *written.tokens.last().unwrap();
            teller.lock().unwrap().push((written.sentence, written.draw, token, written.score));
        });
        let found = results(&mut generator, sources(13, 4, &model));
        for (sentence, results) in found.iter().enumerate() {
            let mut heard: Vec<(Vec<u32>, Vec<f32>)> = vec![Default::default(); results.len()];
            for &(_, draw, token, score) in
                told.lock().unwrap().iter().filter(|told| told.0 == sentence as u64)
            {
                heard[draw].0.push(token);
                heard[draw].1.push(score);
            }
            for result in results {
                assert!(heard.contains(&(result.tokens.clone(), result.token_scores.clone())));
            }
        }
    }
}

#[test]
fn sentences_that_are_dropped_leave_nothing_behind() {
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    let mut generator = generator(&backend, &model, Options { batch: 3, ..Options::default() });
    let sources = sources(16, 9, &model);
    let expected = results(&mut generator, sources.clone());
    assert!(generator.generate(sources.clone()).next().is_some());
    assert_eq!(results(&mut generator, sources), expected);
}

#[test]
fn sentences_with_options_of_their_own_share_a_batch_and_leave_in_any_order() {
    let backend = backend(Precision::F32, 2);
    for model in models(&backend).into_iter().chain([padding_inside(&backend)]) {
        let sources = sources(17, 10, &model);
        let mut shared = generator(&backend, &model, Options { batch: 4, ..Options::default() });
        let mut open = Vec::new();
        for (stream, source) in (0..).zip(&sources) {
            let options = ways()[stream as usize % ways().len()].clone();
            open.push((shared.push_with(source.clone(), options.clone(), 5).unwrap(), source, options));
        }
        while !shared.is_empty() {
            shared.step();
            open.retain(|(number, source, options)| {
                let Some(found) = shared.take(*number) else { return true };
                let mut alone = generator(&backend, &model, Options { batch: 1, ..Options::default() });
                let number = alone.push_with((*source).clone(), options.clone(), 5).unwrap();
                let alone = loop {
                    alone.step();
                    if let Some(alone) = alone.take(number) {
                        break alone;
                    }
                };
                assert_eq!(bits(&found), bits(&alone), "{options:?}");
                false
            });
        }
        assert!(open.is_empty());
    }
}

#[test]
fn no_more_sentences_are_decoded_at_once_than_the_batch_has_and_the_last_begin_with_the_longest() {
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    let sources: Vec<Vec<u32>> = (1..12).map(|length| vec![5; length]).collect();
    let told = Arc::new(Mutex::new(Vec::new()));
    let told_too = Arc::clone(&told);
    let mut generator = generator(&backend, &model, Options { batch: 3, ..Options::default() })
        .on_token(move |written| told_too.lock().unwrap().push(written.sentence));
    let expected = results(&mut generator, sources.clone());
    generator.clear();
    for source in sources {
        generator.push(source).unwrap();
    }
    generator.expect_no_more();
    let (mut begun, mut found) = (Vec::new(), Vec::new());
    while !generator.is_empty() {
        told.lock().unwrap().clear();
        generator.step();
        let told: BTreeSet<u64> = told.lock().unwrap().drain(..).collect();
        assert!(told.len() <= 3, "{told:?}");
        begun.push(told);
        found.extend(std::iter::from_fn(|| generator.pop()));
    }
    let first = |sentence| begun.iter().position(|told| told.contains(&sentence));
    assert!(first(10) <= first(9) && first(9) <= first(8) && first(10) < first(8), "{begun:?}");
    assert_eq!(found, expected);
}

#[test]
fn no_sentence_waits_for_a_long_one_while_another_lane_has_nothing_to_do() {
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    let copies =
        (0..2).map(|_| Box::new(EncoderDecoderSteps::new(&backend, &model)) as Box<dyn Seq2Seq>).collect();
    let mut generator = Generator::with_copies(copies, Options { batch: 2, ..Options::default() }).unwrap();
    let of =
        |tokens| Options { min_length: tokens, max_length: MaxLength::Tokens(tokens), ..Options::default() };
    let [long, .., last] = [20, 2, 2].map(|tokens| generator.push_with(vec![5, 0], of(tokens), 0).unwrap());
    (0..8).for_each(|_| generator.step());
    assert!(generator.take(last).is_some() && generator.take(long).is_none());
}

#[test]
fn who_is_given_up_is_not_felt_by_the_others() {
    let backend = backend(Precision::F32, 1);
    let model = unsure(&backend);
    let mut generator = generator(&backend, &model, Options { batch: 2, ..Options::default() });
    let sources = sources(18, 6, &model);
    let expected = results(&mut generator, sources.clone());
    generator.clear();
    let numbers: Vec<u64> = sources.iter().map(|source| generator.push(source.clone()).unwrap()).collect();
    generator.step();
    generator.step();
    // One that is being decoded, one that was read and has no place yet, one that waits, one twice.
    for given_up in [0, 2, 4, 4] {
        generator.cancel(numbers[given_up]);
    }
    let mut found = vec![None; 6];
    while !generator.is_empty() {
        generator.step();
        for (&number, found) in numbers.iter().zip(&mut found) {
            *found = generator.take(number).or(found.take());
        }
    }
    for (place, (found, expected)) in found.into_iter().zip(expected).enumerate() {
        assert_eq!(found, (![0, 2, 4].contains(&place)).then_some(expected));
    }
}

#[test]
fn what_is_settled_does_not_change_any_more() {
    let backend = backend(Precision::F32, 1);
    let mut beams_that_settled = 0;
    for (model, options) in
        models(&backend).iter().flat_map(|model| ways().into_iter().map(move |way| (model, way)))
    {
        let walks = options.beam == 1 || options.sampling.is_some();
        let mut generator = generator(&backend, model, Options { n_best: 1, ..options });
        for source in sources(19, 5, model) {
            let number = generator.push(source).unwrap();
            let (mut settled, mut most): (Vec<Vec<u32>>, usize) = (Vec::new(), 0);
            let result = loop {
                generator.step_with(&mut |written| {
                    settled.push(written.tokens[..written.settled()].to_vec());
                    most = most.max(written.settled());
                });
                if let Some(mut results) = generator.take(number) {
                    break results.remove(0);
                }
            };
            assert!(settled.iter().all(|settled| result.tokens.starts_with(settled)), "{settled:?}");
            // Whoever walks does not turn back; a beam may hesitate to the end.
            assert!(!walks || most == result.tokens.len(), "{most} of {:?}", result.tokens);
            beams_that_settled += usize::from(!walks && most > 0);
        }
    }
    assert!(beams_that_settled > 0, "nothing was ever settled");
}
