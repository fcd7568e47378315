//! Every operation against softmax with the whole matrix in double precision, and the promises about bits.

use super::*;
use crate::embedding::write_int8_rows;
use crate::gemm::quantise;
use crate::testing::{bits, normal, normals, rounding, wide};
use crate::{Cpu, Isa, Random, Threads};
use half::bf16;

fn cpu(isa: Isa) -> Cpu {
    Cpu { isa, threads: Threads::new(1) }
}

fn span(query: u32, queries: u32, key: u32, keys: u32, offset: u32) -> Span {
    Span { query, queries, key, keys, offset }
}

fn plain(heads: usize, d_k: usize, d_v: usize) -> Attention {
    let scale = 1.0 / (d_k as f32).sqrt();
    Attention { heads, d_k, d_v, scale, causal: false, window: None, cached: false, dropout: None }
}

/// Numbers of a batch, laid out with gaps of `gap` numbers between rows.
#[derive(Clone)]
struct Case<T> {
    attention: Attention,
    spans: Vec<Span>,
    rows: [usize; 2],
    gap: usize,
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
    dy: Vec<T>,
    bias: Option<CaseBias>,
}

/// A bias on scores, and the numbers of it.
#[derive(Clone)]
enum CaseBias {
    Relative(Vec<f32>),
    Dense(Vec<f32>),
}

/// The buckets of distances from -4 to 4, of which one is in the midst of others and some are shared.
const BUCKETS: [i32; 9] = [3, 3, 2, 1, 0, 4, 5, 4, 6];

impl CaseBias {
    fn get(&self) -> Bias<'_> {
        match self {
            CaseBias::Relative(table) => Bias::Relative { table, buckets: &BUCKETS },
            CaseBias::Dense(numbers) => Bias::Dense(numbers),
        }
    }

    fn numbers(&mut self) -> &mut Vec<f32> {
        let (CaseBias::Relative(numbers) | CaseBias::Dense(numbers)) = self;
        numbers
    }

    /// The place of a number of it, by the definition.
    fn place(&self, spans: &[Span], number: usize, heads: usize, head: usize, i: usize, j: usize) -> usize {
        let span = &spans[number];
        match self {
            CaseBias::Relative(_) => {
                let distance = j as i64 - (span.offset as i64 + i as i64);
                BUCKETS[(distance.clamp(-4, 4) + 4) as usize] as usize * heads + head
            }
            CaseBias::Dense(_) => {
                let before: u32 = spans[..number].iter().map(|span| span.queries * span.keys).sum();
                let (queries, keys) = (span.queries as usize, span.keys as usize);
                before as usize * heads + (head * queries + i) * keys + j
            }
        }
    }
}

/// What is computed from a [`Case`], by a kernel or by the reference.
struct Results<T, F> {
    y: Vec<T>,
    lse: Vec<F>,
    weights: Vec<F>,
    dq: Vec<T>,
    dk: Vec<T>,
    dv: Vec<T>,
    /// Added to ones; empty without a bias.
    dbias: Vec<F>,
}

/// What rows that belong to no span hold before and after.
const UNTOUCHED: f32 = 7.0;

impl<T: Real> Case<T> {
    fn new(attention: Attention, spans: &[Span]) -> Case<T> {
        Case::with_gap(attention, spans, 0)
    }

    fn with_gap(attention: Attention, spans: &[Span], gap: usize) -> Case<T> {
        let Attention { heads, d_k, d_v, .. } = attention;
        // One row more than the spans use, to see that it stays as it is.
        let queries = spans.iter().map(|span| span.rows_of_queries().end).max().unwrap_or(0) + 1;
        let keys = keys(spans) + 1;
        Case {
            attention,
            spans: spans.to_vec(),
            rows: [queries, keys],
            gap,
            q: normals(1, queries * (heads * d_k + gap)),
            k: normals(2, keys * (heads * d_k + gap)),
            v: normals(3, keys * (heads * d_v + gap)),
            dy: normals(4, queries * heads * d_v),
            bias: None,
        }
    }

    /// The same with a bias over relative positions.
    fn with_table(self) -> Case<T> {
        let bias = Some(CaseBias::Relative(normal(5, 7 * self.attention.heads)));
        Case { bias, ..self }
    }

    /// The same with a bias for each pair.
    fn with_dense(self) -> Case<T> {
        let pairs: u32 = self.spans.iter().map(|span| span.queries * span.keys).sum();
        let bias = Some(CaseBias::Dense(normal(5, pairs as usize * self.attention.heads)));
        Case { bias, ..self }
    }

