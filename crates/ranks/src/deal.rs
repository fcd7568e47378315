//! Work that is dealt out piece by piece, and results that come back in the order of the pieces.
//!
//! Rank 0 has a [`Dealer`], each other rank a [`Hand`]. A hand asks for the next piece before it has finished the last one, so that it
//! need not wait for the answer, and a rank that is slow simply asks less often. Results that come too early wait at rank 0; no more
//! pieces are dealt than there is room for such results.
//!
//! ```text
//! a hand asks       nothing                  the dealer deals    number, piece
//! a hand has done   number, result           there is no more    nothing, for everyone who asks
//! a hand goes       `LAST`
//! ```

use crate::{Error, Group};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Pieces that a hand has at once: one to work at, and one to go on with.
const AT_ONCE: usize = 2;
/// Pieces for each rank that may be under way, dealt but not handed out as results.
const UNDER_WAY: u64 = 64;

/// What a hand says when it will not ask again: no number of a piece.
const LAST: u64 = u64::MAX;

/// Rank 0's side.
#[derive(Debug)]
pub struct Dealer {
    group: Rc<dyn Group>,
    /// The ranks that wait for a piece, the longest first.
    waiting: VecDeque<usize>,
    /// How many pieces were dealt, and how many of their results were handed out.
    dealt: u64,
    handed_out: u64,
    results: BTreeMap<u64, Vec<u8>>,
    is_over: bool,
    /// Hands that will not ask again.
    gone: usize,
}

impl Dealer {
    /// With nothing dealt yet.
    pub fn new(group: Rc<dyn Group>) -> Dealer {
        let (waiting, results) = (VecDeque::new(), BTreeMap::new());
        Dealer { group, waiting, dealt: 0, handed_out: 0, results, is_over: false, gone: 0 }
    }

    /// Takes in what the hands have sent.
    pub fn poll(&mut self) -> Result<(), Error> {
        while let Some((from, message)) = self.group.receive()? {
            match message.split_first_chunk::<8>() {
                Some((number, _)) if *number == LAST.to_le_bytes() => self.gone += 1,
                Some((number, result)) => {
                    self.results.insert(u64::from_le_bytes(*number), result.to_owned());
                }
                None if self.is_over => self.group.send(from, &[])?,
                None => self.waiting.push_back(from),
            }
        }
        Ok(())
    }

    /// Whether another piece may be dealt.
    pub fn has_room(&self) -> bool {
        self.dealt - self.handed_out < UNDER_WAY * self.group.size() as u64
    }

    /// Whether a hand waits for a piece.
    pub fn is_asked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Gives a piece to the hand that has waited longest.
    ///
    /// # Panics
    /// If none waits.
    pub fn deal(&mut self, piece: &[u8]) -> Result<(), Error> {
        let to = self.waiting.pop_front().expect("a hand waits");
        let number = self.keep();
        self.group.send(to, &[&number.to_le_bytes(), piece].concat())
    }

    /// The number of a piece that rank 0 works at itself; see [`Dealer::done`].
    pub fn keep(&mut self) -> u64 {
        self.dealt += 1;
        self.dealt - 1
    }

    /// Takes the result of a piece that was kept.
    pub fn done(&mut self, number: u64, result: Vec<u8>) {
        self.results.insert(number, result);
    }

    /// The result of the next piece in order, if it is there.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        let result = self.results.remove(&self.handed_out)?;
        self.handed_out += 1;
        Some(result)
    }

    /// Says that there are no more pieces.
    pub fn end(&mut self) -> Result<(), Error> {
        self.is_over = true;
        self.waiting.drain(..).try_for_each(|rank| self.group.send(rank, &[]))
    }

    /// Whether all results of all pieces were handed out, and nobody will ask for more.
    pub fn is_done(&self) -> bool {
        self.is_over && self.handed_out == self.dealt && self.gone + 1 == self.group.size()
    }
}

/// What a hand gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Dealt {
    /// A piece with its number.
    Piece(u64, Vec<u8>),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    Over,
}

/// The side of every other rank.
#[derive(Debug)]
pub struct Hand {
    group: Rc<dyn Group>,
    /// Pieces that are asked for, and have not come.
    asked: usize,
    pieces: VecDeque<(u64, Vec<u8>)>,
    is_over: bool,
    has_gone: bool,
}

