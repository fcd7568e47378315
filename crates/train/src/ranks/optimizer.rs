//! Adam whose work and state are shared among ranks.
//!
//! ```text
//! gradients of my batches ─► exchange ─► the sum, in the order of ranks, of my share ─► Adam on my share ─► gather ─► all weights
//! ```
//!
//! Each rank keeps the moments of its share alone. Gradients are added in f32 in the order of ranks, which is the order of batches,
//! because each rank has a run of them: with a batch for each rank the sums are those of one rank that takes all batches. MPI's own
//! reduction promises no order, so parts are exchanged and added here. A gradient travels in bf16 where every rank has it in bf16.

use super::shares::{Segment, shares};
use crate::Error;
use attentive_ranks::{Group, all_gather, bytes, bytes_mut, gather_into, split, split_mut};
use attentive_tensor::{Adam, AdamRule, Backend, DType, Gradients, Host, HostVec, Parameter, Shape, Tensor};
use half::bf16;
use std::rc::Rc;

/// How a rank has the gradient of a parameter: not at all, or in one of two types.
const ABSENT: u8 = 0;
const NARROW: u8 = 1;
const WIDE: u8 = 2;

/// An optimizer that is shared among ranks.
#[derive(Debug)]
pub(crate) struct SharedAdam {
    group: Rc<dyn Group>,
    parameters: Vec<Parameter>,
    lengths: Vec<usize>,
    shares: Vec<Vec<Segment>>,
    /// Of each segment of this rank.
    moments: Vec<[Tensor; 2]>,
    /// Of each parameter; see [`Adam::waiting`].
    waits: Vec<u32>,
    step: u32,
    room: Room,
}

/// Memory that is used again in every step.
#[derive(Debug, Default)]
struct Room {
    narrow: [Vec<bf16>; 2],
    wide: [Vec<f32>; 2],
    weights: Vec<f32>,
}

/// What all ranks have of a parameter's gradient.
struct Kinds(Vec<Vec<u8>>);

impl Kinds {
    /// How a gradient travels.
    fn travels(&self, parameter: usize) -> u8 {
        let kinds = || self.0.iter().map(|of_rank| of_rank[parameter]).filter(|&kind| kind != ABSENT);
        if kinds().any(|kind| kind == WIDE) { WIDE } else { kinds().next().unwrap_or(ABSENT) }
    }
}