    fn bias(&self) -> Option<Bias<'_>> {
        self.bias.as_ref().map(CaseBias::get)
    }

    fn q(&self) -> Rows<'_, T> {
        Rows { data: &self.q, stride: self.attention.heads * self.attention.d_k + self.gap }
    }

    fn k(&self) -> Rows<'_, T> {
        Rows { data: &self.k, ..self.q() }
    }

    fn v(&self) -> Rows<'_, T> {
        Rows { data: &self.v, stride: self.attention.heads * self.attention.d_v + self.gap }
    }

    fn forward(&self, cpu: &Cpu) -> (Vec<T>, Vec<f32>) {
        let Attention { heads, d_v, .. } = self.attention;
        let mut y = vec![T::from_f32(UNTOUCHED); self.rows[0] * heads * d_v];
        let mut lse = vec![UNTOUCHED; self.rows[0] * heads];
        let (q, k, v) = (self.q(), self.k(), self.v());
        attention(cpu, &self.attention, &self.spans, self.bias(), q, k, v, &mut y, &mut lse);
        (y, lse)
    }

    fn weights(&self, cpu: &Cpu, lse: &[f32], heads: &[usize]) -> Vec<f32> {
        let elements = |span: &Span| (span.queries * span.keys) as usize * heads.len();
        let mut weights = vec![UNTOUCHED; self.spans.iter().map(elements).sum()];
        let (q, k) = (self.q(), self.k());
        attention_weights(cpu, &self.attention, &self.spans, self.bias(), q, k, lse, heads, &mut weights);
        weights
    }

    fn run(&self, cpu: &Cpu) -> Results<T, f32> {
        let Attention { heads, d_k, d_v, .. } = self.attention;
        let [queries, keys] = self.rows;
        let (y, lse) = self.forward(cpu);
        let weights = self.weights(cpu, &lse, &Vec::from_iter(0..heads));
        let untouched = |len| vec![T::from_f32(UNTOUCHED); len];
        let mut dq = untouched(queries * heads * d_k);
        let (mut dk, mut dv) = (untouched(keys * heads * d_k), untouched(keys * heads * d_v));
        let (q, k, v) = (self.q(), self.k(), self.v());
        let (how, spans, dy) = (&self.attention, &self.spans, &self.dy);
        let mut dbias = vec![1.0; self.bias.clone().map_or(0, |mut bias| bias.numbers().len())];
        attention_backward(
            cpu,
            how,
            spans,
            self.bias(),
            q,
            k,
            v,
            &y,
            &lse,
            dy,
            &mut dq,
            &mut dk,
            &mut dv,
            Some(&mut dbias).filter(|_| self.bias.is_some()).map(|dbias| &mut dbias[..]),
        );
        Results { y, lse, weights, dq, dk, dv, dbias }
    }

    /// The formulas of the module with whole matrices. The backward pass starts from the output as it was stored.
    fn reference(&self, stored_y: &[T]) -> Results<f64, f64> {
        let stored_y = wide(stored_y);
        let Attention { heads, d_k, d_v, scale, causal, window, dropout, .. } = self.attention;
        let [all_queries, all_keys] = self.rows;
        let untouched = |len| vec![UNTOUCHED as f64; len];
        let (mut y, mut lse) = (untouched(all_queries * heads * d_v), untouched(all_queries * heads));
        let mut dq = untouched(all_queries * heads * d_k);
        let (mut dk, mut dv) = (untouched(all_keys * heads * d_k), untouched(all_keys * heads * d_v));
        let mut weights = Vec::new();
        let bias = self.bias.clone().map_or_else(Vec::new, |mut bias| wide(bias.numbers()));
        let mut dbias = vec![1.0; bias.len()];
        for (number, span) in self.spans.iter().enumerate() {
            let place = |head, i, j| {
                self.bias.as_ref().map(|bias| bias.place(&self.spans, number, heads, head, i, j))
            };
            for head in 0..heads {
                let element =
                    |x: Rows<T>, row: usize, column: usize| x.row(row, column + 1)[column].to_f32() as f64;
                let q = |i, d| element(self.q(), span.query as usize + i, head * d_k + d);
                let k = |j, d| element(self.k(), span.key as usize + j, head * d_k + d);
                let v = |j, d| element(self.v(), span.key as usize + j, head * d_v + d);
                let at_query = |i: usize| (span.query as usize + i) * heads + head;
                let at_key = |j: usize| (span.key as usize + j) * heads + head;
                for j in 0..span.keys as usize {
                    dk[at_key(j) * d_k..][..d_k].fill(0.0);
                    dv[at_key(j) * d_v..][..d_v].fill(0.0);
                }
                for i in 0..span.queries as usize {
                    let position = span.offset as i64 + i as i64;
                    let visible = |j: usize| {
                        let ahead = j as i64 - position;
                        (!causal || ahead <= 0) && window.is_none_or(|w| ahead.abs() < w as i64)
                    };
                    let dot = |j| (0..d_k).map(|d| q(i, d) * k(j, d)).sum::<f64>();
                    let added = |j| place(head, i, j).map_or(0.0, |place| bias[place]);
                    let score =
                        |j| if visible(j) { scale as f64 * dot(j) + added(j) } else { f64::NEG_INFINITY };
                    let scores: Vec<f64> = (0..span.keys as usize).map(score).collect();
                    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = scores.iter().map(|s| (s - max).exp()).sum();
                    let total = if max == f64::NEG_INFINITY { max } else { max + sum.ln() };
                    lse[at_query(i)] = total;
                    let weigh = |&s: &f64| if s == f64::NEG_INFINITY { 0.0 } else { (s - total).exp() };
                    let p: Vec<f64> = scores.iter().map(weigh).collect();
                    weights.extend(&p);
                    let kept: Vec<f64> = (0..p.len() as u32)
                        .map(|j| {
                            let random = |d: Dropout| d.random.split(at_query(i) as u64);
                            dropout.map_or(1.0, |d| Dropout { p: d.p, random: random(d) }.factor(j) as f64)
                        })
                        .collect();
                    let dy = |d: usize| self.dy[at_query(i) * d_v + d].to_f32() as f64;
                    for d in 0..d_v {
                        y[at_query(i) * d_v + d] = (0..p.len()).map(|j| p[j] * kept[j] * v(j, d)).sum();
                    }
                    let dp = |j: usize| kept[j] * (0..d_v).map(|d| dy(d) * v(j, d)).sum::<f64>();
                    let mean: f64 = (0..d_v).map(|d| dy(d) * stored_y[at_query(i) * d_v + d]).sum();
                    dq[at_query(i) * d_k..][..d_k].fill(0.0);
                    for j in 0..p.len() {
                        let ds = p[j] * (dp(j) - mean);
                        if let Some(place) = place(head, i, j) {
                            dbias[place] += ds;
                        }
                        let ds = ds * scale as f64;
                        for d in 0..d_k {
                            dq[at_query(i) * d_k + d] += ds * k(j, d);
                            dk[at_key(j) * d_k + d] += ds * q(i, d);
                        }
                        for d in 0..d_v {
                            dv[at_key(j) * d_v + d] += p[j] * kept[j] * dy(d);
                        }
                    }
                }
            }
        }
        Results { y, lse, weights, dq, dk, dv, dbias }
    }
}

