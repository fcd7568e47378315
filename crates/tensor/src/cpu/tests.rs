use super::*;
use crate::check::numbers;
use crate::parameter::{Gradients, Parameter};
use crate::tape::Tape;

fn backend(precision: Precision) -> Arc<CpuBackend> {
    Arc::new(CpuBackend::from_env().unwrap().with_precision(precision))
}

fn rule() -> Attention {
    Attention { heads: 2, d_k: 8, d_v: 8, scale: 0.3, causal: false, window: None, dropout: None }
}

fn span(query: u32, queries: u32, key: u32, keys: u32) -> Span {
    Span { query, queries, key, keys, offset: 0 }
}

#[test]
fn from_the_second_training_step_on_no_memory_is_asked_for() {
    for precision in [Precision::F32, Precision::Bf16] {
        let cpu = backend(precision);
        let backend = Arc::clone(&cpu) as Arc<dyn Backend>;
        let weight = |seed, shape: [usize; 2]| {
            Parameter::new("w", backend.upload_f32(&numbers(seed, shape[0] * shape[1]), shape))
        };
        let (table, w) = (weight(1, [50, 16]), weight(2, [16, 16]));
        let mut adam = crate::Adam::new(&*backend, &[table.clone(), w.clone()]);
        let adam_rule = Adam { rate: 1e-3, beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0 };
        let spans: Arc<[Span]> = [span(0, 40, 0, 40), span(40, 7, 40, 7)].into();
        let mut fresh = Vec::new();
        for step in 0..4 {
            let ids = backend.upload_i32(&(0..47).collect::<Vec<_>>());
            let tape = Tape::training(&backend, step);
            let x = tape.embedding(&tape.parameter(&table), &ids, 1.0, None);
            let w = tape.parameter(&w);
            let q = tape.linear(&x, &w, None, Some(Activation::Gelu));
            let y = tape.residual(&x, &tape.attention(&rule(), 0.1, &spans, &q, &x, &x), 0.1);
            let target = ProjectionTarget { tokens: &ids, classes: 50, smoothing: 0.1, scale: 0.1 };
            let loss = tape.projection_loss(&y, &tape.parameter(&table), None, &target);
            let mut gradients = Gradients::default();
            tape.backward(&loss, &mut gradients);
            drop((x, w, q, y));
            adam.step(&*backend, &adam_rule, Some(1.0), &gradients);
            assert!(backend.download_f32(loss.value())[0].is_finite());
            fresh.push(cpu.pool.fresh());
        }
        assert_eq!(fresh[1..], [fresh[0]; 3], "{precision:?}");
    }
}

/// To the bit, whoever changed them.
#[test]
fn packed_weights_follow_their_numbers() {
    let backend = backend(Precision::Bf16);
    let rounded = |seed, shape: [usize; 2]| {
        let x: Vec<bf16> = numbers(seed, shape[0] * shape[1]).into_iter().map(bf16::from_f32).collect();
        backend.upload(Host::Bf16(&x), shape.into())
    };
    let (x, dy) = (rounded(1, [5, 40]), rounded(2, [5, 70]));
    let products = |w: &Tensor| {
        let both = [backend.linear(&x, w, None, None), backend.linear_backward_input(&dy, w, None)];
        both.map(|product| backend.download(&product))
    };
    let mut w = backend.upload(Host::F32(&numbers(3, 70 * 40)), [70, 40].into());
    let g = backend.upload(Host::F32(&numbers(4, 70 * 40)), [70, 40].into());
    let rule = Adam { rate: 0.1, beta1: 0.9, beta2: 0.98, epsilon: 1e-9, weight_decay: 0.0 };
    let [mut m, mut v] = [(); 2].map(|()| backend.zeros([70, 40].into(), DType::F32));
    let mut seen = Vec::new();
    for change in 0..4 {
        match change {
            0 => {}
            1 | 2 => backend.adam(&rule, change, None, &mut w, &g, [&mut m, &mut v]),
            _ => backend.add_assign(&mut w, &g, 0.5),
        }
        // The optimizer leaves them packed, other changes do not.
        assert_eq!(packed(&w).is_some(), [1, 2].contains(&change), "change {change}");
        let fresh = backend.copy(&w);
        seen.push(products(&w));
        assert_eq!(seen.last(), Some(&products(&fresh)), "change {change}");
        assert!(packed(&w).is_some());
    }
    seen.dedup();
    assert_eq!(seen.len(), 4, "every change must be seen in the products");
}

