//! The lines of an input. A thread reads ahead, so that work does not wait for the next line.

use crate::error::Error;
use crate::interrupt;
use attentive_text::encoding::advice;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

/// How many lines are read ahead.
const LINES_AHEAD: usize = 256;
/// The most bytes that are read of a line: an endless line must not fill the memory.
const LONGEST: u64 = 1 << 20;

/// A line of the input.
#[derive(Serialize, Deserialize)]
pub(crate) struct Line {
    /// Its number, from 1 on.
    pub number: usize,
    pub text: String,
    /// Its length in the input, its end included.
    pub bytes: u64,
    /// Whether it was longer than [`LONGEST`], and cut there.
    pub is_cut: bool,
    /// Whether a line feed ended it: the last one may have none.
    pub has_end: bool,
}

/// The lines of an input.
pub(crate) struct Lines {
    receiver: Receiver<Event>,
    name: String,
    /// How many have been handed out.
    count: usize,
    interrupted: Arc<AtomicBool>,
}

enum Event {
    Line(Line),
    End,
    NotUtf8,
    Failed(std::io::Error),
    Interrupted,
}

/// The result of [`Lines::next`].
pub(crate) enum Next {
    Line(Line),
    /// No line is available yet.
    Nothing,
    End,
}

impl Lines {
    /// Begins to read an input. Errors call it `name`. Ctrl-C interrupts it.
    pub(crate) fn read(name: String, input: impl BufRead + Send + 'static) -> Lines {
        let (sender, receiver) = sync_channel(LINES_AHEAD);
        let interrupted = Arc::new(AtomicBool::new(false));
        let (flag, wake) = (Arc::clone(&interrupted), sender.clone());
        interrupt::on_signal(move || {
            flag.store(true, Ordering::Relaxed);
            // Wakes a thread that waits for a line. If the channel is full, no thread waits.
            let _ = wake.try_send(Event::Interrupted);
        });
        std::thread::spawn(move || send_lines(input, &sender));
        Lines { receiver, name, count: 0, interrupted }
    }

    /// The next line; waits for it if `patient`.
    pub(crate) fn next(&mut self, patient: bool) -> Result<Next, Error> {
        let event = match self.receiver.try_recv() {
            Err(TryRecvError::Empty) if patient => self.receiver.recv().unwrap_or(Event::End),
            Err(TryRecvError::Empty) => return Ok(Next::Nothing),
            // The handler of signals can still send, so that this does not happen unless the thread died.
            Err(TryRecvError::Disconnected) => Event::End,
            Ok(event) => event,
        };
        self.check()?;
        match event {
            Event::Line(line) => {
                self.count += 1;
                Ok(Next::Line(Line { number: self.count, ..line }))
            }
            Event::End => Ok(Next::End),
            Event::NotUtf8 => {
                self.count += 1;
                Err(self.problem(not_utf8(&self.name)))
            }
            Event::Failed(source) => Err(Error::Input { input: self.name.clone(), source }),
            Event::Interrupted => Err(Error::Interrupted),
        }
    }

    /// What the input is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Passes over lines, and says how many bytes they are; an input that ends before is another than it was.
    pub(crate) fn skip(&mut self, lines: usize) -> Result<u64, Error> {
        let mut bytes = 0;
        for done in 0..lines {
            match self.next(true)? {
                Next::Line(line) => bytes += line.bytes,
                Next::Nothing | Next::End => {
                    let problem =
                        format!("it has {done} lines, but {lines} are translated: is it another input?");
                    return Err(Error::Document { input: self.name.clone(), problem });
                }
            }
        }
        Ok(bytes)
    }

    /// Fails if somebody has pressed Ctrl-C.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.interrupted.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// What is wrong with the line that was handed out last.
    pub(crate) fn problem(&self, problem: impl ToString) -> Error {
        Error::Line { input: self.name.clone(), line: self.count, problem: problem.to_string() }
    }
}

/// What is wrong with a line of the input of this name that is not UTF-8, and the way out.
pub(crate) fn not_utf8(input: &str) -> String {
    format!("not UTF-8; {}", advice(Path::new(input)))
}

