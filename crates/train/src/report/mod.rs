//! `report.html`: a run on one page, which asks for nothing from anywhere.
//!
//! The plots are drawn here, as SVG within the page, so that it can be opened from a disk, sent by mail and read in ten
//! years. It has no script. Colours follow the reader's choice of light or dark.

mod plot;

use crate::metrics::{Metric, Reached, StepMetric, ValidationMetric};
use crate::settings::{Settings, TaskKind};
use crate::{Begin, Error, Sample, logs};
use attentive_model::checkpoint::Staged;
use plot::{Plot, Series};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// The name of the file in a run's folder.
pub const FILE_NAME: &str = "report.html";

const STYLE: &str = include_str!("style.css");

/// Writes the report of the run in a folder: its `metrics.jsonl`, what it began with, its settings, and some translations of the
/// last validation.
pub fn write(folder: &Path, begin: &Begin, settings: &Settings, samples: &[Sample]) -> Result<(), Error> {
    let metrics = logs::read(folder)?;
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let html = html(&name, begin, settings, &metrics, samples);
    Ok(Staged::new(&folder.join(FILE_NAME), html.as_bytes())?.commit()?)
}

/// The page.
fn html(name: &str, begin: &Begin, settings: &Settings, metrics: &[Metric], samples: &[Sample]) -> String {
    let steps: Vec<&StepMetric> = metrics
        .iter()
        .filter_map(|metric| if let Metric::Step(step) = metric { Some(step) } else { None })
        .collect();
    let validations: Vec<&ValidationMetric> = metrics
        .iter()
        .filter_map(|metric| if let Metric::Validation(one) = metric { Some(one) } else { None })
        .collect();

    let name = escape(name);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{name}: training</title>\n<style>\n{STYLE}</style>\n\
         <main>\n<h1>{name}</h1>\n<p class=\"lead\">{}</p>\n",
        escape(&lead(begin))
    );
    facts(&mut html, &Reached::of(metrics), &steps, &validations);
    html.push_str("<h2>Training</h2>\n<div class=\"plots\">\n");
    html.extend(plots(&steps, &validations).iter().filter_map(Plot::html));
    html.push_str("</div>\n");
    translations(&mut html, samples);
    events(&mut html, metrics);
    settings_table(&mut html, settings);
    html.push_str("</main>\n</html>\n");
    html
}

fn lead(begin: &Begin) -> String {
    let vocabulary = match begin.vocabulary {
        0 => String::new(),
        tokens => format!(" and a vocabulary of {} tokens", grouped(tokens)),
    };
    format!(
        "A {} with {} parameters{vocabulary}, trained on {} {}, {}.",
        match begin.task {
            TaskKind::Translate => "Transformer",
            TaskKind::Seq2Seq => "model from text to text",
            TaskKind::Lm => "GPT-2",
            TaskKind::ClassifyImages | TaskKind::Dino => "ViT",
            TaskKind::Detect => "DETR",
            TaskKind::Mlm | TaskKind::Classify | TaskKind::Tag | TaskKind::Answer => "BERT",
        },
        grouped(begin.parameters),
        grouped(begin.examples),
        begin.task.examples(),
        begin.device
    )
}

/// What most want to know, in large letters.
fn facts(html: &mut String, reached: &Reached, steps: &[&StepMetric], validations: &[&ValidationMetric]) {
    let mut facts: Vec<(String, String)> = Vec::new();
    if reached.step > 0 {
        facts.push(("steps".to_owned(), grouped(reached.step as usize)));
        facts.push(("epochs".to_owned(), format!("{:.1}", reached.epoch)));
        facts.push(("time".to_owned(), duration(reached.seconds)));
    }
    if !steps.is_empty() {
        let speed = steps.iter().map(|step| step.tokens_per_second).sum::<f64>() / steps.len() as f64;
        facts.push(("tokens per second".to_owned(), grouped(speed as usize)));
    }
    if let Some(best) = validations.iter().rev().find(|validation| validation.best) {
        facts.push(("loss at best step".to_owned(), format!("{:.4}", best.loss)));
        facts.extend(
            best.scores().map(|(name, score)| (format!("{name} at best step"), format!("{score:.1}"))),
        );
        facts.push(("best step".to_owned(), grouped(best.step as usize)));
    }
    html.push_str("<dl class=\"facts\">\n");
    for (name, value) in facts {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    html.push_str("</dl>\n");
}

fn plots(steps: &[&StepMetric], validations: &[&ValidationMetric]) -> Vec<Plot> {
    let course = |name, number: fn(&StepMetric) -> f64| Series {
        name,
        points: steps.iter().map(|step| (step.step as f64, number(step))).collect(),
        marked: false,
    };
    let judged = |name, number: fn(&ValidationMetric) -> Option<f64>| Series {
        name,
        points: validations.iter().filter_map(|one| Some((one.step as f64, number(one)?))).collect(),
        marked: true,
    };
    let plot = |title, series, from_zero| Plot { title, series, from_zero };
    vec![
        plot(
            "Loss",
            vec![course("training", |step| step.loss), judged("validation", |one| Some(one.loss))],
            false,
        ),
        plot(
            "BLEU and chrF",
            vec![
                judged("BLEU", |one| one.bleu),
                judged("chrF", |one| one.chrf),
                judged("ROUGE-L", |one| one.rouge),
            ],
            true,
        ),
        plot(
            "Accuracy and F1",
            vec![
                judged("accuracy", |one| one.accuracy),
                judged("exact match", |one| one.exact),
                judged("F1", |one| one.f1),
            ],
            true,
        ),
        plot("Average precision", vec![judged("AP", |one| one.ap), judged("AP50", |one| one.ap50)], true),
        plot("Learning rate", vec![course("rate", |step| step.learning_rate)], true),
        plot("Speed", vec![course("tokens per second", |step| step.tokens_per_second)], true),
        plot("Gradient", vec![course("norm", |step| step.gradient_norm)], true),
    ]
}

fn translations(html: &mut String, samples: &[Sample]) {
    if samples.is_empty() {
        return;
    }
    html.push_str("<h2>Translations at the last validation</h2>\n<ol class=\"samples\">\n");
    for Sample { source, reference, translation } in samples {
        let class = if reference == translation { " class=\"right\"" } else { "" };
        let _ = write!(html, "<li{class}>");
        for (name, text) in [("source", source), ("translation", translation), ("reference", reference)] {
            let class = if name == "translation" { " class=\"own\"" } else { "" };
            let _ = write!(html, "<p{class}><span>{name}</span> {}</p>", escape(text));
        }
        html.push_str("</li>\n");
    }
    html.push_str("</ol>\n");
}

fn events(html: &mut String, metrics: &[Metric]) {
    let events = metrics.iter().filter_map(|metric| match metric {
        Metric::Event(event) => Some((format!("step {}", event.step), event.message.clone())),
        _ => None,
    });
    let events: Vec<(String, String)> = events.collect();
    if !events.is_empty() {
        html.push_str("<h2>Events</h2>\n");
        table(html, &events);
    }
}

fn settings_table(html: &mut String, settings: &Settings) {
    let Ok(Value::Object(values)) = serde_json::to_value(settings) else { return };
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(values) if values.is_empty() => None,
        Value::Array(values) => {
            let texts =
                values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            Some(texts.collect::<Vec<_>>().join(", "))
        }
        other => Some(other.to_string()),
    };
    let rows: Vec<(String, String)> =
        values.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect();
    html.push_str("<details>\n<summary>Settings</summary>\n");
    table(html, &rows);
    html.push_str("</details>\n");
}

