//! Translating on several ranks: rank 0 reads the input, deals out its lines, and writes the translations in order. It translates, too.
//!
//! Each rank runs the same loop as a process alone ([`Work`](super::Work)). What differs is where its lines come from, and where
//! translations go.

use super::work::{Sink, Source};
use crate::error::Error;
use crate::lines::{Line, Lines, Next};
use crate::lost::Lost;
use crate::ranks::gather;
use attentive_ranks::{Dealer, Dealt, Group, Hand};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

/// Lines of a piece.
const PIECE: usize = 64;
/// How often a rank that has nothing to do looks for something.
const POLL: Duration = Duration::from_millis(1);

/// A rank's place among those that translate together, as source of lines and as sink of translations.
pub(super) struct Participant<W>(Rc<RefCell<Inner<W>>>);

struct Inner<W> {
    role: Role<W>,
    /// The name of the input, and the last line of it that was handed out.
    name: String,
    last: usize,
    /// Lines that are to be translated here.
    ready: VecDeque<Line>,
    /// Pieces that are being translated here.
    begun: VecDeque<Begun>,
}

/// A piece that is being translated.
struct Begun {
    number: u64,
    /// Lines that have not been written.
    left: usize,
    text: Vec<u8>,
}

enum Role<W> {
    First(First<W>),
    Other(Hand),
}

/// What rank 0 has.
struct First<W> {
    dealer: Dealer,
    lines: Lines,
    /// Whether all lines were dealt.
    is_over: bool,
    output: W,
    progress: ProgressBar,
    /// The bytes of each piece that is under way.
    bytes: VecDeque<u64>,
}

impl<W> Clone for Participant<W> {
    fn clone(&self) -> Self {
        Participant(Rc::clone(&self.0))
    }
}

impl<W: Write> Participant<W> {
    fn new(role: Role<W>, name: String) -> Participant<W> {
        let (ready, begun) = (VecDeque::new(), VecDeque::new());
        Participant(Rc::new(RefCell::new(Inner { role, name, last: 0, ready, begun })))
    }

    /// Rank 0's.
    pub(super) fn first(
        group: &Rc<dyn Group>,
        lines: Lines,
        output: W,
        progress: ProgressBar,
    ) -> Participant<W> {
        let name = lines.name().to_owned();
        let dealer = Dealer::new(Rc::clone(group));
        let bytes = VecDeque::new();
        Participant::new(Role::First(First { dealer, lines, is_over: false, output, progress, bytes }), name)
    }

    /// Another rank's.
    pub(super) fn other(group: &Rc<dyn Group>, name: String) -> Participant<W> {
        Participant::new(Role::Other(Hand::new(Rc::clone(group))), name)
    }

    /// Waits until all ranks have translated what they were dealt.
    pub(super) fn finish(&self) -> Result<(), Error> {
        loop {
            match &mut self.0.borrow_mut().role {
                Role::Other(_) => return Ok(()),
                Role::First(first) => {
                    first.lines.check()?;
                    first.serve()?;
                    if first.dealer.is_done() {
                        first.progress.finish_and_clear();
                        return Ok(());
                    }
                }
            }
            std::thread::sleep(POLL);
        }
    }
}

impl<W: Write> First<W> {
    /// Deals to those who ask, and writes what is there.
    fn serve(&mut self) -> Result<(), Error> {
        self.dealer.poll()?;
        while self.dealer.is_asked() && self.dealer.has_room() {
            let Some(piece) = self.cut()? else { break };
            self.dealer.deal(&serde_json::to_vec(&piece)?)?;
        }
        if self.is_over {
            self.dealer.end()?;
        }
        let mut any = false;
        while let Some(text) = self.dealer.pop() {
            self.output.write_all(&text)?;
            self.progress.inc(self.bytes.pop_front().unwrap_or_default());
            any = true;
        }
        if any { Ok(self.output.flush()?) } else { Ok(()) }
    }

