//! Adam whose work and state are shared among ranks.
//!
//! ```text
//! gradients of my batches ─► exchange ─► the sum, in the order of ranks, of my share ─► Adam on my share ─► gather ─► all weights
//! ```
//!
//! Each rank keeps the moments of its share alone. Gradients are added in f32 in the order of ranks, which is the order of batches,
//! because each rank has a run of them: with a batch for each rank the sums are those of one rank that takes all batches. MPI's own
//! reduction promises no order, so parts are exchanged and added here. A gradient travels in bf16 where its rank has it in bf16.

use super::row::{Row, Segment};
use super::sums::Sums;
use crate::Error;
use attentive_ranks::{Group, all_gather, bytes, bytes_mut, gather_into, split, split_mut};
use attentive_tensor::{Adam, AdamRule, Backend, Gradients, Parameter, Shape, Tensor};
use std::collections::HashMap;
use std::rc::Rc;

/// How many numbers travel together: 8 MB in f32. Fewer begin earlier, and have more messages.
pub(crate) const BUCKET: usize = 1 << 21;

/// An optimizer that is shared among ranks.
#[derive(Debug)]
pub(crate) struct SharedAdam {
    group: Rc<dyn Group>,
    parameters: Vec<Parameter>,
    /// The place of each parameter, by its number.
    places: HashMap<u64, usize>,
    lengths: Vec<usize>,
    row: Rc<Row>,
    /// Of each segment of this rank.
    moments: Vec<[Tensor; 2]>,
    /// Of each parameter; see [`Adam::waiting`].
    waits: Vec<u32>,
    step: u32,
    sums: Sums,
    /// All weights. The memory is used again in every step.
    weights: Vec<f32>,
}

impl SharedAdam {
    /// Goes on, as one of a group, from an optimizer that has everything. Gradients travel in buckets of so many numbers.
    pub(crate) fn new(
        group: Rc<dyn Group>,
        backend: &dyn Backend,
        parameters: &[Parameter],
        adam: &Adam,
        bucket: usize,
    ) -> SharedAdam {
        let lengths: Vec<usize> =
            parameters.iter().map(|parameter| parameter.value().shape().len()).collect();
        let row = Rc::new(Row::new(&lengths, bucket, group.size()));
        let mut shared = SharedAdam {
            sums: Sums::new(Rc::clone(&group), Rc::clone(&row), parameters.len()),
            group,
            parameters: parameters.to_vec(),
            places: parameters.iter().map(Parameter::id).zip(0..).collect(),
            weights: vec![0.0; lengths.iter().sum()],
            lengths,
            row,
            moments: Vec::new(),
            waits: adam.waits().to_vec(),
            step: 0,
        };
        shared.restore(backend, adam.steps(), adam.moments());
        shared
    }

    pub(crate) fn group(&self) -> &Rc<dyn Group> {
        &self.group
    }

    /// Goes on from the moments of all parameters.
    pub(crate) fn restore(&mut self, backend: &dyn Backend, step: u32, moments: &[[Tensor; 2]]) {
        self.step = step;
        let mut wholes = [Whole::default(), Whole::default()];
        let mut of_segment = |segment: &Segment| {
            let [m, v] = &mut wholes;
            let [first, second] = &moments[segment.parameter];
            [m.part(backend, segment, || first.clone()), v.part(backend, segment, || second.clone())]
        };
        self.moments = self.row.of(self.group.rank()).map(&mut of_segment).collect();
    }

    /// Collective: the moments of all parameters at rank 0, and none elsewhere.
    pub(crate) fn moments(&self, backend: &dyn Backend) -> Result<Vec<[Tensor; 2]>, Error> {
        let all = [0, 1].map(|which| {
            let mine: Vec<f32> =
                self.moments.iter().flat_map(|pair| backend.download_f32(&pair[which])).collect();
            self.at_the_first(&mine)
        });
        let [first, second] = all;
        let (first, second) = (first?, second?);
        if self.group.rank() > 0 {
            return Ok(Vec::new());
        }
        let (first, second) = (split(&first, &self.lengths), split(&second, &self.lengths));
        let shapes = self.parameters.iter().map(|parameter| parameter.value().shape());
        let pair = |((m, v), shape): ((&[f32], &[f32]), Shape)| [m, v].map(|x| backend.upload_f32(x, shape));
        Ok(first.into_iter().zip(second).zip(shapes).map(pair).collect())
    }

    /// Collective: what all ranks have of a row of numbers like the weights, at rank 0.
    fn at_the_first(&self, mine: &[f32]) -> Result<Vec<f32>, Error> {
        let is_first = self.group.rank() == 0;
        let lengths = if is_first { self.row.amounts(length) } else { vec![0; self.group.size()] };
        let mut all = vec![0.0; lengths.iter().sum()];
        let mut send: Vec<&[u8]> = vec![&[]; self.group.size()];
        send[0] = bytes(mine);
        let mut receive: Vec<&mut [u8]> = split_mut(&mut all, &lengths).into_iter().map(bytes_mut).collect();
        self.group.exchange(&send, &mut receive)?;
        Ok(if is_first { self.row.in_order(&all, length) } else { all })
    }

