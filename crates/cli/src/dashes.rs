//! Texts on the command line that begin with a dash and a space, as items of lists do: `- a ball`.
//!
//! The parser of flags takes an argument that begins with a dash for a flag. No flag has a space behind its dashes, so these texts
//! can be told apart before the parser sees them. They get a mark, which [`text`] removes. No argument of a process contains the
//! mark: arguments end at a zero byte.

use clap::Command;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};

const MARK: &str = "\0";

/// The arguments of a process, with marks before texts that would be taken for flags. Only commands with an argument `text` have any.
pub(crate) fn marked(
    program: &Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> impl Iterator<Item = OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let command = arguments.get(1).and_then(|name| program.find_subcommand(name));
    if let Some(command) = command.filter(|command| command.get_arguments().any(|own| own.get_id() == "text"))
    {
        // Behind `--` nothing is a flag.
        let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
        for place in 2..end {
            if is_text(&arguments[place]) && !takes_next(command, &arguments[place - 1]) {
                let mut text = OsString::from(MARK);
                text.push(&arguments[place]);
                arguments[place] = text;
            }
        }
    }
    arguments.into_iter()
}

/// A text without its mark.
pub(crate) fn text(argument: &str) -> Result<String, Infallible> {
    Ok(argument.strip_prefix(MARK).unwrap_or(argument).to_owned())
}

/// Whether white space follows the dashes that an argument begins with.
fn is_text(argument: &OsStr) -> bool {
    let argument = argument.to_string_lossy();
    let rest = argument.trim_start_matches('-');
    rest.len() < argument.len() && rest.starts_with(char::is_whitespace)
}

/// Whether an argument is a flag whose value is the next argument.
fn takes_next(command: &Command, argument: &OsStr) -> bool {
    let argument = argument.to_string_lossy();
    let is_named = |flag: &&clap::Arg| {
        let long = argument.strip_prefix("--").is_some_and(|name| {
            flag.get_long() == Some(name) || flag.get_all_aliases().unwrap_or_default().contains(&name)
        });
        let short = flag.get_short().is_some_and(|short| *argument == format!("-{short}"));
        long || short
    };
    command.get_arguments().find(is_named).is_some_and(|flag| flag.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// What the texts of a command are after the parser has seen them, or what it refuses.
    fn texts(arguments: &[&str]) -> Result<Vec<String>, String> {
        let program = crate::Command::command();
        let arguments = ["attentive"].iter().chain(arguments).map(OsString::from);
        let matches = program.clone().try_get_matches_from(marked(&program, arguments));
        let matches = matches.map_err(|error| error.to_string())?;
        let (_, matches) = matches.subcommand().unwrap();
        Ok(matches.get_many::<String>("text").unwrap_or_default().cloned().collect())
    }

    #[test]
    fn a_text_may_begin_with_dashes_and_a_space() {
        let model = ["translate", "--model", "m"];
        for text in ["- a ball", "-\ta ball", "-- a ball", "- ", "—a ball"] {
            assert_eq!(
                texts(&[&model[..], &["a dog", text, "--beam", "2"]].concat()).unwrap(),
                ["a dog", text]
            );
            assert_eq!(texts(&[&model[..], &["-v", text]].concat()).unwrap(), [text]);
            assert_eq!(texts(&[&model[..], &["--", text, "--beam"]].concat()).unwrap(), [text, "--beam"]);
            assert_eq!(texts(&["inspect", "--model", "m", text, "--out", "x.svg"]).unwrap(), [text]);
        }
    }

    #[test]
    fn flags_stay_flags_and_their_values_are_not_texts() {
        let model = ["translate", "--model", "m"];
        for (mistyped, words) in
            [(&["--beem", "4"][..], "--beam"), (&["-x"], "'-x'"), (&["- a", "--beem", "4"], "--beam")]
        {
            let problem = texts(&[&model[..], mistyped].concat()).unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
        for flag in ["--prefix", "--target-lang"] {
            assert!(texts(&[&model[..], &[flag, "- a ball"]].concat()).is_err(), "{flag}");
        }
        assert!(texts(&["info", "- a ball"]).is_err());
    }
}
