//! Gradients on their way to the ranks that add them.
//!
//! A bucket of the [row](super::row) is sent as soon as the backward pass has finished all gradients of it, and those of all later
//! buckets. While it travels, the pass goes on. What has come is added in f32 in the order of ranks, whatever comes first.
//!
//! ```text
//! a parcel:  how the rank has each segment, a byte each, filled up to a multiple of four │ the numbers of the segments, in bf16 or f32
//! ```

use super::row::{Bucket, Row};
use crate::Error;
use attentive_ranks::{Exchange, Group, Parcels, bytes};
use attentive_tensor::{Backend, HostVec, Tensor};
use half::bf16;
use std::collections::VecDeque;
use std::rc::Rc;

/// How a rank has the gradient of a parameter: not at all, or in one of two types.
const ABSENT: u8 = 0;
const NARROW: u8 = 1;
const WIDE: u8 = 2;

/// The gradient of a parameter in a step.
#[derive(Debug)]
enum Gradient {
    /// It is not known yet.
    Unfinished,
    /// The parameter took no part.
    Absent,
    Narrow(Vec<bf16>),
    Wide(Vec<f32>),
}

impl Gradient {
    fn kind(&self) -> u8 {
        match self {
            Gradient::Unfinished | Gradient::Absent => ABSENT,
            Gradient::Narrow(_) => NARROW,
            Gradient::Wide(_) => WIDE,
        }
    }
}

/// The sums of all ranks' gradients for the segments of this rank, as they come to be.
#[derive(Debug)]
pub(super) struct Sums {
    group: Rc<dyn Group>,
    row: Rc<Row>,
    gradients: Vec<Gradient>,
    /// How many buckets, from the first on, have not been sent.
    unsent: usize,
    /// Buckets that were sent and have not come, with their places.
    under_way: VecDeque<(usize, Box<dyn Exchange>)>,
    /// Of each bucket, for each segment of this rank; none of a parameter that took part nowhere.
    sums: Vec<Vec<Option<Tensor>>>,
    /// Memory that is used again.
    parcels: Vec<Parcels>,
    sum: Vec<f32>,
    /// What went wrong first.
    failed: Option<Error>,
}

impl Sums {
    pub fn new(group: Rc<dyn Group>, row: Rc<Row>, parameters: usize) -> Sums {
        let mut sums = Sums {
            group,
            row,
            gradients: (0..parameters).map(|_| Gradient::Unfinished).collect(),
            unsent: 0,
            under_way: VecDeque::new(),
            sums: Vec::new(),
            parcels: Vec::new(),
            sum: Vec::new(),
            failed: None,
        };
        sums.begin();
        sums
    }

    /// Gets ready for a step.
    fn begin(&mut self) {
        self.gradients.fill_with(|| Gradient::Unfinished);
        self.unsent = self.row.buckets.len();
        self.sums = self.row.buckets.iter().map(|_| Vec::new()).collect();
    }

    /// Whether the gradient of a parameter is still to come.
    pub fn awaits(&self, parameter: usize) -> bool {
        matches!(self.gradients[parameter], Gradient::Unfinished)
    }

    /// Takes the gradient of a parameter, to which nothing will be added here. What goes wrong is told by [`Sums::finish`].
    pub fn take(&mut self, backend: &dyn Backend, parameter: usize, gradient: Option<Tensor>) {
        self.gradients[parameter] = match gradient.map(|gradient| backend.download(&gradient)) {
            None => Gradient::Absent,
            Some(HostVec::Bf16(numbers)) => Gradient::Narrow(numbers),
            Some(HostVec::F32(numbers)) => Gradient::Wide(numbers),
            Some(other) => panic!("a gradient is bf16 or f32, not {other:?}"),
        };
        if self.failed.is_none() {
            self.failed = self.advance(backend).err();
        }
    }