#[track_caller]
fn assert_close<T: Real>(what: &str, actual: &[T], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len(), "{what}");
    for (i, (a, &e)) in wide(actual).into_iter().zip(expected).enumerate() {
        let equal = a == e; // Infinities have no difference.
        let near = (a - e).abs() < 1e-5 * (1.0 + e.abs()) + rounding::<T>() * e.abs();
        assert!(equal || near, "{what}[{i}] is {a}, not {e}");
    }
}

/// The same of outputs. Where weights of keys are rounded, only the difference of all numbers together is small.
#[track_caller]
fn assert_near<T: Real>(what: &str, actual: &[T], expected: &[f64]) {
    if rounding::<T>() == 0.0 {
        return assert_close(what, actual, expected);
    }
    assert_eq!(actual.len(), expected.len(), "{what}");
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    let difference = norm(&mut wide(actual).into_iter().zip(expected).map(|(a, e)| a - e));
    let (limit, all) = (rounding::<T>(), norm(&mut expected.iter().copied()));
    assert!(difference <= limit * all, "{what}: the difference is {} of the norm", difference / all);
}

#[track_caller]
fn assert_same_bits<T: Real>(what: &str, a: &[T], b: &[T]) {
    assert!(bits(a) == bits(b), "{what}: {:?} is not {:?}", wide(a), wide(b));
}

fn dropping(p: f32) -> Option<Dropout> {
    Some(Dropout { p, random: Random::new(99) })
}

fn cases<T: Real>() -> Vec<Case<T>> {
    let causal = Attention { causal: true, ..plain(2, 8, 8) };
    let many: Vec<Span> = (0..14).map(|i| span(2 * i, 2, 3 * i, 3, 0)).collect();
    vec![
        Case::new(plain(1, 1, 1), &[]),
        Case::new(plain(1, 1, 1), &[span(0, 1, 0, 1, 0)]),
        Case::new(plain(3, 5, 7), &[span(0, 1, 0, 65, 0), span(1, 3, 65, 1, 0)]),
        Case::new(plain(2, 32, 16), &[span(0, 24, 0, 31, 0), span(24, 64, 31, 64, 0)]),
        Case::with_gap(plain(2, 17, 33), &[span(0, 65, 0, 130, 0), span(65, 9, 130, 16, 0)], 5),
        // Out of order, with gaps, and with nothing to ask or nothing to see.
        Case::new(
            plain(2, 8, 3),
            &[span(20, 7, 3, 9, 0), span(2, 4, 14, 0, 0), span(30, 0, 0, 3, 0), span(8, 9, 14, 20, 0)],
        ),
        Case::new(causal, &[span(0, 130, 0, 130, 0), span(130, 1, 130, 70, 69), span(131, 5, 200, 70, 65)]),
        // Keys after the last position, and positions after the last key.
        Case::with_gap(causal, &[span(0, 3, 0, 200, 1), span(3, 4, 200, 5, 3)], 1),
        Case::new(
            Attention { window: Some(3), ..causal },
            &[span(0, 150, 0, 150, 0), span(150, 4, 150, 5, 6)],
        ),
        Case::new(Attention { window: Some(70), ..plain(1, 9, 20) }, &[span(0, 200, 0, 180, 0)]),
        Case::new(Attention { window: Some(0), ..plain(1, 4, 4) }, &[span(0, 3, 0, 3, 0)]),
        Case::new(
            Attention { dropout: dropping(0.3), ..causal },
            &[span(3, 70, 0, 70, 0), span(80, 2, 70, 90, 88)],
        ),
        // As wide as whole tiles: one block of sums, several blocks of queries and of keys, some that do not meet, and empty spans.
        Case::new(
            Attention { causal: true, ..plain(2, 32, 32) },
            &[span(0, 32, 0, 32, 0), span(32, 1, 32, 1, 0), span(33, 17, 33, 33, 16)],
        ),
        Case::with_gap(
            Attention { dropout: dropping(0.3), ..plain(2, 64, 32) },
            &[
                span(5, 130, 0, 70, 0),
                span(2, 3, 70, 129, 0),
                span(140, 0, 200, 3, 0),
                span(141, 2, 200, 0, 0),
            ],
            3,
        ),
        Case::new(
            Attention { causal: true, window: Some(40), ..plain(1, 32, 96) },
            &[span(0, 200, 0, 200, 0), span(200, 9, 200, 80, 71)],
        ),
        // So many that a task has several heads, and the last of a row fewer.
        Case::new(plain(5, 3, 4), &many),
        Case::new(plain(5, 32, 32), &many),
        // Biases: in one block and in several, on vectors and on tiles, with an offset, with dropout, with a window, with empty spans.
        Case::new(causal, &[span(0, 130, 0, 130, 0), span(130, 1, 130, 70, 69)]).with_table(),
        Case::new(plain(3, 5, 7), &[span(0, 3, 0, 65, 0), span(3, 3, 65, 1, 0)]).with_table(),
        Case::new(
            plain(2, 32, 32),
            &[span(0, 100, 0, 70, 0), span(100, 0, 70, 3, 9), span(100, 2, 73, 0, 0)],
        )
        .with_table(),
        Case::new(Attention { dropout: dropping(0.3), ..plain(2, 64, 32) }, &[span(0, 70, 0, 90, 20)])
            .with_table(),
        Case::new(Attention { window: Some(3), ..causal }, &[span(0, 150, 0, 150, 0)]).with_table(),
        Case::new(causal, &[span(0, 70, 0, 70, 0), span(70, 3, 70, 5, 2)]).with_dense(),
        Case::with_gap(plain(2, 32, 64), &[span(0, 66, 0, 67, 0), span(66, 5, 67, 1, 0)], 3).with_dense(),
        Case::new(plain(5, 3, 4), &many).with_table(),
        Case::new(plain(5, 32, 32), &many).with_dense(),
    ]
}