impl Hand {
    /// With no piece yet.
    pub fn new(group: Rc<dyn Group>) -> Hand {
        Hand { group, asked: 0, pieces: VecDeque::new(), is_over: false, has_gone: false }
    }

    /// The next piece, if one is here.
    pub fn take(&mut self) -> Result<Dealt, Error> {
        self.poll()?;
        let taken = self.pieces.pop_front();
        self.poll()?;
        if let Some((number, piece)) = taken {
            return Ok(Dealt::Piece(number, piece));
        }
        if !self.is_over || self.asked > 0 {
            return Ok(Dealt::Nothing);
        }
        if !std::mem::replace(&mut self.has_gone, true) {
            self.group.send(0, &LAST.to_le_bytes())?;
        }
        Ok(Dealt::Over)
    }

    /// Takes in what has come, and asks for more; results under way go on, too.
    pub fn poll(&mut self) -> Result<(), Error> {
        while let Some((_, message)) = self.group.receive()? {
            self.asked -= 1;
            match message.split_first_chunk::<8>() {
                Some((number, piece)) => {
                    self.pieces.push_back((u64::from_le_bytes(*number), piece.to_owned()))
                }
                None => self.is_over = true,
            }
        }
        while !self.is_over && self.asked + self.pieces.len() < AT_ONCE {
            self.group.send(0, &[])?;
            self.asked += 1;
        }
        Ok(())
    }

    /// Sends the result of a piece.
    pub fn done(&self, number: u64, result: &[u8]) -> Result<(), Error> {
        self.group.send(0, &[&number.to_le_bytes(), result].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads;
    use std::thread::{scope, sleep};
    use std::time::Duration;

    /// Doubles the numbers of all pieces, and says how many were worked at here.
    fn work(group: Rc<dyn Group>, pieces: u64) -> (Vec<u8>, u64) {
        let twice = |piece: &[u8]| piece.iter().map(|x| x.wrapping_mul(2)).collect::<Vec<_>>();
        let (mut results, mut count) = (Vec::new(), 0);
        if group.rank() > 0 {
            let mut hand = Hand::new(Rc::clone(&group));
            loop {
                match hand.take().unwrap() {
                    Dealt::Over => return (results, count),
                    Dealt::Nothing => sleep(Duration::from_micros(50)),
                    Dealt::Piece(number, piece) => {
                        // The last rank is slow.
                        sleep(Duration::from_micros(if group.rank() == 2 { 5000 } else { 100 }));
                        count += 1;
                        hand.done(number, &twice(&piece)).unwrap();
                    }
                }
            }
        }
        let (mut dealer, mut next) = (Dealer::new(group), 0);
        while !dealer.is_done() {
            dealer.poll().unwrap();
            while next < pieces && dealer.is_asked() && dealer.has_room() {
                dealer.deal(&[next as u8]).unwrap();
                next += 1;
            }
            if next < pieces && dealer.has_room() {
                let number = dealer.keep();
                dealer.done(number, twice(&[next as u8]));
                (next, count) = (next + 1, count + 1);
                sleep(Duration::from_micros(100));
            }
            if next == pieces {
                dealer.end().unwrap();
            }
            results.extend(std::iter::from_fn(|| dealer.pop()).flatten());
        }
        (results, count)
    }

    #[test]
    fn results_come_in_order_and_a_slow_rank_holds_up_nobody() {
        for pieces in [0, 1, 120] {
            let found: Vec<(Vec<u8>, u64)> = scope(|scope| {
                let ranks: Vec<_> = threads(3)
                    .into_iter()
                    .map(|rank| scope.spawn(move || work(Rc::new(rank), pieces)))
                    .collect();
                ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
            });
            let expected: Vec<u8> = (0..pieces as u8).map(|x| x.wrapping_mul(2)).collect();
            assert_eq!(found[0].0, expected);
            assert_eq!(found.iter().map(|(_, count)| count).sum::<u64>(), pieces);
            assert!(pieces < 100 || found[2].1 < pieces / 4, "the slow rank took {} pieces", found[2].1);
        }
    }
}