/// A weight that is used once has a gradient in the type of activations; what more passes, or other uses, add is added in f32.
#[test]
fn gradients_of_weights_are_narrow_until_something_is_added() {
    let backend = backend(Precision::Bf16) as Arc<dyn Backend>;
    let upload = |seed| backend.upload_f32(&numbers(seed, 32 * 32), [32, 32]);
    let [once, table, scaled] =
        [("once", 1), ("table", 2), ("scaled", 3)].map(|(name, seed)| Parameter::new(name, upload(seed)));
    let ids = backend.upload_i32(&(0..32).collect::<Vec<_>>());
    let pass = |gradients: &mut Gradients| {
        let tape = Tape::training(&backend, 0);
        let x = tape.embedding(&tape.parameter(&table), &ids, 1.0, None);
        let y = tape.linear(&x, &tape.parameter(&once), None, None);
        // Weights that an operation made: it goes back in the type that it had.
        let scaled = tape.parameter(&scaled);
        let y = tape.linear(&y, &tape.mul(&scaled, &scaled), None, None);
        let tied = tape.linear(&y, &tape.parameter(&table), None, None);
        let loss = tape.sum(&tape.mul(&tied, &tied));
        tape.backward(&loss, gradients);
    };
    let (mut one, mut two) = (Gradients::default(), Gradients::default());
    pass(&mut one);
    pass(&mut two);
    pass(&mut two);
    let types = |gradients: &Gradients| [&once, &table, &scaled].map(|w| gradients.get(w).unwrap().dtype());
    assert_eq!(types(&one), [DType::Bf16, DType::F32, DType::F32]);
    assert_eq!(types(&two), [DType::F32; 3]);
    for w in [&once, &table, &scaled] {
        let [one, two] = [&one, &two].map(|gradients| backend.download_f32(gradients.get(w).unwrap()));
        let greatest = two.iter().fold(0f32, |most, x| most.max(x.abs()));
        for (one, two) in one.iter().zip(&two) {
            assert!((two - 2.0 * one).abs() <= 0.01 * greatest, "{}: {one} {two}", w.name());
        }
    }
}

/// Attention with as many rows of queries and keys as there are, and the way back.
fn attend(spans: &[Span], queries: usize, keys: usize, backward: bool) {
    let backend = backend(Precision::F32);
    let zeros = |rows: usize| backend.zeros([rows, 16].into(), DType::F32);
    let (q, k) = (zeros(queries), zeros(keys));
    let (y, lse) = backend.attention(&rule(), spans, &q, &k, &k);
    if backward {
        backend.attention_backward(&rule(), spans, [&q, &k, &k], (&y, &lse), &y);
    }
}

#[test]
#[should_panic(expected = "attention: the spans have 3 queries, but [4, 16] has 4 rows")]
fn a_query_that_no_span_covers_is_a_mistake() {
    attend(&[span(0, 3, 0, 5)], 4, 5, false);
}

#[test]
#[should_panic(expected = "attention_backward: the spans have 5 keys, but [6, 16] has 6 rows")]
fn a_key_that_no_span_covers_is_a_mistake_on_the_way_back() {
    attend(&[span(0, 3, 0, 5)], 3, 6, true);
}

#[test]
fn keys_may_lie_in_slots_that_are_not_full() {
    attend(&[span(0, 1, 0, 2), span(1, 1, 10, 3)], 2, 20, false);
}