#[test]
fn every_operation_matches_softmax_over_the_whole_matrix() {
    fn test<T: Real>() {
        for isa in Isa::present() {
            for (number, case) in cases::<T>().iter().enumerate() {
                let actual = case.run(&cpu(isa));
                let expected = case.reference(&actual.y);
                let name = |what: &str| format!("{isa}, case {number}: {what}");
                assert_near(&name("y"), &actual.y, &expected.y);
                assert_close(&name("lse"), &actual.lse, &expected.lse);
                assert_close(&name("weights"), &actual.weights, &expected.weights);
                assert_close(&name("dq"), &actual.dq, &expected.dq);
                assert_close(&name("dk"), &actual.dk, &expected.dk);
                assert_close(&name("dv"), &actual.dv, &expected.dv);
                assert_close(&name("dbias"), &actual.dbias, &expected.dbias);
            }
        }
    }
    test::<f32>();
    test::<bf16>();
}

#[test]
fn gradients_match_finite_differences_with_and_without_dropout() {
    let how = Attention { causal: true, ..plain(2, 8, 12) };
    let spans = [span(0, 30, 0, 30, 0), span(30, 5, 30, 80, 75)];
    for (dropout, biased) in [(None, 0), (dropping(0.4), 0), (None, 1), (dropping(0.4), 2)] {
        let case = Case::<f32>::new(Attention { dropout, ..how }, &spans);
        let case = match biased {
            0 => case,
            1 => case.with_table(),
            _ => case.with_dense(),
        };
        for isa in Isa::present() {
            let Results { dq, dk, dv, mut dbias, .. } = case.run(&cpu(isa));
            dbias.iter_mut().for_each(|x| *x -= 1.0);
            // The last row of each belongs to no span: it has no gradient.
            let all = [(dq, 16, 5), (dk, 16, 6), (dv, 24, 7), (dbias, 0, 8)];
            let gradients = all.map(|(mut gradient, row, seed)| {
                let used = gradient.len() - row;
                gradient[used..].fill(0.0);
                (gradient, seed)
            });
            // Along the gradient, where the loss changes most, with a little noise in each of the inputs.
            let directions = gradients.each_ref().map(|(gradient, seed)| {
                let norm = gradient.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
                let noise = normal(*seed, gradient.len());
                Vec::from_iter(gradient.iter().zip(&noise).map(|(g, n)| g / norm + 0.02 * n))
            });
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| a as f64 * b as f64).sum::<f64>();
            let slope: f64 = gradients.iter().zip(&directions).map(|((g, _), d)| dot(g, d)).sum();
            let loss = |step: f32| {
                let mut moved = case.clone();
                let mut none = Vec::new();
                let bias = moved.bias.as_mut().map_or(&mut none, CaseBias::numbers);
                let inputs = [&mut moved.q, &mut moved.k, &mut moved.v, bias];
                for (x, direction) in inputs.into_iter().zip(&directions) {
                    x.iter_mut().zip(direction).for_each(|(x, d)| *x += step * d);
                }
                let (y, _) = moved.forward(&cpu(isa));
                dot(&y[..y.len() - 24], &case.dy[..y.len() - 24])
            };
            let difference = (loss(1e-2) - loss(-1e-2)) / 2e-2;
            assert!((difference / slope - 1.0).abs() < 2e-3, "{isa}: {difference} along a slope of {slope}");
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    fn test<T: Real>() {
        for isa in Isa::present() {
            for case in cases::<T>() {
                let one = case.run(&cpu(isa));
                for count in [2, 3, 7] {
                    let many = case.run(&Cpu { isa, threads: Threads::new(count) });
                    assert_same_bits("y", &one.y, &many.y);
                    assert_same_bits("lse", &one.lse, &many.lse);
                    assert_same_bits("weights", &one.weights, &many.weights);
                    assert_same_bits("dq", &one.dq, &many.dq);
                    assert_same_bits("dk", &one.dk, &many.dk);
                    assert_same_bits("dv", &one.dv, &many.dv);
                    assert_same_bits("dbias", &one.dbias, &many.dbias);
                }
            }
        }
    }
    test::<f32>();
    test::<bf16>();
}

#[test]
fn a_sequence_does_not_feel_its_neighbours() {
    fn test<T: Real>() {
        for [d_k, d_v] in [[12, 20], [32, 64]] {
            let how = Attention { causal: true, ..plain(2, d_k, d_v) };
            let spans = [span(0, 30, 0, 30, 0), span(30, 77, 30, 77, 0), span(107, 2, 107, 9, 7)];
            let batch = Case::<T>::new(how, &spans);
            for isa in Isa::present() {
                let together = batch.run(&cpu(isa));
                for one in spans {
                    let alone = Case { spans: vec![one], ..batch.clone() }.run(&cpu(isa));
                    let part = |rows: Range<usize>, width| rows.start * width..rows.end * width;
                    let queries = |width| part(one.rows_of_queries(), width);
                    let keys = |width| part(one.rows_of_keys(), width);
                    let (narrow, wide) = (2 * d_k, 2 * d_v);
                    assert_same_bits("y", &together.y[queries(wide)], &alone.y[queries(wide)]);
                    assert_same_bits("lse", &together.lse[queries(2)], &alone.lse[queries(2)]);
                    assert_same_bits("dq", &together.dq[queries(narrow)], &alone.dq[queries(narrow)]);
                    assert_same_bits("dk", &together.dk[keys(narrow)], &alone.dk[keys(narrow)]);
                    assert_same_bits("dv", &together.dv[keys(wide)], &alone.dv[keys(wide)]);
                }
            }
        }
    }
    test::<f32>();
    test::<bf16>();
}

#[test]
fn one_query_over_cached_keys_gives_the_bits_of_the_whole_pass() {
    fn test<T: Real>() {
        let length = 150;
        for window in [None, Some(10), Some(100)] {
            let how = Attention { causal: true, window, ..plain(2, 20, 12) };
            let whole = Case::<T>::new(how, &[span(0, length, 0, length, 0)]).with_table();
            for isa in Isa::present() {
                let (y, lse) = whole.forward(&cpu(isa));
                for query in 0..length {
                    // Its own row, over the keys that there were when it was the last one.
                    let step = Case { spans: vec![span(query, 1, 0, query + 1, query)], ..whole.clone() };
                    let (y_step, lse_step) = step.forward(&cpu(isa));
                    let at = query as usize;
                    assert_same_bits("y", &y_step[at * 24..][..24], &y[at * 24..][..24]);
                    assert_same_bits("lse", &lse_step[at * 2..][..2], &lse[at * 2..][..2]);
                }
            }
        }
    }
    test::<f32>();
    test::<bf16>();
}

#[test]
fn keys_out_of_sight_do_not_change_a_bit() {
    fn test<T: Real>() {
        let how = Attention { causal: true, window: Some(40), ..plain(1, 8, 8) };
        let case = Case::<T>::new(how, &[span(0, 200, 0, 200, 0)]);
        let mut other = case.clone();
        // Query 130 sees keys 91 to 130.
        for hidden in (0..91).chain(131..200) {
            other.k[hidden * 8..][..8].fill(T::from_f32(3.0));
            other.v[hidden * 8..][..8].fill(T::from_f32(-5.0));
        }
        for isa in Isa::present() {
            let ((y, lse), (y_other, lse_other)) = (case.forward(&cpu(isa)), other.forward(&cpu(isa)));
            assert_same_bits("y", &y[130 * 8..][..8], &y_other[130 * 8..][..8]);
            assert_eq!(lse[130].to_bits(), lse_other[130].to_bits());
            assert_ne!(lse[131], lse_other[131]);
        }
    }
    test::<f32>();
    test::<bf16>();
}

#[test]
fn weights_of_chosen_heads_are_those_of_all_in_the_order_asked_for() {
    let case = Case::<f32>::new(plain(3, 4, 4), &[span(0, 2, 0, 5, 0), span(2, 3, 5, 4, 0)]);
    for isa in Isa::present() {
        let (_, lse) = case.forward(&cpu(isa));
        let all = case.weights(&cpu(isa), &lse, &[0, 1, 2]);
        let chosen = case.weights(&cpu(isa), &lse, &[2, 0]);
        let expected = [&all[20..30], &all[..10], &all[54..66], &all[30..42]].concat();
        assert_same_bits("weights", &chosen, &expected);
        assert!(case.weights(&cpu(isa), &lse, &[]).is_empty());
    }
}

#[test]
fn large_scores_do_not_overflow() {
    let mut case = Case::<f32>::new(plain(1, 4, 4), &[span(0, 3, 0, 100, 0)]);
    case.q.iter_mut().for_each(|q| *q *= 1000.0);
    for isa in Isa::present() {
        let results = case.run(&cpu(isa));
        assert!(results.y.iter().chain(&results.dq).chain(&results.dk).all(|x| x.is_finite()), "{isa}");
        let heaviest = results.weights[..100].iter().copied().fold(0.0, f32::max);
        assert!((heaviest - 1.0).abs() < 1e-3, "{isa}: {heaviest}");
    }
}

#[test]
fn a_query_that_is_not_a_number_gives_nan_and_leaves_others_alone() {
    fn test<T: Real>() {
        let case = Case::<T>::new(Attention { causal: true, ..plain(1, 4, 4) }, &[span(0, 20, 0, 20, 0)]);
        for query in [0, 3, 19] {
            let mut broken = case.clone();
            broken.q[query * 4 + 1] = T::from_f32(f32::NAN);
            for isa in Isa::present() {
                let (whole, (y, lse)) = (case.forward(&cpu(isa)), broken.forward(&cpu(isa)));
                assert!(
                    lse[query].is_nan() && wide(&y[query * 4..][..4]).iter().all(|y| y.is_nan()),
                    "{isa}"
                );
                assert_same_bits("before", &y[..query * 4], &whole.0[..query * 4]);
                assert_same_bits("after", &y[(query + 1) * 4..], &whole.0[(query + 1) * 4..]);
            }
        }
    }
    test::<f32>();
    test::<bf16>();
}

#[test]
#[should_panic(expected = "attention: spans share rows of queries")]
fn spans_that_share_queries_are_refused() {
    Case::<f32>::new(plain(1, 2, 2), &[span(4, 3, 0, 1, 0), span(0, 5, 0, 1, 0)]).forward(&cpu(Isa::best()));
}

#[test]
#[should_panic(expected = "attention_backward: spans share rows of keys")]
fn spans_that_share_keys_have_no_gradient() {
    Case::<f32>::new(plain(1, 2, 2), &[span(0, 1, 0, 2, 0), span(1, 1, 1, 1, 0)]).run(&cpu(Isa::best()));
}

#[test]
#[should_panic(expected = "attention: k has 6 elements in rows of stride 2, the spans need [4, 2]")]
fn keys_that_are_not_there_are_refused() {
    let mut case = Case::<f32>::new(plain(1, 2, 2), &[span(0, 1, 0, 4, 0)]);
    case.k.truncate(6);
    case.forward(&cpu(Isa::best()));
}

/// The rows of sequences, each in an order of its own and away from the others, are what a cache looks like.
struct Listed {
    /// Row `i` of the sequences lies in row `places[i]` of the cache.
    places: Vec<u32>,
    lists: Vec<Range<u32>>,
}

impl Listed {
    fn new(lengths: &[usize]) -> Listed {
        let keys: usize = lengths.iter().sum();
        let places = (0..keys).map(|i| ((i * 7 + 3) % (keys * 7 + 5)) as u32).collect();
        let lists = lengths.iter().scan(0, |end, &length| {
            let start = *end;
            *end += length as u32;
            Some(start..*end)
        });
        Listed { places, lists: lists.collect() }
    }

    /// How many rows the cache has.
    fn height(&self) -> usize {
        self.places.len() * 7 + 5
    }

    fn scattered<T: Copy>(&self, from: &[T], width: usize, elsewhere: T) -> Vec<T> {
        let mut to = vec![elsewhere; self.height() * width];
        for (from, &place) in from.chunks_exact(width).zip(&self.places) {
            to[place as usize * width..][..width].copy_from_slice(from);
        }
        to
    }

    fn lists(&self) -> KeyLists<'_> {
        KeyLists { rows: &self.places, lists: &self.lists }
    }
}

