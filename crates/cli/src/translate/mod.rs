//! `attentive translate`: line by line or as a document, from stdin to stdout or from file to file.

mod partial;
mod ranks;
mod work;

use crate::decoding::{Decoding, SEARCH_RULE};
use crate::error::Error;
use crate::html::{self, Format};
use crate::lines::Lines;
use crate::options::between;
use crate::ranks::{Mpi, as_the_first, is_first, join};
use crate::split::Split;
use crate::{dashes, output};
use attentive_ranks::Group;
use attentive_tasks::Translator;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use partial::Partial;
use ranks::Participant;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Cursor, IsTerminal, Seek, Write, stderr, stdin, stdout};
use std::path::PathBuf;
use std::rc::Rc;
use work::{Plain, Work};

#[derive(Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{SEARCH_RULE}"))]
pub(crate) struct Translate {
    #[command(flatten)]
    decoding: Decoding,
    /// Text to translate, one line per argument [default: the lines of --input or stdin]
    #[arg(value_name = "TEXT", conflicts_with = "input", value_parser = dashes::text)]
    text: Vec<String>,
    /// Translate the lines of FILE [default: stdin]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Write the translations to FILE (it appears when it is complete) [default: stdout]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the input [default: text]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Unit to translate [default: auto; lines with --prefix or --alternatives]
    #[arg(long, value_name = "UNIT")]
    split: Option<Split>,
    /// Write the N best translations of each line as `line ||| translation ||| score` (the first line is 1)
    #[arg(long, value_name = "N", value_parser = between::<1, 1024>)]
    n_best: Option<usize>,
    /// Begin every translation with TEXT
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Write N translations, one for each of the N most probable tokens after --prefix, best first
    #[arg(long, value_name = "N", value_parser = between::<1, 1024>, conflicts_with_all = ["n_best", "alignments"])]
    alternatives: Option<usize>,
    /// Add word alignments (source-target, the first word is 0): `translation ||| 0-0 1-2`
    #[arg(long)]
    alignments: bool,
    /// Write one JSON object per line, with scores and tokens
    #[arg(long)]
    json: bool,
    /// Write --output line by line as FILE.part, and go on from there if it was interrupted
    #[arg(long, requires = "output", conflicts_with_all = ["n_best", "alternatives"])]
    resume: bool,
    /// MPI of the launcher, if the environment does not say it
    #[arg(long, value_enum, value_name = "MPI")]
    mpi: Option<Mpi>,
}

const EXAMPLES: &str = "\
Examples:
  attentive translate --model opus-mt-en-de < text.en > text.de
  attentive translate --model opus-mt-en-de --input text.en --output text.de --beam 1
  attentive translate --model opus-mt-en-de \"A dog runs.\" --n-best 4
  attentive translate --model opus-mt-en-de \"A dog runs.\" --prefix \"Der Hund\" --alternatives 3
  attentive translate --model opus-mt-en-de --alignments --json < text.en
  attentive translate --model opus-mt-en-de --input big.en --output big.de --resume
  mpirun -n 8 attentive translate --model opus-mt-en-de --input big.en --output big.de --resume
  attentive translate --model opus-mt-en-de --format html --input page.html --output page.de.html

Empty lines stay empty. A line with several sentences is translated sentence by sentence, and the \
white space between them is kept. A model that attentive trained translates whole lines if at least \
5 % of its training lines had several sentences. --split overrides this. Files must be UTF-8. A last line without a line \
break stays without one, except on a terminal. A text may begin with a dash and a space; one that begins with a dash and \
no space must follow `--`.

Started by mpirun or srun, the processes share the lines of the input, which rank 0 reads; it writes the translations in order.

With --format html the input is one document of at most 16 MiB. Each sentence is translated as a \
whole, and inline tags are placed around the translations of their words. All other markup is kept. \
Not translated are script, style, code, kbd, samp, var, pre, textarea, svg, math, and elements with \
translate=\"no\" or the class notranslate. A <br> ends a sentence unless the next text begins with a \
lower-case letter.";

