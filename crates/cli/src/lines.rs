//! Lines of an input as they come: a thread reads ahead, so that work need not wait for the next line.

use crate::error::Error;
use crate::interrupt;
use attentive_text::encoding::advice;
use std::io::{BufRead, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

/// Lines that are read ahead.
const AHEAD: usize = 256;
/// What is read of a line, in bytes: an endless one must not fill the memory.
const LONGEST: u64 = 1 << 20;

/// A line of the input.
pub(crate) struct Line {
    pub text: String,
    /// Its length in the input, its end included.
    pub bytes: u64,
    /// Whether it was longer than anything that is read at once, and the rest left out.
    pub is_cut: bool,
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

/// What there is to be had of an input.
pub(crate) enum Next {
    Line(Line),
    /// Nothing at the moment.
    Nothing,
    End,
}

impl Lines {
    /// Begins to read an input that is called `name`. Whoever presses Ctrl-C interrupts it.
    pub(crate) fn read(name: String, input: impl BufRead + Send + 'static) -> Lines {
        let (sender, receiver) = sync_channel(AHEAD);
        let interrupted = Arc::new(AtomicBool::new(false));
        let (flag, wake) = (Arc::clone(&interrupted), sender.clone());
        interrupt::on_signal(move || {
            flag.store(true, Ordering::Relaxed);
            // Wakes who waits for a line. Where there is no room, nobody waits.
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
                Ok(Next::Line(line))
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
            Ok(Some((bytes, length, is_cut))) => match text(bytes, is_cut) {
                Some(text) => Event::Line(Line { text, bytes: length, is_cut }),
                None => Event::NotUtf8,
            },
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Event::Failed(error),
        };
        let goes_on = matches!(event, Event::Line(_));
        if sender.send(event).is_err() || !goes_on {
            return;
        }
    }
}

/// The bytes of the next line, its length, and whether there was more of it.
fn read_line(input: &mut impl BufRead) -> std::io::Result<Option<(Vec<u8>, u64, bool)>> {
    let mut line = Vec::new();
    let mut length = input.take(LONGEST).read_until(b'\n', &mut line)? as u64;
    if line.pop_if(|byte| *byte == b'\n').is_some() || length == 0 {
        return Ok((length > 0).then_some((line, length, false)));
    }
    let mut is_cut = false;
    loop {
        let rest = input.fill_buf()?;
        let end = rest.iter().position(|&byte| byte == b'\n');
        let taken = end.map_or(rest.len(), |end| end + 1);
        if taken == 0 {
            break;
        }
        is_cut |= end != Some(0);
        input.consume(taken);
        length += taken as u64;
        if end.is_some() {
            break;
        }
    }
    Ok(Some((line, length, is_cut)))
}

/// A line as text; where it was cut, the last character may be missing its end.
fn text(mut line: Vec<u8>, is_cut: bool) -> Option<String> {
    if is_cut
        && let Err(error) = std::str::from_utf8(&line)
        && error.error_len().is_none()
    {
        line.truncate(error.valid_up_to());
    }
    String::from_utf8(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut input: &[u8]) -> Vec<(String, u64, bool)> {
        let mut lines = Vec::new();
        while let Some((line, length, is_cut)) = read_line(&mut input).unwrap() {
            lines.push((text(line, is_cut).unwrap(), length, is_cut));
        }
        lines
    }

    #[test]
    fn lines_are_what_ends_with_a_line_feed_and_what_is_left() {
        let line = |text: &str, length| (text.to_owned(), length, false);
        assert_eq!(read(b"one\n\ntwo"), [line("one", 4), line("", 1), line("two", 3)]);
        assert_eq!(read(b"one\n"), [line("one", 4)]);
        assert_eq!(read(b""), []);
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
