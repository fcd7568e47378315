//! `attentive translate --format html`: a document, read and written as a whole.

use crate::error::Error;
use crate::interrupt;
use crate::lines::not_utf8;
use crate::lost::Lost;
use crate::output;
use attentive_tasks::{TargetLanguages, TranslatedHtml, Translator};
use clap::ValueEnum;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Plain text, line by line
    Text,
    /// One HTML document or fragment
    Html,
}

/// The longest document that is taken, in bytes: it is in memory several times over.
const LONGEST: u64 = 16 << 20;

/// Whether a file is named as documents are.
pub(crate) fn is_named_so(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ["html", "htm", "xhtml"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Reads a document from an input that is called `name`.
pub(crate) fn read(name: &str, input: impl Read) -> Result<String, Error> {
    let failed = |source| Error::Input { input: name.to_owned(), source };
    let refused = |problem: String| Error::Document { input: name.to_owned(), problem };
    let mut bytes = Vec::new();
    input.take(LONGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LONGEST {
        let problem = format!("the document is longer than the maximum of {} MiB: split it", LONGEST >> 20);
        return Err(refused(problem));
    }
    String::from_utf8(bytes).map_err(|_| refused(not_utf8(name)))
}

/// Translates a document, with a bar for who watches.
pub(crate) fn translate(
    html: &str,
    mut translator: Translator,
    languages: &TargetLanguages,
) -> Result<String, Error> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    interrupt::on_signal(move || flag.store(true, Ordering::Relaxed));
    let progress = output::progress(100);
    let translated = translator.translate_html(html, languages, |share| {
        progress.set_position((100.0 * share) as u64);
        !interrupted.load(Ordering::Relaxed)
    });
    progress.finish_and_clear();
    let Some(TranslatedHtml { html, blocks }) = translated? else { return Err(Error::Interrupted) };
    let mut lost = Lost::default();
    blocks.iter().for_each(|block| lost.count(Some(block)));
    lost.warn();
    Ok(html)
}