fn matrix<T>(data: &[T], width: usize) -> Rows<'_, T> {
    Rows { data, stride: width }
}

#[test]
fn a_query_over_listed_rows_gets_the_bits_of_a_pass_over_its_sequence() {
    fn check<T: Real>(heads: usize, d_k: usize, d_v: usize, lengths: &[usize]) {
        let table = CaseBias::Relative(normal(5, 7 * heads));
        let dense = CaseBias::Dense(normal(5, lengths.iter().sum::<usize>() * heads));
        for window in [None, Some(10), Some(70)] {
            let attention_of = Attention { causal: true, cached: true, window, ..plain(heads, d_k, d_v) };
            check_with::<T>(&attention_of, lengths, None);
            check_with::<T>(&attention_of, lengths, Some(table.get()));
            check_with::<T>(&attention_of, lengths, Some(dense.get()));
        }
    }
    fn check_with<T: Real>(attention_of: &Attention, lengths: &[usize], bias: Option<Bias>) {
        let &Attention { heads, d_k, d_v, .. } = attention_of;
        let (k_width, v_width) = (heads * d_k, heads * d_v);
        let keys: usize = lengths.iter().sum();
        let numbers =
            |seed, len: usize| -> Vec<T> { normals(seed, len).into_iter().map(T::from_f32).collect() };
        let q = numbers(1, lengths.len() * k_width);
        let (k, v) = (numbers(2, keys * k_width), numbers(3, keys * v_width));
        let listed = Listed::new(lengths);
        let nan = T::from_f32(f32::NAN);
        let (k_cache, v_cache) = (listed.scattered(&k, k_width, nan), listed.scattered(&v, v_width, nan));
        let span_of = |(i, list): (usize, &Range<u32>)| {
            let keys = list.len() as u32;
            span(i as u32, 1, list.start, keys, keys.saturating_sub(1))
        };
        let spans: Vec<Span> = listed.lists.iter().enumerate().map(span_of).collect();
        for isa in Isa::present() {
            let (mut expected, mut lse) =
                (q_sized::<T>(lengths.len() * v_width), vec![0.0; lengths.len() * heads]);
            attention(
                &cpu(isa),
                attention_of,
                &spans,
                bias,
                matrix(&q, k_width),
                matrix(&k, k_width),
                matrix(&v, v_width),
                &mut expected,
                &mut lse,
            );
            for threads in [1, 3] {
                let mut y = q_sized::<T>(expected.len());
                let cpu = Cpu { isa, threads: Threads::new(threads) };
                let (q, k_cache) =
                    (transposed(&cpu, &q, heads, k_width), transposed(&cpu, &k_cache, heads, k_width));
                attention_to_lists(
                    &cpu,
                    attention_of,
                    listed.lists(),
                    bias,
                    matrix(&q, k_width),
                    matrix(&k_cache, k_width),
                    matrix(&v_cache, v_width),
                    &mut y,
                );
                assert_eq!(bits(&y), bits(&expected), "{isa}, {heads} heads of {d_k} and {d_v}");
            }
        }
    }
    fn transposed<T: Real>(cpu: &Cpu, x: &[T], heads: usize, width: usize) -> Vec<T> {
        let mut y = q_sized(x.len());
        heads_side_by_side(cpu, x, heads, width, &mut y);
        y
    }
    fn q_sized<T: Real>(len: usize) -> Vec<T> {
        vec![T::from_f32(0.5); len]
    }
    check::<f32>(8, 32, 32, &[1, 15, 0, 64, 65, 200, 17, 16, 3]);
    check::<f32>(3, 20, 7, &[2, 70, 31]);
    check::<bf16>(2, 64, 64, &[40, 1, 129]);
    check::<bf16>(1, 5, 33, &[9]);
    check::<f32>(16, 16, 16, &[5, 80]);
    check::<bf16>(20, 17, 16, &[33, 2]);
}