pub(crate) fn run(translate: &Translate) -> Result<(), Error> {
    let group = join(translate.mpi)?;
    output::must_differ(["--input", "--output"], [translate.input.as_deref(), translate.output.as_deref()])?;
    match translate.format.unwrap_or(Format::Text) {
        Format::Text => translate_lines(translate, group.as_ref()),
        Format::Html if is_first(group.as_ref()) => translate_document(translate),
        // One document is one rank's work.
        Format::Html => Ok(()),
    }
}

fn translate_document(translate: &Translate) -> Result<(), Error> {
    translate.check_for_document()?;
    let html = translate.document()?;
    let translator = translate.decoding.translator(None, false)?.with_split(translate.split().into());
    let languages = translate.decoding.languages(translator.tokenizer())?;
    let html = html::translate(&html, translator, &languages)?;
    match &translate.output {
        None => output::write(&html),
        Some(path) => output::to_file(path, |file| Ok(file.write_all(html.as_bytes())?)),
    }
}

fn translate_lines(translate: &Translate, group: Option<&Rc<dyn Group>>) -> Result<(), Error> {
    if let (true, None, Some(path)) = (is_first(group), translate.format, &translate.input)
        && html::is_named_so(path)
    {
        let name = path.display();
        // The text is translated even if stderr is closed.
        let _ = writeln!(
            stderr(),
            "attentive: {name} is translated as plain text, tags included; --format html keeps the tags"
        );
    }
    // Rank 0 alone writes, and the others would wait for lines.
    let output = translate.output.as_deref().filter(|_| translate.resume && is_first(group));
    if as_the_first(group, output.is_some_and(Partial::is_complete))? {
        return Ok(());
    }
    let mut translator = translate.decoding.translator(translate.n_best, translate.shows_scores())?;
    translator = translator.with_split(translate.split().into());
    if let Some(prefix) = &translate.prefix {
        translator = translator.with_prefix(prefix)?;
    }
    if translate.alignments {
        translator = translator.with_alignments();
    }
    let to = |output: &mut dyn Write, done| translate_to(translate, translator, group, output, done);
    match &translate.output {
        _ if !is_first(group) => to(&mut io::sink(), 0),
        None => to(&mut stdout().lock(), 0),
        Some(path) if translate.resume => {
            let partial = Partial::open(path)?;
            to(&mut BufWriter::new(&partial.file), partial.lines)?;
            partial.complete()
        }
        Some(path) => output::to_file(path, |file| to(&mut BufWriter::new(file), 0)),
    }
}

/// Translates all there is behind the lines that are `done`, and writes it as soon as it can be written.
fn translate_to(
    translate: &Translate,
    translator: Translator,
    group: Option<&Rc<dyn Group>>,
    output: &mut dyn Write,
    done: usize,
) -> Result<(), Error> {
    let open = || {
        let (mut lines, size) = translate.lines()?;
        let progress = progress(translate, size);
        progress.inc(lines.skip(done)?);
        Ok::<_, Error>((lines, progress))
    };
    let Some(group) = group else {
        let (lines, progress) = open()?;
        let told = Work::new(translate, translator, lines, Plain(output), progress)?.run()?;
        told.warn();
        return Ok(());
    };
    let place = if group.rank() == 0 {
        let (lines, progress) = open()?;
        Participant::first(group, lines, output, progress)
    } else {
        Participant::other(group, translate.input_name())
    };
    let work = Work::new(translate, translator, place.clone(), place.clone(), ProgressBar::hidden())?;
    let translated = work.run().and_then(|told| place.finish().map(|()| told));
    if let Err(Error::Interrupted) = translated {
        // The others do not know of it.
        group.abort(crate::interrupt::CODE.into());
    }
    let told = translated?.of_all(&**group)?;
    if group.rank() == 0 {
        told.warn();
    }
    Ok(())
}

impl Translate {
    /// Whether there may be several translations of a line, each with its score.
    fn lists(&self) -> bool {
        self.n_best.is_some() || self.alternatives.is_some()
    }

    /// A prefix, and ways to go on behind it, are of a line as a whole.
    fn split(&self) -> Split {
        let is_whole = self.prefix.is_some() || self.alternatives.is_some();
        self.split.unwrap_or(if is_whole { Split::Lines } else { Split::Auto })
    }