/// Reads to the end, or until nobody listens any more.
fn send_lines(mut input: impl BufRead, sender: &SyncSender<Event>) {
    loop {
        let event = match read_line(&mut input) {
            Ok(None) => Event::End,
            Ok(Some(raw)) => raw.line().map_or(Event::NotUtf8, Event::Line),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Event::Failed(error),
        };
        let goes_on = matches!(event, Event::Line(_));
        if sender.send(event).is_err() || !goes_on {
            return;
        }
    }
}

/// A line of which nobody has seen yet whether it is UTF-8.
struct Raw {
    bytes: Vec<u8>,
    length: u64,
    is_cut: bool,
    has_end: bool,
}

/// The next line.
fn read_line(input: &mut impl BufRead) -> std::io::Result<Option<Raw>> {
    let mut bytes = Vec::new();
    let mut length = input.take(LONGEST).read_until(b'\n', &mut bytes)? as u64;
    if length == 0 {
        return Ok(None);
    }
    let mut has_end = bytes.pop_if(|byte| *byte == b'\n').is_some();
    let mut is_cut = false;
    while !has_end {
        let rest = input.fill_buf()?;
        let end = rest.iter().position(|&byte| byte == b'\n');
        let taken = end.map_or(rest.len(), |end| end + 1);
        if taken == 0 {
            break;
        }
        is_cut |= end != Some(0);
        input.consume(taken);
        length += taken as u64;
        has_end = end.is_some();
    }
    Ok(Some(Raw { bytes, length, is_cut, has_end }))
}

impl Raw {
    /// The line as text; where it was cut, the last character may be missing its end.
    fn line(self) -> Option<Line> {
        let Raw { mut bytes, length, is_cut, has_end } = self;
        if is_cut
            && let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            bytes.truncate(error.valid_up_to());
        }
        Some(Line { number: 0, text: String::from_utf8(bytes).ok()?, bytes: length, is_cut, has_end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8]) -> Vec<Line> {
        std::iter::from_fn(|| read_line(&mut input).unwrap().map(|raw| raw.line().unwrap())).collect()
    }

    fn read(input: &[u8]) -> Vec<(String, u64, bool)> {
        all(input).into_iter().map(|line| (line.text, line.bytes, line.is_cut)).collect()
    }

    #[test]
    fn lines_are_what_ends_with_a_line_feed_and_what_is_left() {
        let line = |text: &str, length| (text.to_owned(), length, false);
        assert_eq!(read(b"one\n\ntwo"), [line("one", 4), line("", 1), line("two", 3)]);
        assert_eq!(read(b"one\n"), [line("one", 4)]);
        assert_eq!(read(b""), []);
    }

    #[test]
    fn it_is_known_whether_the_last_line_has_an_end() {
        let ends = |input: &str| all(input.as_bytes()).iter().map(|line| line.has_end).collect::<Vec<_>>();
        assert_eq!([ends("one\ntwo"), ends("one\ntwo\n")], [[true, false], [true, true]]);
        let long = "x".repeat(LONGEST as usize);
        for more in ["", "y"] {
            assert_eq!(ends(&format!("{long}{more}\nz\n")), [true, true]);
            assert_eq!(ends(&format!("{long}{more}")), [false]);
        }
    }

    #[test]
    fn an_endless_line_is_cut_between_characters() {
        let mut input = "ä".repeat(LONGEST as usize);
        input.replace_range(..2, "a");
        let length = input.len() as u64;
        let lines = read(format!("{input}\nnext\n").as_bytes());
        assert_eq!((lines[0].1, lines[0].2, &lines[1].0[..]), (length + 1, true, "next"));
        assert!(input.starts_with(&lines[0].0) && lines[0].0.len() as u64 == LONGEST - 1);
        let exact = "x".repeat(LONGEST as usize);
        assert_eq!(read(format!("{exact}\n").as_bytes()), [(exact, LONGEST + 1, false)]);
    }
}