/// A cache in int8 and a query over it by their definition: numbers and scales of a row as `quantise` makes them,
/// weights times scales rounded to whole numbers of the largest scale of a value, over 254, each with what the one
/// before left over, in the order in which groups of four are made.
#[test]
fn a_query_over_rows_in_int8_gets_what_their_definition_says() {
    fn check(heads: usize, d_k: usize, d_v: usize, lengths: &[usize]) {
        check_with(heads, d_k, d_v, lengths, None);
        check_with(heads, d_k, d_v, lengths, Some(CaseBias::Relative(normal(5, 7 * heads))));
    }
    fn check_with(heads: usize, d_k: usize, d_v: usize, lengths: &[usize], bias: Option<CaseBias>) {
        let rule = plain(heads, d_k, d_v);
        let added = |length: usize, head: usize, key: usize| {
            let own = [span(0, 1, 0, length as u32, length as u32 - 1)];
            bias.clone().map_or(0.0, |mut bias| {
                let place = bias.place(&own, 0, heads, head, 0, key);
                f64::from(bias.numbers()[place])
            })
        };
        let (k_width, v_width) = (heads * d_k, heads * d_v);
        let keys: usize = lengths.iter().sum();
        let q = normals(1, lengths.len() * k_width);
        let (k, v) = (normals(2, keys * k_width), normals(3, keys * v_width));
        let rounded = |x: &[f32], width: usize| -> (Vec<i8>, Vec<f32>) {
            let mut to = vec![0; x.len()];
            let rows = x.chunks_exact(width).zip(to.chunks_exact_mut(width));
            let scales = rows.map(|(row, to)| quantise(row, to)).collect();
            (to, scales)
        };
        let ((q8, q_scales), (k8, k_scales), (v8, v_scales)) =
            (rounded(&q, k_width), rounded(&k, k_width), rounded(&v, v_width));
        let mut expected = Vec::new();
        let mut start = 0;
        for (query, &length) in lengths.iter().enumerate() {
            for head in 0..heads {
                let score = |key: usize| {
                    let product = |i: usize| {
                        i64::from(q8[query * k_width + head * d_k + i])
                            * i64::from(k8[key * k_width + head * d_k + i])
                    };
                    let sum: i64 = (0..d_k).map(product).sum();
                    let scale = f64::from(q_scales[query]) * f64::from(k_scales[key]) * f64::from(rule.scale);
                    sum as f64 * scale + added(length, head, key - start)
                };
                let seen: Vec<usize> = (start..start + length).collect();
                let greatest = seen.iter().map(|&key| score(key)).fold(f64::NEG_INFINITY, f64::max);
                let weight = |key: usize| (score(key) - greatest).exp();
                let step = v_scales[start..start + length].iter().copied().fold(0f32, f32::max) / 254.0;
                let (mut wholes, mut rest) = (vec![0.0; length], 0.0);
                for group in (0..length).step_by(4) {
                    for i in (group..length.min(group + 4)).rev() {
                        let exact = weight(start + i) * f64::from(v_scales[start + i] / step) + rest;
                        wholes[i] = exact.round_ties_even();
                        rest = exact - wholes[i];
                    }
                }
                let l = seen.iter().map(|&key| weight(key)).sum::<f64>() - rest / 254.0;
                for i in 0..d_v {
                    let value = |&key: &usize| {
                        wholes[key - start] * f64::from(step) * f64::from(v8[key * v_width + head * d_v + i])
                    };
                    let sum: f64 = seen.iter().map(value).sum();
                    expected.push(if length == 0 { 0.0 } else { (sum / l) as f32 });
                }
            }
            start += length;
        }
        let listed = Listed::new(lengths);
        let (keys_in_order, values_in_order) = (key_order(heads, d_k), value_order(heads, d_v));
        let (q, k, v) =
            (in_order(&q, &keys_in_order), in_order(&k, &keys_in_order), in_order(&v, &values_in_order));
        let places: Vec<i32> = listed.places.iter().map(|&place| place as i32).collect();
        for isa in Isa::present() {
            let mut first = None;
            for threads in [1, 3] {
                let cpu = Cpu { isa, threads: Threads::new(threads) };
                let height = listed.height();
                let (mut k_cache, mut v_cache) = (vec![99; height * k_width], vec![99; height * v_width]);
                let mut scales = vec![f32::NAN; height * 2];
                write_int8_rows(&cpu, &k, k_width, &places, &mut k_cache, &mut scales, 0);
                write_int8_rows(&cpu, &v, v_width, &places, &mut v_cache, &mut scales, 1);
                let cache = Int8Cache { k: &k_cache, v: &v_cache, scales: &scales };
                let mut y = vec![0.5f32; expected.len()];
                let bias = bias.as_ref().map(CaseBias::get);
                attention_to_int8_lists(
                    &cpu,
                    &rule,
                    listed.lists(),
                    bias,
                    matrix(&q, k_width),
                    cache,
                    &mut y,
                );
                let what = format!("{isa}, {heads} heads of {d_k} and {d_v}");
                // A weight that is nearly between two whole numbers may become the other one.
                let (mut sum, mut most) = (0.0, 0f32);
                for (y, expected) in y.iter().zip(&expected) {
                    sum += (y - expected).abs();
                    most = most.max((y - expected).abs());
                }
                let mean = sum / y.len().max(1) as f32;
                assert!(mean < 2e-5 && most < 0.02, "{what}: {mean} on average, {most} at most");
                assert_eq!(&bits(&y), first.get_or_insert_with(|| bits(&y)), "{what}");
            }
        }
    }
    check(8, 32, 32, &[1, 15, 0, 64, 3, 20, 7, 16, 13]);
    check(16, 64, 64, &[5, 33]);
    check(4, 16, 96, &[7, 12]);
    check(1, 64, 64, &[9, 4]);
    check(2, 32, 32, &[2, 64]);
    check(32, 8, 16, &[10]);
}