impl SharedAdam {
    /// Goes on, as one of a group, from an optimizer that has everything.
    pub(crate) fn new(
        group: Rc<dyn Group>,
        backend: &dyn Backend,
        parameters: &[Parameter],
        adam: &Adam,
    ) -> SharedAdam {
        let lengths: Vec<usize> =
            parameters.iter().map(|parameter| parameter.value().shape().len()).collect();
        let shares = shares(&lengths, group.size());
        let mut shared = SharedAdam {
            group,
            parameters: parameters.to_vec(),
            lengths,
            shares,
            moments: Vec::new(),
            waits: adam.waits().to_vec(),
            step: 0,
            room: Room::default(),
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
        let of_segment = |Segment { parameter, range }: &Segment| {
            moments[*parameter].each_ref().map(|moment| part(backend, moment, range.clone()))
        };
        self.moments = self.mine().iter().map(of_segment).collect();
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
        let lengths = if self.group.rank() == 0 { self.share_lengths() } else { vec![0; self.group.size()] };
        let mut all = vec![0.0; lengths.iter().sum()];
        let mut send: Vec<&[u8]> = vec![&[]; self.group.size()];
        send[0] = bytes(mine);
        let mut receive: Vec<&mut [u8]> = split_mut(&mut all, &lengths).into_iter().map(bytes_mut).collect();
        self.group.exchange(&send, &mut receive)?;
        Ok(all)
    }

    fn mine(&self) -> &[Segment] {
        &self.shares[self.group.rank()]
    }

    /// How many numbers each rank has.
    fn share_lengths(&self) -> Vec<usize> {
        self.numbers_of_shares(|_| true)
    }

    /// How many numbers of certain parameters each rank has.
    fn numbers_of_shares(&self, counts: impl Fn(usize) -> bool) -> Vec<usize> {
        let of = |share: &Vec<Segment>| {
            share.iter().filter(|segment| counts(segment.parameter)).map(|segment| segment.range.len()).sum()
        };
        self.shares.iter().map(of).collect()
    }

    /// Collective: the losses of all batches of a step in their order, given those of this rank's, and how many each rank has.
    pub(crate) fn losses(&self, mine: &[f32], lengths: &[usize]) -> Result<Vec<f32>, Error> {
        Ok(all_gather(&*self.group, mine, lengths)?)
    }

    /// Collective: a step against the sum of all ranks' gradients, scaled down to a global norm of `clip` where they exceed it.
    /// Returns the norm, squared, if it is wanted.
    pub(crate) fn step(
        &mut self,
        backend: &dyn Backend,
        rule: &AdamRule,
        clip: Option<f32>,
        wants_norm: bool,
        gradients: Gradients,
    ) -> Result<Option<Tensor>, Error> {
        self.step += 1;
        let sums = self.sums(backend, gradients)?;
        let norm = (wants_norm || clip.is_some()).then(|| self.squared_norm(backend, &sums)).transpose()?;
        let factor = clip.zip(norm.as_ref()).map(|(limit, norm)| backend.clip_factor(norm, limit));
        let changed = self.change(backend, rule, factor.as_ref(), &sums);
        drop(sums);
        self.share_weights(backend, &changed)?;
        Ok(norm.filter(|_| wants_norm))
    }

    /// The sum of all ranks' gradients for each segment of this rank; none of a parameter that took part nowhere.
    fn sums(&mut self, backend: &dyn Backend, gradients: Gradients) -> Result<Vec<Option<Tensor>>, Error> {
        let kinds = self.kinds(&gradients)?;
        let mut room = std::mem::take(&mut self.room);
        let ([narrow, narrow_came], [wide, wide_came]) = (&mut room.narrow, &mut room.wide);
        narrow.clear();
        wide.clear();
        for (i, (parameter, &length)) in self.parameters.iter().zip(&self.lengths).enumerate() {
            let gradient = gradients.get(parameter).map(|gradient| backend.download(gradient));
            match (kinds.travels(i), gradient) {
                (ABSENT, _) => {}
                (NARROW, Some(HostVec::Bf16(numbers))) => narrow.extend_from_slice(&numbers),
                (NARROW, _) => narrow.resize(narrow.len() + length, bf16::ZERO),
                (_, Some(HostVec::F32(numbers))) => wide.extend_from_slice(&numbers),
                (_, Some(HostVec::Bf16(numbers))) => wide.extend(numbers.iter().map(|x| x.to_f32())),
                (_, _) => wide.resize(wide.len() + length, 0.0),
            }
        }
        drop(gradients);
        let narrow_lengths = self.numbers_of_shares(|parameter| kinds.travels(parameter) == NARROW);
        let wide_lengths = self.numbers_of_shares(|parameter| kinds.travels(parameter) == WIDE);
        self.exchange(narrow, &narrow_lengths, narrow_came)?;
        self.exchange(wide, &wide_lengths, wide_came)?;

        let (narrow_length, wide_length) =
            (narrow_lengths[self.group.rank()], wide_lengths[self.group.rank()]);
        let (mut narrow_at, mut wide_at) = (0, 0);
        // What this rank sent is not needed any more: there is room for a sum.
        let sum = wide;
        let mut sums = Vec::new();
        for Segment { parameter, range } in self.mine() {
            let travels = kinds.travels(*parameter);
            let ranks = (0..self.group.size()).filter(|&rank| kinds.0[rank][*parameter] != ABSENT);
            sum.clear();
            match travels {
                ABSENT => {}
                NARROW => {
                    let of = |rank: usize| &narrow_came[rank * narrow_length + narrow_at..][..range.len()];
                    ranks.for_each(|rank| add(sum, of(rank), |x| x.to_f32()));
                    narrow_at += range.len();
                }
                _ => {
                    let of = |rank: usize| &wide_came[rank * wide_length + wide_at..][..range.len()];
                    ranks.for_each(|rank| add(sum, of(rank), |x| x));
                    wide_at += range.len();
                }
            }
            sums.push((travels != ABSENT).then(|| backend.upload_f32(sum, [range.len()])));
        }
        self.room = room;
        Ok(sums)
    }

    /// Collective: how each rank has each gradient.
    fn kinds(&self, gradients: &Gradients) -> Result<Kinds, Error> {
        let kind = |parameter| match gradients.get(parameter).map(Tensor::dtype) {
            None => ABSENT,
            Some(DType::Bf16) => NARROW,
            Some(_) => WIDE,
        };
        let mine: Vec<u8> = self.parameters.iter().map(kind).collect();
        let lengths = vec![mine.len(); self.group.size()];
        let all = all_gather(&*self.group, &mine, &lengths)?;
        Ok(Kinds(split(&all, &lengths).into_iter().map(<[u8]>::to_vec).collect()))
    }

    /// Collective: sends to each rank its share of some numbers, and gets from each what this rank's share is of its own.
    fn exchange<T: attentive_ranks::Plain>(
        &self,
        send: &[T],
        lengths: &[usize],
        came: &mut Vec<T>,
    ) -> Result<(), Error> {
        let mine = vec![lengths[self.group.rank()]; self.group.size()];
        came.resize(mine.iter().sum(), T::default());
        let send: Vec<&[u8]> = split(send, lengths).into_iter().map(bytes).collect();
        let mut receive: Vec<&mut [u8]> = split_mut(came, &mine).into_iter().map(bytes_mut).collect();
        Ok(self.group.exchange(&send, &mut receive)?)
    }

    /// Collective: the squared norm of the whole gradient, of the sums of all ranks' runs in order, as one rank adds them.
    fn squared_norm(&self, backend: &dyn Backend, sums: &[Option<Tensor>]) -> Result<Tensor, Error> {
        let of_runs = |sum: &Tensor| backend.download_f32(&backend.squared_norms(sum));
        let mine: Vec<f32> = sums.iter().flatten().flat_map(of_runs).collect();
        let count = [mine.len() as u64];
        let counts = all_gather(&*self.group, &count, &vec![1; self.group.size()])?;
        let counts: Vec<usize> = counts.into_iter().map(|count| count as usize).collect();
        let all = all_gather(&*self.group, &mine, &counts)?;
        let sum: f64 = all.into_iter().map(f64::from).sum();
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
        let mut changed = Vec::new();
        let segments = self.shares[self.group.rank()].iter().zip(sums).zip(&mut self.moments);
        for ((Segment { parameter, range }, sum), [m, v]) in segments {
            let whole = self.parameters[*parameter].value();
            let is_matrix = whole.shape()[..].len() > 1;
            let mut weights = part(backend, &whole, range.clone());
            if let Some(sum) = sum {
                let rule =
                    AdamRule { weight_decay: if is_matrix { rule.weight_decay } else { 0.0 }, ..*rule };
                let step = self.step.saturating_sub(self.waits[*parameter]).max(1);
                backend.adam(&rule, step, factor, &mut weights, sum, [m, v]);
            }
            changed.extend(backend.download_f32(&weights));
        }
        changed
    }

    /// Collective: lets all ranks have all weights.
    fn share_weights(&mut self, backend: &dyn Backend, mine: &[f32]) -> Result<(), Error> {
        let lengths = self.share_lengths();
        self.room.weights.resize(lengths.iter().sum(), 0.0);
        gather_into(&*self.group, mine, &lengths, &mut self.room.weights)?;
        for (parameter, numbers) in self.parameters.iter().zip(split(&self.room.weights, &self.lengths)) {
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

/// Adds numbers to a sum, or begins it with them.
fn add<T: Copy>(sum: &mut Vec<f32>, numbers: &[T], wide: impl Fn(T) -> f32) {
    if sum.is_empty() {
        sum.extend(numbers.iter().map(|&x| wide(x)));
    } else {
        sum.iter_mut().zip(numbers).for_each(|(sum, &x)| *sum += wide(x));
    }
}

/// Some numbers of a tensor as a tensor of their own.
fn part(backend: &dyn Backend, whole: &Tensor, range: std::ops::Range<usize>) -> Tensor {
    let numbers = backend.download_f32(whole);
    backend.upload(Host::F32(&numbers[range.clone()]), [range.len()].into())
}
