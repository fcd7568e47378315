//! A step of learning: several batches are as good as one, and moving averages follow.

use attentive_ranks::{ThreadRank, threads};
use attentive_tensor::{Backend, CpuBackend, Precision, Random, Tape};
use attentive_train::corpus::{Example, ExampleBatch};
use attentive_train::tasks::{Task, Translate};
use attentive_train::{Learner, Settings};
use std::rc::Rc;
use std::sync::Arc;

const TOKENS: u32 = 30;

/// How many numbers travel together: as few as can be, some, and all after the backward pass.
const BUCKETS: [usize; 3] = [1, 200_000, usize::MAX];

/// Pairs of random tokens, of lengths that go up and down.
fn pairs(count: usize) -> Vec<(Vec<i32>, Vec<i32>)> {
    let random = Random::new(5);
    let side = |number: usize, length: usize| {
        let random = random.split(number as u64);
        (0..length as u32).map(|i| (random.bits(i) % (TOKENS - 1)) as i32).collect()
    };
    (0..count).map(|i| (side(2 * i, 1 + i * 7 % 5), side(2 * i + 1, 1 + i * 3 % 8))).collect()
}

fn batch(pairs: &[(Vec<i32>, Vec<i32>)]) -> ExampleBatch {
    let example = |(source, target): &(Vec<i32>, Vec<i32>)| Example {
        source: source.clone(),
        target: target.clone(),
        ..Example::default()
    };
    ExampleBatch { examples: pairs.iter().map(example).collect() }
}

/// With ε this large Adam's step is as long as the gradient, so that nothing hides how large it was.
fn settings(dropout: f64) -> Settings {
    let (d_model, heads, d_ff) = (Some(16), Some(2), Some(32));
    Settings { d_model, heads, d_ff, dropout: Some(dropout), epsilon: 1.0, ..Settings::default() }
}

fn backend(precision: Precision) -> Arc<dyn Backend> {
    CpuBackend::from_env().unwrap().with_precision(precision).shared()
}

/// All weights after some steps, and the sum of the losses.
fn learned(precision: Precision, settings: &Settings, steps: &[Vec<ExampleBatch>]) -> (Vec<f32>, f64) {
    let backend = backend(precision);
    let config = settings.model(TOKENS as usize).unwrap();
    let mut learner =
        Learner::new(&backend, Box::new(Translate::new(&backend, &config, settings).unwrap()), settings);
    for (batches, step) in steps.iter().zip(1..) {
        learner.step(settings, step, 0.1, batches, false).unwrap();
    }
    let parameters = learner.parameters();
    let weights = parameters.iter().flat_map(|parameter| backend.download_f32(&parameter.value())).collect();
    (weights, learner.loss())
}