    /// The next lines of the input, if there are any.
    fn cut(&mut self) -> Result<Option<Vec<Line>>, Error> {
        let mut piece = Vec::new();
        while piece.len() < PIECE && !self.is_over {
            match self.lines.next(true)? {
                Next::Line(line) => piece.push(line),
                Next::Nothing => {}
                Next::End => self.is_over = true,
            }
        }
        if piece.is_empty() {
            return Ok(None);
        }
        self.bytes.push_back(piece.iter().map(|line| line.bytes).sum());
        Ok(Some(piece))
    }
}

impl<W: Write> Inner<W> {
    /// Looks for a piece to be translated here. Returns whether there will be no more.
    fn poll(&mut self) -> Result<bool, Error> {
        let (number, piece) = match &mut self.role {
            Role::First(first) => {
                first.serve()?;
                if !first.is_over && !first.dealer.has_room() {
                    return Ok(false);
                }
                let Some(piece) = first.cut()? else { return Ok(first.is_over) };
                (first.dealer.keep(), piece)
            }
            Role::Other(hand) => match hand.take()? {
                Dealt::Piece(number, piece) => (number, serde_json::from_slice(&piece)?),
                Dealt::Nothing => return Ok(false),
                Dealt::Over => return Ok(true),
            },
        };
        self.begun.push_back(Begun { number, left: piece.len(), text: Vec::new() });
        self.ready.extend(piece);
        Ok(false)
    }
}

impl<W: Write> Source for Participant<W> {
    fn next(&mut self, patient: bool) -> Result<Next, Error> {
        loop {
            let mut inner = self.0.borrow_mut();
            if inner.ready.is_empty() && inner.poll()? {
                return Ok(Next::End);
            }
            if let Some(line) = inner.ready.pop_front() {
                inner.last = line.number;
                return Ok(Next::Line(line));
            }
            if !patient {
                return Ok(Next::Nothing);
            }
            drop(inner);
            self.check()?;
            std::thread::sleep(POLL);
        }
    }

    fn check(&self) -> Result<(), Error> {
        match &self.0.borrow().role {
            Role::First(first) => first.lines.check(),
            Role::Other(_) => Ok(()),
        }
    }

    fn problem(&self, problem: String) -> Error {
        let inner = self.0.borrow();
        Error::Line { input: inner.name.clone(), line: inner.last, problem }
    }
}

impl<W: Write> Write for Participant<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.borrow_mut();
        let begun = inner.begun.front_mut().expect("a translation is of a piece that was begun");
        begun.text.extend_from_slice(text);
        Ok(text.len())
    }

    /// Between two steps of decoding: the others must not wait for rank 0.
    fn flush(&mut self) -> io::Result<()> {
        let served = match &mut self.0.borrow_mut().role {
            Role::First(first) => first.serve(),
            Role::Other(hand) => hand.poll().map_err(Error::from),
        };
        served.map_err(|error| match error {
            Error::Output(error) => error,
            other => io::Error::other(other.to_string()),
        })
    }
}

impl<W: Write> Sink for Participant<W> {
    fn end_line(&mut self) -> Result<(), Error> {
        let mut inner = self.0.borrow_mut();
        let begun = inner.begun.front_mut().expect("a translation is of a piece that was begun");
        begun.left -= 1;
        if begun.left > 0 {
            return Ok(());
        }
        let Some(Begun { number, text, .. }) = inner.begun.pop_front() else { return Ok(()) };
        match &mut inner.role {
            Role::First(first) => first.dealer.done(number, text),
            Role::Other(hand) => hand.done(number, &text)?,
        }
        Ok(())
    }
}

/// Messages about many lines, printed once.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct Told {
    pub lost: Lost,
    pub needless: usize,
}

impl Told {
    /// Collective: the sum over all ranks.
    pub(super) fn of_all(self, group: &dyn Group) -> Result<Told, Error> {
        let mut sum = Told::default();
        for Told { lost, needless } in gather(group, &self)? {
            sum.lost.add(lost);
            sum.needless += needless;
        }
        Ok(sum)
    }
}