    /// The sums, after all gradients were [taken](Sums::take).
    pub fn finish(&mut self, backend: &dyn Backend) -> Result<Vec<Option<Tensor>>, Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while let Some((place, exchange)) = self.under_way.pop_front() {
            self.add(backend, place, exchange.finish()?);
        }
        let sums = std::mem::take(&mut self.sums);
        self.begin();
        Ok(sums.into_iter().flatten().collect())
    }

    /// Sends what can be sent, and adds what has come.
    fn advance(&mut self, backend: &dyn Backend) -> Result<(), Error> {
        let row = Rc::clone(&self.row);
        while let Some(place) = self.unsent.checked_sub(1)
            && row.buckets[place].parameters().all(|parameter| !self.awaits(parameter))
        {
            let parcels = self.pack(&row.buckets[place]);
            self.under_way.push_back((place, self.group.begin(parcels)?));
            self.unsent = place;
            // What is in no other bucket is not needed any more.
            let first = row.buckets[..place].last().and_then(|bucket| bucket.parameters().last());
            for parameter in row.buckets[place].parameters().filter(|&parameter| Some(parameter) != first) {
                self.gradients[parameter] = Gradient::Absent;
            }
        }
        while let Some((_, exchange)) = self.under_way.front_mut()
            && exchange.is_over()?
            && let Some((place, exchange)) = self.under_way.pop_front()
        {
            self.add(backend, place, exchange.finish()?);
        }
        Ok(())
    }

    /// A parcel for each rank, and room for what comes.
    fn pack(&mut self, bucket: &Bucket) -> Parcels {
        let mut parcels = self.parcels.pop().unwrap_or_default();
        parcels.send.resize_with(self.group.size(), Vec::new);
        parcels.receive.resize_with(self.group.size(), Vec::new);
        for (share, parcel) in bucket.shares.iter().zip(&mut parcels.send) {
            parcel.clear();
            parcel.extend(share.iter().map(|segment| self.gradients[segment.parameter].kind()));
            parcel.resize(head(share.len()), 0);
            for segment in share {
                match &self.gradients[segment.parameter] {
                    Gradient::Unfinished | Gradient::Absent => {}
                    Gradient::Narrow(numbers) => parcel.extend(bytes(&numbers[segment.range.clone()])),
                    Gradient::Wide(numbers) => parcel.extend(bytes(&numbers[segment.range.clone()])),
                }
            }
        }
        let rank = self.group.rank();
        let most = head(bucket.shares[rank].len()) + size_of::<f32>() * bucket.lengths()[rank];
        parcels.receive.iter_mut().for_each(|room| room.resize(most, 0));
        parcels
    }

    /// Adds what all ranks have sent of a bucket.
    fn add(&mut self, backend: &dyn Backend, place: usize, parcels: Parcels) {
        let mine = &self.row.buckets[place].shares[self.group.rank()];
        let mut rests: Vec<&[u8]> =
            parcels.receive.iter().map(|parcel| &parcel[head(mine.len())..]).collect();
        for (number, segment) in mine.iter().enumerate() {
            self.sum.clear();
            let mut any = false;
            for (parcel, rest) in parcels.receive.iter().zip(&mut rests) {
                let size = match parcel[number] {
                    ABSENT => continue,
                    NARROW => size_of::<bf16>(),
                    _ => size_of::<f32>(),
                };
                let (numbers, behind) = rest.split_at(size * segment.range.len());
                *rest = behind;
                any = true;
                if parcel[number] == NARROW {
                    add(&mut self.sum, numbers, |x| bf16::from_ne_bytes(x).to_f32());
                } else {
                    add(&mut self.sum, numbers, f32::from_ne_bytes);
                }
            }
            self.sums[place].push(any.then(|| backend.upload_f32(&self.sum, [segment.range.len()])));
        }
        self.parcels.push(parcels);
    }
}

/// How many bytes say how a rank has so many segments.
fn head(segments: usize) -> usize {
    segments.next_multiple_of(size_of::<f32>())
}

/// Adds numbers to a sum, or begins it with them.
fn add<const N: usize>(sum: &mut Vec<f32>, numbers: &[u8], number: impl Fn([u8; N]) -> f32) {
    let (numbers, _) = numbers.as_chunks();
    if sum.is_empty() {
        sum.extend(numbers.iter().map(|&x| number(x)));
    } else {
        sum.iter_mut().zip(numbers).for_each(|(sum, &x)| *sum += number(x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_ranks::{ThreadRank, threads};
    use attentive_tensor::{CpuBackend, DType, NORM_RUN};

    /// Two of these are a bucket.
    const LENGTH: usize = 2 * NORM_RUN;

    /// What each of two ranks does.
    fn ranks<T: Send>(act: impl Fn(&dyn Backend, Rc<dyn Group>) -> T + Sync) -> Vec<T> {
        let act = |group: ThreadRank| act(&*CpuBackend::from_env().unwrap().shared(), Rc::new(group));
        std::thread::scope(|scope| {
            let act = &act;
            let spawned: Vec<_> = threads(2).into_iter().map(|rank| scope.spawn(move || act(rank))).collect();
            spawned.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn a_bucket_is_sent_as_soon_as_all_behind_it_is_finished() {
        let unsent = ranks(|backend, group| {
            let row = Rc::new(Row::new(&[LENGTH; 8], 2 * LENGTH, 2));
            let mut sums = Sums::new(group, row, 8);
            let order = [7, 5, 6, 0, 4, 3, 2, 1];
            let unsent = order.map(|parameter| {
                let gradient = backend.upload_f32(&[1.0; LENGTH], [LENGTH]);
                sums.take(backend, parameter, Some(gradient));
                sums.unsent
            });
            assert_eq!(sums.finish(backend).unwrap().len(), 4);
            assert_eq!(sums.unsent, 4);
            unsent
        });
        assert_eq!(unsent, [[4, 4, 3, 3, 2, 2, 1, 0]; 2]);
    }

    #[test]
    fn ranks_add_what_they_have_in_either_type_and_what_only_one_has() {
        let sums = ranks(|backend, group| {
            let row = Rc::new(Row::new(&[LENGTH; 3], LENGTH, 2));
            let (rank, mut sums) = (group.rank(), Sums::new(group, row, 3));
            for parameter in [2, 1, 0] {
                let gradient = backend.upload_f32(&[1.0 + rank as f32; LENGTH], [LENGTH]);
                let is_narrow = rank == 0 || parameter == 2;
                let gradient = if is_narrow { backend.cast(&gradient, DType::Bf16) } else { gradient };
                let is_there = parameter > rank;
                sums.take(backend, parameter, is_there.then_some(gradient));
            }
            let sums = sums.finish(backend).unwrap();
            sums.iter().map(|sum| sum.as_ref().map(|sum| backend.download_f32(sum))).collect::<Vec<_>>()
        });
        let all = |sum: f32| Some(vec![sum; NORM_RUN]);
        assert_eq!(sums, vec![vec![None, all(1.0), all(3.0)]; 2]);
    }
}