    /// Collective: the losses of all batches of a step in their order, given those of this rank's, and how many each rank has.
    pub(crate) fn losses(&self, mine: &[f32], lengths: &[usize]) -> Result<Vec<f32>, Error> {
        Ok(all_gather(&*self.group, mine, lengths)?)
    }

    /// Takes the gradient of a parameter that this rank's batches of a step will add nothing more to: it can be sent.
    pub(crate) fn take(&mut self, backend: &dyn Backend, parameter: &Parameter, gradient: Option<Tensor>) {
        if let Some(&place) = self.places.get(&parameter.id()) {
            self.sums.take(backend, place, gradient);
        }
    }

    /// Collective: a step against the sum of all ranks' gradients, scaled down to a global norm of `clip` where they exceed it. It has
    /// [taken](SharedAdam::take) some of this rank's gradients; the others are given. Returns the norm, squared, if it is wanted.
    pub(crate) fn step(
        &mut self,
        backend: &dyn Backend,
        rule: &AdamRule,
        clip: Option<f32>,
        wants_norm: bool,
        mut others: Gradients,
    ) -> Result<Option<Tensor>, Error> {
        self.step += 1;
        for (place, parameter) in self.parameters.iter().enumerate().rev() {
            if self.sums.awaits(place) {
                self.sums.take(backend, place, others.take(parameter));
            }
        }
        let sums = self.sums.finish(backend)?;
        let norm = (wants_norm || clip.is_some()).then(|| self.squared_norm(backend, &sums)).transpose()?;
        let factor = clip.zip(norm.as_ref()).map(|(limit, norm)| backend.clip_factor(norm, limit));
        let changed = self.change(backend, rule, factor.as_ref(), &sums);
        drop(sums);
        self.share_weights(backend, &changed)?;
        Ok(norm.filter(|_| wants_norm))
    }

    /// Collective: the squared norm of the whole gradient, of the sums of all ranks' runs in order, as one rank adds them.
    fn squared_norm(&self, backend: &dyn Backend, sums: &[Option<Tensor>]) -> Result<Tensor, Error> {
        let segments = self.row.of(self.group.rank());
        let of_runs = |(segment, sum): (&Segment, &Option<Tensor>)| match sum {
            Some(sum) => backend.download_f32(&backend.squared_norms(sum)),
            None => vec![0.0; segment.runs()],
        };
        let mine: Vec<f32> = segments.zip(sums).flat_map(of_runs).collect();
        let all = all_gather(&*self.group, &mine, &self.row.amounts(Segment::runs))?;
        let sum: f64 = self.row.in_order(&all, Segment::runs).into_iter().map(f64::from).sum();
        Ok(backend.upload_f32(&[sum as f32], Shape::SCALAR))
    }

    /// The weights of this rank's share after the step.
    fn change(
        &mut self,
        backend: &dyn Backend,
        rule: &AdamRule,
        factor: Option<&Tensor>,
        sums: &[Option<Tensor>],
    ) -> Vec<f32> {
        let (mut changed, mut whole) = (Vec::new(), Whole::default());
        let segments = self.row.of(self.group.rank()).zip(sums).zip(&mut self.moments);
        for ((segment, sum), [m, v]) in segments {
            let parameter = &self.parameters[segment.parameter];
            let mut weights = whole.part(backend, segment, || parameter.value());
            if let Some(sum) = sum {
                let is_matrix = parameter.value().shape()[..].len() > 1;
                let rule =
                    AdamRule { weight_decay: if is_matrix { rule.weight_decay } else { 0.0 }, ..*rule };
                let step = self.step.saturating_sub(self.waits[segment.parameter]).max(1);
                backend.adam(&rule, step, factor, &mut weights, sum, [m, v]);
            }
            changed.extend(backend.download_f32(&weights));
        }
        changed
    }

    /// Collective: lets all ranks have all weights.
    fn share_weights(&mut self, backend: &dyn Backend, mut mine: &[f32]) -> Result<(), Error> {
        let mut all = &mut self.weights[..];
        for lengths in self.row.buckets.iter().map(|bucket| bucket.lengths()) {
            let (changed, others) = mine.split_at(lengths[self.group.rank()]);
            let (bucket, rest) = all.split_at_mut(lengths.iter().sum());
            gather_into(&*self.group, changed, &lengths, bucket)?;
            (mine, all) = (others, rest);
        }
        for (parameter, numbers) in self.parameters.iter().zip(split(&self.weights, &self.lengths)) {
            // The old memory is free before the new is asked for.
            parameter.update(|old| {
                let shape = old.shape();
                drop(old);
                backend.upload_f32(numbers, shape)
            });
        }
        Ok(())
    }
}

/// How many numbers a segment has.
fn length(segment: &Segment) -> usize {
    segment.range.len()
}

/// The numbers of the parameter that was asked for last: it may have several segments.
#[derive(Default)]
struct Whole {
    parameter: Option<usize>,
    numbers: Vec<f32>,
}

impl Whole {
    /// A segment of a tensor as a tensor of its own.
    fn part(&mut self, backend: &dyn Backend, segment: &Segment, whole: impl FnOnce() -> Tensor) -> Tensor {
        if self.parameter != Some(segment.parameter) {
            (self.parameter, self.numbers) = (Some(segment.parameter), backend.download_f32(&whole()));
        }
        backend.upload_f32(&self.numbers[segment.range.clone()], [segment.range.len()])
    }
}