/// What a query over rows in int8 gives, of heads one after the other.
fn int8_attention(cpu: &Cpu, rule: &Attention, q: &[f32], k: &[f32], v: &[f32]) -> Vec<f32> {
    let &Attention { heads, d_k, d_v, .. } = rule;
    let (k_width, v_width, keys) = (heads * d_k, heads * d_v, k.len() / (heads * d_k));
    let rows: Vec<u32> = (0..keys as u32).collect();
    let places: Vec<i32> = (0..keys as i32).collect();
    let (mut k_cache, mut v_cache) = (vec![0; k.len()], vec![0; v.len()]);
    let mut scales = vec![0.0; keys * 2];
    let [q, k] = [q, k].map(|x| in_order(x, &key_order(heads, d_k)));
    write_int8_rows(cpu, &k, k_width, &places, &mut k_cache, &mut scales, 0);
    write_int8_rows(
        cpu,
        &in_order(v, &value_order(heads, d_v)),
        v_width,
        &places,
        &mut v_cache,
        &mut scales,
        1,
    );
    let cache = Int8Cache { k: &k_cache, v: &v_cache, scales: &scales };
    let list = 0..keys as u32;
    let lists = KeyLists { rows: &rows, lists: std::slice::from_ref(&list) };
    let mut y = vec![0.5; v_width];
    attention_to_int8_lists(cpu, rule, lists, None, matrix(&q, k_width), cache, &mut y);
    y
}