/// The same steps of several ranks, each a thread: what each of them comes to. Gradients travel in buckets of so many numbers.
fn learned_together(
    ranks: usize,
    bucket: usize,
    precision: Precision,
    settings: &Settings,
    steps: &[Vec<ExampleBatch>],
) -> Vec<(Vec<f32>, f64)> {
    let learn = |group: ThreadRank| {
        let backend = backend(precision);
        let config = settings.model(TOKENS as usize).unwrap();
        let task = Box::new(Translate::new(&backend, &config, settings).unwrap());
        let mut learner = Learner::new(&backend, task, settings);
        learner.join_in_buckets(Rc::new(group), bucket);
        for (batches, step) in steps.iter().zip(1..) {
            learner.step(settings, step, 0.1, batches, true).unwrap();
        }
        let values = learner.parameters().iter().map(|parameter| parameter.value());
        (values.flat_map(|value| backend.download_f32(&value)).collect(), learner.loss())
    };
    std::thread::scope(|scope| {
        let spawned: Vec<_> =
            threads(ranks).into_iter().map(|group| scope.spawn(move || learn(group))).collect();
        spawned.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// How far apart two lists of numbers are, relative to how far the first is from a third.
fn apart(one: &[f32], other: &[f32], origin: &[f32]) -> f64 {
    let distance = |a: &[f32], b: &[f32]| {
        a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
    };
    distance(one, other) / distance(one, origin)
}

#[test]
fn accumulated_batches_are_one_batch_of_their_tokens_to_rounding() {
    let pairs = pairs(40);
    let settings = settings(0.0);
    let (origin, _) = learned(Precision::F32, &settings, &[]);
    let (whole, whole_loss) = learned(Precision::F32, &settings, &[vec![batch(&pairs)], vec![batch(&pairs)]]);
    // Of very different sizes, so that a mean of means would be far off.
    for cuts in [vec![1], vec![20], vec![1, 5, 39], vec![3, 4, 5, 6]] {
        let ends = cuts.iter().copied().chain([pairs.len()]);
        let begins = [0].into_iter().chain(cuts.iter().copied());
        let parts: Vec<ExampleBatch> =
            begins.zip(ends).map(|(begin, end)| batch(&pairs[begin..end])).collect();
        let (accumulated, loss) = learned(Precision::F32, &settings, &[parts.clone(), parts]);
        let apart = apart(&whole, &accumulated, &origin);
        assert!(apart < 1e-5, "{cuts:?}: {apart}");
        assert!((loss / whole_loss - 1.0).abs() < 1e-5, "{cuts:?}: {loss} {whole_loss}");
    }
}

#[test]
fn ranks_with_a_batch_each_learn_to_the_bit_what_one_learns_from_all_batches() {
    let pairs = pairs(40);
    let batches: Vec<ExampleBatch> = [0..3, 3..20, 20..21, 21..40].map(|range| batch(&pairs[range])).into();
    // Large enough that matrices are cut, and a clip that matters.
    let settings = Settings { d_model: Some(64), d_ff: Some(600), ema: 0.9, clip: 0.1, ..settings(0.2) };
    for (precision, ranks) in [(Precision::F32, 2), (Precision::F32, 4), (Precision::Bf16, 3)] {
        let steps = vec![batches[..ranks].to_vec(); 3];
        let alone = learned(precision, &settings, &steps);
        for bucket in BUCKETS {
            for together in learned_together(ranks, bucket, precision, &settings, &steps) {
                assert_eq!(together.1, alone.1);
                assert!(together.0 == alone.0, "{precision:?}, {ranks} ranks, buckets of {bucket}");
            }
        }
    }
}

#[test]
fn ranks_with_several_batches_each_learn_the_same_to_rounding_and_twice_the_same_bits() {
    let pairs = pairs(40);
    let parts = [0..3, 3..20, 20..21, 21..40, 0..9].map(|range| batch(&pairs[range]));
    let settings = settings(0.0);
    let steps = vec![Vec::from(parts); 2];
    let (origin, _) = learned(Precision::F32, &settings, &[]);
    let (alone, _) = learned(Precision::F32, &settings, &steps);
    let [together, others @ ..] =
        BUCKETS.map(|bucket| learned_together(2, bucket, Precision::F32, &settings, &steps));
    assert!(apart(&alone, &together[0].0, &origin) < 1e-5);
    others.into_iter().for_each(|other| assert!(other == together));
}

#[test]
fn gradients_are_finished_from_the_end_of_the_parameters_on() {
    let (backend, settings) = (backend(Precision::F32), settings(0.0));
    let config = settings.model(TOKENS as usize).unwrap();
    let task = Translate::new(&backend, &config, &settings).unwrap();
    let batch = batch(&pairs(4));
    let tape = Tape::training(&backend, 1);
    let loss = task.partial_loss(&tape, &batch, 0.1, batch.answers()).unwrap();
    let mut unfinished: Vec<&str> = task.parameters().iter().map(|parameter| parameter.name()).collect();
    let all = unfinished.len();
    let mut ready = Vec::new();
    tape.backward_each(&loss, &mut |parameter, _| {
        for name in unfinished.iter_mut().filter(|name| **name == parameter.name()) {
            *name = "";
        }
        ready.push(unfinished.iter().rev().take_while(|name| name.is_empty()).count());
    });
    // What is last among the parameters can be sent while half a layer, twelve parameters or so, is computed.
    let behind = (1..).zip(&ready).map(|(finished, ready)| finished - ready).max().unwrap();
    assert!(all > 50 && ready.last() == Some(&all) && behind <= 12, "{all} parameters: {ready:?}");
}

#[test]
fn every_step_and_every_batch_of_it_drops_out_anew() {
    let pairs = pairs(20);
    let settings = settings(0.3);
    let loss = |steps: &[Vec<ExampleBatch>]| learned(Precision::F32, &settings, steps).1;
    let one = || batch(&pairs);
    assert_eq!(loss(&[vec![one()]]), loss(&[vec![one()]]));
    // Were the same dropped again, two equal batches would have twice the loss of one.
    assert_ne!(loss(&[vec![one(), one()]]), 2.0 * loss(&[vec![one()]]));
}

#[test]
fn what_is_judged_is_the_moving_average_and_learning_goes_on_from_the_weights() {
    let settings = Settings { ema: 0.9, ..settings(0.0) };
    let backend = backend(Precision::F32);
    let config = settings.model(TOKENS as usize).unwrap();
    let mut learner =
        Learner::new(&backend, Box::new(Translate::new(&backend, &config, &settings).unwrap()), &settings);
    let table = |learner: &Learner| backend.download_f32(&learner.parameters()[0].value());
    let before = table(&learner);
    learner.step(&settings, 1, 0.1, &[batch(&pairs(10))], false).unwrap();
    let after = table(&learner);
    let judged = learner.judged(|backend, task| backend.download_f32(&task.parameters()[0].value()));
    // After the first step the mean has gone 9/11 of the way.
    for ((before, after), judged) in before.iter().zip(&after).zip(&judged) {
        let expected = before + 9.0 / 11.0 * (after - before);
        assert!((judged - expected).abs() < 1e-6, "{before} {after} {judged}");
    }
    assert_ne!(before, after);
    assert_eq!(table(&learner), after);
}
