//! `attentive inspect`: a page and pictures of what a model looks at.

use super::{Outcome, finish, program, run};
use std::path::PathBuf;

/// A small GPT-2.
const GPT2: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/gpt2/saved");

/// The model that comes with the program, as a folder.
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/model");

fn out(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("attentive-inspect-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn inspect(text: &str, options: &str, name: &str) -> (Outcome, Vec<u8>) {
    inspect_model(MODEL, text, options, name)
}

fn inspect_model(model: &str, text: &str, options: &str, name: &str) -> (Outcome, Vec<u8>) {
    let path = out(name);
    let mut program = program(&format!("inspect --model {model} --out {} {options}", path.display()));
    program.arg(text);
    let outcome = finish(program);
    let contents = std::fs::read(&path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    (outcome, contents)
}

#[track_caller]
fn text((outcome, contents): (Outcome, Vec<u8>)) -> String {
    assert_eq!((outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str()), (Some(0), "", ""));
    String::from_utf8(contents).unwrap()
}

#[test]
fn a_page_has_all_attentions_and_needs_nothing_else() {
    let page = text(inspect(">>de<< twenty-one", "", "all.html"));
    assert!(page.contains("\"kind\":\"encoder\"") && page.contains("\"kind\":\"cross\""));
    assert!(page.contains("zwanzig") && !page.contains("<script src") && !page.contains("<link"));
    assert!(page.contains("\"point\":\"feed_forward\"") && page.contains("\"norms\":["));
}

#[test]
fn one_head_is_large_and_has_its_tokens_and_many_are_small() {
    let large = text(inspect(">>de<< twenty-one", "--kind cross --layer 2 --head 3", "head.svg"));
    assert!(large.starts_with("<svg") && large.contains("cross attention, layer 2, head 3"));
    assert!(large.contains(">zwanzig</text>") && large.contains(">twenty</text>"));
    let mean = text(inspect(">>de<< twenty-one", "--kind decoder --layer 1 --head mean", "mean.svg"));
    assert!(mean.contains("mean of all heads") && mean.contains("url(#masked)"));
    let small = text(inspect(">>fr<< ninety-seven", "--kind encoder", "heads.svg"));
    assert!(
        small.contains(">head 4</text>")
            && small.contains(">layer 2</text>")
            && !small.contains("cross attention")
    );
}

#[test]
fn a_translation_can_be_given() {
    let picture =
        text(inspect(">>de<< one", "--translation zwei --kind cross --layer 1 --head 1", "given.svg"));
    assert!(picture.contains(">zwei</text>"), "{picture}");
}

#[test]
fn a_language_model_looks_at_what_it_has_read_so_far() {
    let page = text(inspect_model(GPT2, "The same numbers", "", "gpt2.html"));
    assert!(page.contains("\"kind\":\"causal\"") && !page.contains("\"kind\":\"decoder\""));
    assert!(page.contains("<title>The same numbers</title>"));
    let head = text(inspect_model(GPT2, "The same", "--layer 2 --head 4 --kind decoder", "gpt2.svg"));
    assert!(head.contains("causal self-attention, layer 2, head 4") && head.contains("url(#masked)"));
    assert!(head.contains(">text so far (keys)</text>") && !head.contains("(start)"));
    let heads = text(inspect_model(GPT2, "The same", "--precision bf16", "gpt2-all.svg"));
    assert!(heads.contains(">head 4</text>") && heads.contains(">layer 2</text>") && !heads.contains('→'));
    inspect_model(GPT2, "The", "--kind cross", "x.svg").0.misused(&["--kind", "decoder alone"]);
    inspect_model(GPT2, "The", "--translation A", "x.svg")
        .0
        .misused(&["--translation", "does not translate"]);
    inspect_model(GPT2, "The", "--layer 3", "x.svg").0.misused(&["--layer", "layers 1 to 2"]);
    inspect_model(GPT2, &"0 1 ".repeat(30), "", "x.svg").0.failed(&["tokens", "48 at most", "shorten"]);
}

/// The tokenizers of GPT-2, RoBERTa and BART write a letter for each byte.
#[test]
fn bytes_are_shown_as_the_characters_that_they_are() {
    for model in [GPT2, concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/bart/bart")] {
        let page = text(inspect_model(model, "Größe of 世界", "", "bytes.html"));
        assert!(page.contains("<title>Größe of 世界"), "{model}");
        let picture =
            text(inspect_model(model, "Größe of 世界", "--layer 1 --head 1 --kind decoder", "bytes.svg"));
        for letter in ['Ġ', 'Ã', 'ä', '¸'] {
            assert!(
                !page.contains(&format!("\"piece\":\"{letter}")) && !picture.contains(letter),
                "{letter} {model}"
            );
        }
    }
    let picture = text(inspect_model(GPT2, "Größe", "--layer 1 --head 1 --kind decoder", "whole.svg"));
    assert!(picture.contains('ö') || picture.contains("&lt;0xC3&gt;"), "{picture}");
}

#[cfg(not(feature = "png"))]
#[test]
fn a_program_without_png_names_svg_and_the_way_to_get_png() {
    run("inspect text --model m --out head.png").refused(&["without PNG", ".svg", "--features png"]);
}

#[cfg(feature = "png")]
#[test]
fn pixels_have_letters_in_them() {
    let (outcome, png) = inspect(">>de<< twenty-one", "--kind cross --layer 1 --head 1", "head.png");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    assert!(png.starts_with(b"\x89PNG") && png.len() > 5_000, "{} bytes", png.len());
}

#[test]
fn what_cannot_be_drawn_is_refused_in_one_sentence() {
    run("inspect text --model m --out picture.gif").refused(&[".html, .svg or .png"]);
    run("inspect text --model m --out a.svg --head none").refused(&["--head", "mean"]);
    run("inspect text --model no/such --out a.svg").failed(&["no/such"]);
    inspect("one", "--layer 3 --kind cross", "x.svg").0.misused(&["--layer", "2"]);
    inspect("one", "--head 9", "x.svg").0.misused(&["--head", "4"]);
    inspect(" ", "", "x.svg").0.misused(&["TEXT is empty"]);
}