fn in_order(x: &[f32], order: &[usize]) -> Vec<f32> {
    x.chunks_exact(order.len()).flat_map(|row| order.iter().map(|&i| row[i])).collect()
}

/// Blocks of keys are rounded each for itself: what comes of many is near to what a pass in f32 gives.
#[test]
fn a_query_over_many_rows_in_int8_is_near_to_one_over_rows_in_f32() {
    let (heads, d) = (8, 32);
    let (rule, width, keys) = (plain(heads, d, d), heads * d, 500);
    let (k, v) = (normals(2, keys * width), normals(3, keys * width));
    // Flat weights, and such of which few count.
    for sharpness in [1.0, 6.0] {
        let q: Vec<f32> = normals(1, width).iter().map(|x: &f32| x * sharpness).collect();
        for isa in Isa::present() {
            let (mut expected, mut lse) = (vec![0.0; width], vec![0.0; heads]);
            let spans = [span(0, 1, 0, keys as u32, keys as u32 - 1)];
            let [q_rows, k_rows, v_rows] = [&q, &k, &v].map(|x| matrix(x, width));
            attention(&cpu(isa), &rule, &spans, None, q_rows, k_rows, v_rows, &mut expected, &mut lse);
            let y = int8_attention(&cpu(isa), &rule, &q, &k, &v);
            let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| x * x).sum::<f32>().sqrt();
            let difference = norm(&mut y.iter().zip(&expected).map(|(a, b)| a - b));
            let error = difference / norm(&mut expected.iter().copied());
            assert!(error < 0.03, "{isa}, {sharpness}: {error}");
        }
    }
}

/// Rounding is no reason for a mean of equal values to be another one: a peak and a long tail of weights that are all
/// rounded up, all rounded down, or to nothing, in one block and in several, with the peak in the first of them or in
/// the last.
#[test]
fn of_equal_values_in_int8_the_mean_is_that_value() {
    let (heads, d) = (8, 32);
    let (rule, width) = (plain(heads, d, d), heads * d);
    let q = vec![1.0; width];
    for keys in [1, 2, 32, 64, 65, 200, 500] {
        for tail in [0.0019f32, 0.0021, 0.01, 1e-9] {
            for peak in [0, keys - 1] {
                // All elements of a key are the same: the score is √d_k times that.
                let score = |key: usize| if key == peak { 0.0 } else { tail.ln() };
                let k: Vec<f32> = (0..keys * width).map(|i| score(i / width) / (d as f32).sqrt()).collect();
                let y = int8_attention(&cpu(Isa::best()), &rule, &q, &k, &vec![0.75; keys * width]);
                let worst = y.iter().map(|y| (y - 0.75).abs()).fold(0.0, f32::max);
                assert!(worst < 1e-5, "{keys} keys, a tail of {tail}, the peak at {peak}: {worst}");
            }
        }
    }
}

/// A key that gets nearly all of the weight and has hardly a value, as the end of a sentence often is, must not make others count for more.
#[test]
fn a_heavy_key_with_a_small_value_in_int8_keeps_its_weight() {
    let (heads, d, keys) = (8, 32, 6);
    let (rule, width) = (plain(heads, d, d), heads * d);
    for small in [1e-1f32, 1e-2, 1e-3, 1e-5] {
        let score = |key: usize| if key == 2 { 0.0 } else { 0.01f32.ln() };
        let k: Vec<f32> = (0..keys * width).map(|i| score(i / width) / (d as f32).sqrt()).collect();
        let v: Vec<f32> = (0..keys * width).map(|i| if i / width == 2 { small } else { 1.0 }).collect();
        let expected = (small + 0.05) / 1.05;
        for isa in Isa::present() {
            let y = int8_attention(&cpu(isa), &rule, &vec![1.0; width], &k, &v);
            let worst = y.iter().map(|y| (y - expected).abs()).fold(0.0, f32::max);
            assert!(worst < 4e-3, "{isa}, {small}: {worst} from {expected}");
        }
    }
}

#[test]
fn what_is_not_a_number_in_a_cache_in_int8_does_not_get_lost() {
    let (heads, d) = (8, 32);
    let (rule, width, keys) = (plain(heads, d, d), heads * d, 6);
    let (q, k, mut v) = (normals(1, width), normals(2, keys * width), normals(3, keys * width));
    v[2 * width..3 * width].fill(f32::NAN);
    for isa in Isa::present() {
        let y = int8_attention(&cpu(isa), &rule, &q, &k, &v);
        assert!(y.iter().all(|y| y.is_nan()), "{isa}: {:?}", &y[..4]);
    }
}

#[test]
fn heads_that_do_not_fill_vectors_are_not_for_int8() {
    assert!(fits_int8(&plain(8, 32, 32)) && fits_int8(&plain(16, 64, 64)) && fits_int8(&plain(1, 64, 64)));
    for (heads, d_k, d_v) in [(3, 64, 64), (12, 64, 64), (8, 30, 32), (8, 32, 24), (1, 32, 64), (1, 64, 32)] {
        assert!(!fits_int8(&plain(heads, d_k, d_v)), "{heads} heads of {d_k} and {d_v}");
    }
}