fn table(html: &mut String, rows: &[(String, String)]) {
    html.push_str("<table>\n");
    for (name, value) in rows {
        let _ = writeln!(html, "<tr><td>{}</td><td>{}</td></tr>", escape(name), escape(value));
    }
    html.push_str("</table>\n");
}

/// A text that is no part of the page's own language.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A number with narrow spaces between its thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join("\u{202f}")
}

/// Seconds as people say them.
fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{EndMetric, EventMetric};

    fn begin() -> Begin {
        Begin {
            step: 0,
            parameters: 1_234_567,
            vocabulary: 8000,
            task: TaskKind::Translate,
            examples: 29_000,
            held: 1014,
            device: "CPU <avx512>".to_owned(),
        }
    }

    fn metrics() -> Vec<Metric> {
        let step = |step: u64| {
            Metric::Step(StepMetric {
                step,
                epoch: step as f64 / 100.0,
                loss: 6.0 / (1.0 + step as f64 / 50.0) + 1.0,
                learning_rate: 1e-4 * step as f64,
                gradient_norm: 2.0,
                tokens_per_second: 15_000.0,
                seconds: step as f64,
            })
        };
        let validation = |step: u64, best| {
            let (bleu, chrf) = (Some(step as f64 / 10.0), Some(step as f64 / 6.0));
            Metric::Validation(ValidationMetric {
                step,
                loss: 3.0,
                bleu,
                chrf,
                rouge: None,
                accuracy: None,
                exact: None,
                f1: None,
                ap: None,
                ap50: None,
                seconds: 1.0,
                best,
            })
        };
        let event = EventMetric { step: 150, message: "half the <rate>".to_owned() };
        vec![
            step(50),
            step(100),
            validation(100, true),
            Metric::Event(event),
            step(150),
            validation(150, false),
            Metric::End(EndMetric { step: 163, epoch: 1.63, seconds: 171.0, reason: "the end".to_owned() }),
        ]
    }

    fn page() -> String {
        let sample = |translation: &str| Sample {
            source: "a & b".into(),
            reference: "c".into(),
            translation: translation.into(),
        };
        html("en<de", &begin(), &Settings::default(), &metrics(), &[sample("c"), sample("\"d\"")])
    }

    #[test]
    fn the_page_has_the_course_the_best_score_translations_events_and_settings() {
        let page = page();
        for text in [
            "1\u{202f}234\u{202f}567 parameters",
            "<dt>BLEU at best step</dt><dd>10.0</dd>",
            "<dt>steps</dt><dd>163</dd>",
            "<dt>epochs</dt><dd>1.6</dd>",
            "<dt>time</dt><dd>2 min 51 s</dd>",
            "Loss: training from 4 to 2.5 at step 150; validation from 3 to 3 at step 150",
            "BLEU and chrF: BLEU from 10 to 15",
            "<title>BLEU 15 at step 150</title>",
            "<li class=\"right\">",
            "<td>step 150</td><td>half the &lt;rate&gt;</td>",
            "<td>batch_tokens</td><td>8192</td>",
        ] {
            assert!(page.contains(text), "`{text}` is not in {page}");
        }
    }

    #[test]
    fn text_from_elsewhere_is_text() {
        let page = page();
        for text in ["en&lt;de", "CPU &lt;avx512&gt;", "a &amp; b", "&quot;d&quot;"] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("<rate>") && !page.contains("en<de"));
    }

    #[test]
    fn the_page_asks_for_nothing() {
        let page = page();
        for word in ["http", "src=", "href", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(word), "{word}");
        }
    }

    #[test]
    fn a_run_that_has_just_begun_has_a_page_too() {
        let page = html("new", &begin(), &Settings::default(), &[], &[]);
        assert!(page.contains("</html>") && !page.contains("<figure>") && !page.contains("<h2>Events"));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]
        );
    }
}
