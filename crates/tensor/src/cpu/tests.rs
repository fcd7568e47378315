use super::view::packed;
use super::{CpuBackend, Precision};
use crate::backend::{
    AttentionOps, Backend, ElementwiseOps, Form, MemoryOps, NORM_RUN, OptimizerOps, ProductOps,
    ProjectionTarget, Raw, Role, RowOps,
};
use crate::bias::Bias;
use crate::check::numbers;
use crate::parameter::{Gradients, Parameter};
use crate::shape::Shape;
use crate::tape::Tape;
use crate::tensor::{DType, Host, HostVec, Tensor};
use attentive_kernels::activation::Activation;
use attentive_kernels::attention::{Attention, KeyLists, Span};
use attentive_kernels::optimizer::Adam;
use half::bf16;
use std::sync::Arc;

fn backend(precision: Precision) -> Arc<CpuBackend> {
    Arc::new(CpuBackend::from_env().unwrap().with_precision(precision))
}

fn rule() -> Attention {
    Attention {
        heads: 2,
        d_k: 8,
        d_v: 8,
        scale: 0.3,
        causal: false,
        window: None,
        cached: false,
        dropout: None,
    }
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
        let layout = backend.layout(&[span(0, 40, 0, 40), span(40, 7, 40, 7)]);
        let mut fresh = Vec::new();
        for step in 0..4 {
            let ids = backend.upload_i32(&(0..47).collect::<Vec<_>>());
            let tape = Tape::training(&backend, step);
            let x = tape.embedding(&tape.parameter(&table), &ids, 1.0, None);
            let w = tape.parameter(&w);
            let q = tape.linear(&x, &w, None, Some(Activation::Gelu));
            let y = tape.residual(&x, &tape.attention(&rule(), 0.1, &layout, None, [&q, &x, &x]), 0.1);
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

/// Attention over all rows of queries and keys, forward and backward.
fn attend(spans: &[Span], queries: usize, keys: usize, backward: bool) {
    let backend = backend(Precision::F32);
    let zeros = |rows: usize| backend.zeros([rows, 16].into(), DType::F32);
    let (q, k) = (zeros(queries), zeros(keys));
    let layout = backend.layout(spans);
    let (y, lse) = backend.attention(&rule(), &layout, None, &q, &k, &k);
    if backward {
        backend.attention_backward(&rule(), &layout, (None, None), [&q, &k, &k], (&y, &lse), &y);
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

/// Projections for a cache, in every form, and the attention that goes with them.
#[test]
fn what_is_prepared_for_a_cache_is_the_same_to_everybody_else() {
    for (precision, form) in
        [(Precision::F32, Form::Precise), (Precision::Bf16, Form::Precise), (Precision::F32, Form::Int8)]
    {
        let backend = backend(precision);
        let rule = Attention {
            heads: 4,
            d_k: 16,
            d_v: 16,
            scale: 0.25,
            causal: true,
            window: None,
            cached: false,
            dropout: None,
        };
        let (tokens, width) = (37, 64);
        let upload = |seed, shape: Shape| backend.upload(Host::F32(&numbers(seed, shape.len())), shape);
        let x = backend.cast(&upload(1, [tokens, width].into()), backend.activations());
        let roles = [Role::Queries(rule), Role::Keys(rule), Role::Values(rule)];
        let project = |cached: bool| {
            let mut seed = 1;
            roles.map(|role| {
                seed += 1;
                let role = if cached { role } else { Role::Product };
                let [w, b] = [[width, width].into(), [width].into()]
                    .map(|shape| backend.prepare(Raw::Tensor(&upload(seed, shape)), form, role));
                backend.linear(&x, &w, Some(&b), None)
            })
        };
        let (plain, cached) = (project(false), project(true));
        let layout = backend.layout(&[span(0, 37, 0, 37)]);
        let table = upload(9, [3, rule.heads].into());
        let bias = Bias::Relative { table, buckets: backend.upload(Host::I32(&[1, 2, 0, 0, 2]), [5].into()) };
        let attend = |[q, k, v]: &[Tensor; 3], bias: Option<&Bias>| {
            backend.download(&backend.attention(&rule, &layout, bias, q, k, v).0)
        };
        for (plain, cached) in plain.iter().zip(&cached) {
            assert_eq!(backend.download(plain), backend.download(cached), "{precision} {form:?}");
        }
        assert_eq!(attend(&plain, None), attend(&cached, None), "{precision} {form:?}");
        assert_ne!(attend(&plain, Some(&bias)), attend(&plain, None), "{precision} {form:?}");

        // Rows in any order, all tokens at once or one after the other, in a cache that grows.
        let rows: Vec<i32> = (0..tokens as i32).map(|token| (token * 5) % tokens as i32).collect();
        let lists = |queries: std::ops::Range<usize>| {
            let rows: Vec<u32> = rows[..queries.end].iter().map(|&row| row as u32).collect();
            let lists: Vec<_> = queries.map(|query| 0..query as u32 + 1).collect();
            backend.seen(KeyLists { rows: &rows, lists: &lists })
        };
        let upload_rows = |rows: &[i32]| backend.upload(Host::I32(rows), [rows.len()].into());
        let in_cache = |[q, k, v]: &[Tensor; 3], bias: Option<&Bias>| {
            let mut cache = backend.cache(&rule);
            cache.reserve(tokens);
            cache.write(&upload_rows(&rows), k, v);
            backend.download(&cache.attend(q, &lists(0..tokens), bias))
        };
        if form == Form::Precise {
            for bias in [None, Some(&bias)] {
                assert_eq!(in_cache(&cached, bias), attend(&plain, bias), "{precision}");
                assert_eq!(in_cache(&cached, bias), in_cache(&plain, bias), "{precision}");
            }
        }
        let at_once = in_cache(&cached, Some(&bias));
        let mut cache = backend.cache(&rule);
        let mut one_by_one = Vec::new();
        for (token, &row) in rows.iter().enumerate() {
            let x = backend.embedding(&backend.cast(&x, DType::F32), &upload_rows(&[token as i32]), 1.0);
            let mut seed = 1;
            let [q, k, v] = roles.map(|role| {
                seed += 1;
                let [w, b] = [[width, width].into(), [width].into()]
                    .map(|shape| backend.prepare(Raw::Tensor(&upload(seed, shape)), form, role));
                backend.linear(&x, &w, Some(&b), None)
            });
            cache.reserve(row as usize + 1);
            cache.write(&upload_rows(&[row]), &k, &v);
            let shared = (&*backend as &dyn Backend).download_f32(&cache.attend(
                &q,
                &lists(token..token + 1),
                Some(&bias),
            ));
            one_by_one.extend(shared);
        }
        let at_once = match at_once {
            HostVec::Bf16(numbers) => numbers.into_iter().map(bf16::to_f32).collect(),
            HostVec::F32(numbers) => numbers,
            other => panic!("{other:?}"),
        };
        assert_eq!(one_by_one, at_once, "{precision} {form:?}");
    }
}

#[test]
fn a_window_in_a_cache_lets_a_query_see_the_last_rows_alone() {
    let backend = backend(Precision::F32);
    let upload = |seed, rows: usize| backend.upload(Host::F32(&numbers(seed, rows * 16)), [rows, 16].into());
    let (q, k, v) = (upload(1, 1), upload(2, 6), upload(3, 6));
    let numbers: Vec<i32> = (0..6).collect();
    let table = upload(4, 1).reshape([8, 2]);
    let buckets = backend.upload(Host::I32(&[1, 2, 3, 0, 4, 5, 6]), [7].into());
    let bias = Bias::Relative { table, buckets };
    let attend = |window, seen: &[u32]| {
        let mut cache = backend.cache(&Attention { causal: true, window, ..rule() });
        cache.reserve(6);
        cache.write(&backend.upload(Host::I32(&numbers), [6].into()), &k, &v);
        let list = 0..seen.len() as u32;
        let lists = KeyLists { rows: seen, lists: std::slice::from_ref(&list) };
        backend.download(&cache.attend(&q, &backend.seen(lists), Some(&bias)))
    };
    assert_eq!(attend(Some(2), &[0, 3, 5, 4]), attend(None, &[5, 4]));
    assert_ne!(attend(Some(3), &[0, 3, 5, 4]), attend(None, &[5, 4]));
}

#[test]
#[should_panic(expected = "has the order of a cache, and is for attention alone")]
fn what_is_prepared_for_a_cache_goes_to_attention_alone() {
    let backend = backend(Precision::F32);
    let w = backend.upload(Host::F32(&numbers(1, 256)), [16, 16].into());
    let w = backend.prepare(Raw::Tensor(&w), Form::Precise, Role::Keys(rule()));
    let keys = backend.linear(&backend.zeros([3, 16].into(), DType::F32), &w, None, None);
    backend.scale(&keys, 2.0);
}

#[test]
fn the_norm_of_tensors_is_that_of_their_runs_wherever_they_are() {
    let backend = backend(Precision::F32);
    let all = numbers(6, 3 * NORM_RUN + 5);
    let upload = |numbers: &[f32]| backend.upload(Host::F32(numbers), [numbers.len()].into());
    let sums =
        |numbers: &[f32]| (&*backend as &dyn Backend).download_f32(&backend.squared_norms(&upload(numbers)));
    let whole = sums(&all);
    assert_eq!(whole.len(), 4);
    assert_eq!(whole, all.chunks(2 * NORM_RUN).flat_map(sums).collect::<Vec<_>>());
    let norm = (&*backend as &dyn Backend).download_f32(&backend.squared_norm(&[&upload(&all)]));
    assert_eq!(norm, [whole.iter().map(|&sum| f64::from(sum)).sum::<f64>() as f32]);
}

#[test]
fn gradients_of_batches_are_added_in_order_and_in_f32() {
    let backend = backend(Precision::F32);
    let dynamic: &dyn Backend = &*backend;
    let w = Parameter::new("w", dynamic.upload_f32(&[0.0; 3], [3]));
    let terms = [numbers(7, 3), numbers(8, 3), numbers(9, 3)];
    let mut sum = Gradients::default();
    for term in &terms {
        let term = backend.cast(&dynamic.upload_f32(term, [3]), DType::Bf16);
        sum.add(dynamic, &w, term);
    }
    let rounded = |term: usize, i: usize| bf16::from_f32(terms[term][i]).to_f32();
    let expected: Vec<f32> = (0..3).map(|i| rounded(0, i) + rounded(1, i) + rounded(2, i)).collect();
    assert_eq!(dynamic.download_f32(sum.get(&w).unwrap()), expected);
}
