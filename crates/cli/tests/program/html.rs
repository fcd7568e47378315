//! `attentive translate --format html`.

use super::finish;
use super::translate::{fed, file, folder, translate};

/// What the model makes of a sentence, as HTML.
fn sentence(text: &str) -> String {
    let outcome = fed("", text.as_bytes());
    outcome.stdout.trim_end().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[test]
fn sentences_are_translated_and_markup_stays() {
    let page = |dog: &str, cats: &str, bear: &str| {
        format!(
            "<!DOCTYPE html>\r\n<title>{dog}</title><style>p > b {{}}</style>\n<p class=\"a>b\"> <b>{cats}</b>\t<ul>\n\
             <li>{bear}\n<li>&nbsp;<!-- a dog --></ul><pre>a dog\n runs</pre><script>a < b</script><p translate=no>a dog"
        )
    };
    let source = page("a dog runs.", "cats hide", "a big bear");
    let expected = page(&sentence("a dog runs."), &sentence("cats hide"), &sentence("a big bear"));
    let outcome = fed("--format html", source.as_bytes());
    assert_eq!(
        (outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()),
        (Some(0), &expected[..], "")
    );
}

#[test]
fn every_tag_in_a_sentence_is_there_and_the_words_are_those_of_the_whole_sentence() {
    let source = "the <b>old <i x='>'>dog</i></b> <img src=a> sleeps <code>f()</code> on the grass.";
    let outcome = fed("--format html", source.as_bytes());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let mut bare = outcome.stdout.clone();
    let mut places = Vec::new();
    for tag in ["<b>", "<i x='>'>", "</i>", "</b>", "<img src=a>", "<code>f()</code>"] {
        assert_eq!(outcome.stdout.matches(tag).count(), 1, "{}", outcome.stdout);
        places.push(outcome.stdout.find(tag));
        bare = bare.replace(tag, " ");
    }
    assert!(places[..4].is_sorted(), "{}", outcome.stdout);
    let letters = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(letters(&bare), letters(&sentence("the old dog sleeps on the grass.")));
}

#[test]
fn documents_come_from_arguments_and_files_too() {
    let piped = fed("--format html", b"<p>a dog\n<p>cats\n");
    let mut arguments = translate("--format html");
    arguments.args(["<p>a dog", "<p>cats"]);
    assert_eq!(finish(arguments).stdout, piped.stdout);
    let (input, output) = (file("page", b"<p>a dog\n<p>cats\n"), folder().join("page.out"));
    let files = format!("--format html --input {} --output {}", input.display(), output.display());
    assert_eq!(finish(translate(&files)).code, Some(0));
    assert_eq!(std::fs::read_to_string(output).unwrap(), piped.stdout);
    // What has no text stays as it is, white space included.
    assert_eq!(fed("--format html", b" <hr>\n\n").stdout, " <hr>\n\n");
    assert_eq!(fed("--format html", b"").stdout, "");
    assert_eq!(fed("--format text", b"a dog\n").stdout, fed("", b"a dog\n").stdout);
}

#[test]
fn what_has_no_meaning_for_a_document_is_wrong_usage() {
    for flag in ["--n-best 2", "--json", "--alignments", "--alternatives 2", "--prefix a"] {
        let name = flag.split(' ').next().unwrap();
        fed(&format!("--format html {flag}"), b"a dog").misused(&["--format", name]);
    }
    fed("--format pdf", b"").refused(&["--format", "pdf", "html"]);
}

#[test]
fn what_is_no_document_is_refused_by_name() {
    fed("--format html", b"<p>a \xff dog").failed(&["standard input", "UTF-8"]);
    let long = file("long", &vec![b'a'; (16 << 20) + 1]);
    finish(translate(&format!("--format html --input {}", long.display()))).failed(&["long-", "16 MiB"]);
    finish(translate("--format html --input nowhere.html")).failed(&["nowhere.html"]);
}