    fn shows_scores(&self) -> bool {
        self.json || self.lists()
    }

    /// Refuses what makes no sense with a document.
    fn check_for_document(&self) -> Result<(), Error> {
        let refused = [
            ("n-best", self.n_best.is_some()),
            ("prefix", self.prefix.is_some()),
            ("alternatives", self.alternatives.is_some()),
            ("alignments", self.alignments),
            ("json", self.json),
        ];
        match refused.iter().find(|(_, is_asked)| *is_asked) {
            Some((flag, _)) => {
                let problem =
                    format!("html cannot be used together with --{flag}: the result is one document");
                Err(Error::Flag { option: "format", problem })
            }
            None => Ok(()),
        }
    }

    /// The document that is to be translated.
    fn document(&self) -> Result<String, Error> {
        if !self.text.is_empty() {
            let text: String = self.text.iter().flat_map(|text| [text, "\n"]).collect();
            return html::read("the arguments", text.as_bytes());
        }
        let Some(path) = &self.input else { return html::read("standard input", stdin()) };
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| Error::Input { input: name.clone(), source })?;
        html::read(&name, file)
    }

    /// What the input is called.
    fn input_name(&self) -> String {
        self.input.as_ref().map_or("standard input".to_owned(), |path| path.display().to_string())
    }

    /// What is to be translated, and how many bytes that is, if it is known.
    fn lines(&self) -> Result<(Lines, Option<u64>), Error> {
        if !self.text.is_empty() {
            // A line each, the last one too if it is empty.
            let text: String = self.text.iter().flat_map(|text| [text, "\n"]).collect();
            let size = text.len() as u64;
            return Ok((Lines::read("the arguments".to_owned(), Cursor::new(text)), Some(size)));
        }
        let Some(path) = &self.input else {
            if stdin().is_terminal() {
                // Lines are translated even if stderr is closed.
                let _ = writeln!(stderr(), "{PROMPT}");
            }
            return Ok((Lines::read("standard input".to_owned(), BufReader::new(stdin())), stdin_size()));
        };
        let name = path.display().to_string();
        let failed = |source| Error::Input { input: name.clone(), source };
        let file = File::open(path).map_err(failed)?;
        let size = file.try_clone().ok().and_then(rest_of);
        Ok((Lines::read(name, BufReader::new(file)), size))
    }
}

/// The hint for input from a terminal.
const PROMPT: &str = "attentive: type a line and press Enter to translate it; press Ctrl-D to quit";

/// How much is to be read from stdin, in bytes, if it is a file: `< text.en`.
#[cfg(unix)]
fn stdin_size() -> Option<u64> {
    use std::os::fd::AsFd;
    rest_of(File::from(stdin().as_fd().try_clone_to_owned().ok()?))
}

#[cfg(not(unix))]
fn stdin_size() -> Option<u64> {
    None
}

/// The bytes of a plain file from where it is to be read on.
fn rest_of(mut file: File) -> Option<u64> {
    let size = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    Some(size.saturating_sub(file.stream_position().ok()?))
}

/// Whether translations are written to a terminal.
fn is_on_terminal(translate: &Translate) -> bool {
    translate.output.is_none() && stdout().is_terminal()
}

/// A bar for who watches, but not between the lines of what is written to the same terminal.
fn progress(translate: &Translate, size: Option<u64>) -> ProgressBar {
    if is_on_terminal(translate) {
        return ProgressBar::with_draw_target(size, ProgressDrawTarget::hidden());
    }
    let template = if size.is_some() { "{bar:30} {percent} % {msg}" } else { "{spinner} {msg}" };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(size, ProgressDrawTarget::stderr()).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_is_left_of_a_file_is_known_and_of_a_pipe_it_is_not() {
        let mut file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        let size = file.metadata().unwrap().len();
        assert_eq!(rest_of(file.try_clone().unwrap()), Some(size));
        file.read_exact(&mut [0; 7]).unwrap();
        assert_eq!(rest_of(file), Some(size - 7));
        #[cfg(unix)]
        {
            let (reader, _writer) = io::pipe().unwrap();
            assert_eq!(rest_of(File::from(std::os::fd::OwnedFd::from(reader))), None);
        }
    }
}
