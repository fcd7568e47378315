//! Windows of one row of tokens, which begin at other places in each epoch.
//!
//! ```text
//! slots     |------|------|  held  |------|------|--|
//! windows     |------| |------|     |------|   |------|
//! ```
//!
//! The row is cut into slots of the model's context. The window of a slot begins somewhere in it, so that a token is seen in every position,
//! with all beginnings of what is before it. It ends before the next slot that is held out.

use super::{CorpusSize, Error, Example, Examples};
use attentive_tensor::Random;

/// The windows to learn from.
#[derive(Debug)]
pub(crate) struct MovingWindows {
    tokens: Vec<i32>,
    slots: Vec<Slot>,
    size: CorpusSize,
}

/// A slot of the row.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The first token.
    begin: usize,
    /// How many tokens are read.
    length: usize,
    /// How much later a window may begin.
    room: usize,
}

impl MovingWindows {
    /// The windows of a row, in slots of `context` tokens but for those of which `held` has the numbers, in order.
    pub fn new(tokens: Vec<i32>, context: usize, held: &[u32], size: CorpusSize) -> MovingWindows {
        let ends = tokens.len().saturating_sub(1);
        let is_held = |number: usize| held.binary_search(&(number as u32)).is_ok();
        let slot = |(number, begin): (usize, usize)| {
            let length = context.min(ends - begin);
            let next = (begin + length).min(ends);
            // What may be read behind the slot.
            let behind = if is_held(number + 1) { 0 } else { (ends - next).min(context) };
            let room = if length < context { 0 } else { behind.min(context - 1) };
            Slot { begin, length, room }
        };
        let slots = (0..ends).step_by(context.max(1)).enumerate().filter(|(number, _)| !is_held(*number));
        MovingWindows { slots: slots.map(slot).collect(), tokens, size }
    }
}

impl Examples for MovingWindows {
    fn len(&self) -> usize {
        self.slots.len()
    }

    fn size(&self) -> CorpusSize {
        self.size
    }

    fn encode(
        &self,
        numbers: &[u32],
        random: &dyn Fn(u32) -> Random,
        show: &mut dyn FnMut(usize, Example) -> bool,
    ) -> Result<(), Error> {
        for (&number, place) in numbers.iter().zip(0..) {
            let Slot { begin, length, room } = self.slots[number as usize];
            let begin = begin + ((u64::from(random(number).bits(0)) * (room as u64 + 1)) >> 32) as usize;
            let source = self.tokens[begin..begin + length].to_vec();
            let labels = self.tokens[begin + 1..begin + length + 1].to_vec();
            if !show(place, Example { source, labels, ..Example::default() }) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(held: &[u32], epoch: u64) -> Vec<Vec<i32>> {
        let size = CorpusSize { pairs: 0, bytes: 0, checksum: None };
        let windows = MovingWindows::new((0..23).collect(), 5, held, size);
        let numbers: Vec<u32> = (0..windows.len() as u32).collect();
        let mut found = Vec::new();
        let random = Random::new(epoch);
        windows
            .encode(&numbers, &|number| random.split(number.into()), &mut |_, example| {
                let next: Vec<i32> = example.source.iter().map(|token| token + 1).collect();
                assert_eq!(example.labels, next);
                found.push(example.source);
                true
            })
            .unwrap();
        found
    }

    #[test]
    fn windows_begin_somewhere_in_their_slots_and_the_last_is_short() {
        let mut begins = std::collections::BTreeSet::new();
        for epoch in 0..200 {
            let found = windows(&[], epoch);
            assert_eq!(found, windows(&[], epoch));
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5, 5, 2]);
            begins.extend(found.iter().map(|window| window[0]));
        }
        // The last whole window has two tokens behind it, and each of the others a slot.
        assert_eq!(begins.into_iter().collect::<Vec<_>>(), (0..18).chain([20]).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_held_out_is_in_no_window() {
        for epoch in 0..100 {
            let found = windows(&[1, 4], epoch).concat();
            assert!(found.iter().all(|token| !(5..10).contains(token) && *token < 20), "{found:?}");
        }
    }
}
