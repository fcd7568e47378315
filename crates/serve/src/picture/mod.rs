//! Attention as a picture that needs nothing else: the same that the page draws, as SVG.

mod grid;
mod heatmap;

pub use grid::grid;
pub use heatmap::heatmap;

use crate::token::Token;
use std::fmt::Write;

// The light colours of the page: see page/colour.js.
const PAPER: &str = "#fbfaf6";
const INK: &str = "#23211d";
const SOFT: &str = "#6a655c";
const LINE: &str = "#dcd7cb";
const MASKED: &str = "#e4e0d6";
const HEAT: [[f32; 3]; 6] = [
    [244.0, 242.0, 234.0],
    [207.0, 223.0, 236.0],
    [143.0, 184.0, 216.0],
    [69.0, 135.0, 182.0],
    [28.0, 92.0, 143.0],
    [11.0, 49.0, 87.0],
];

/// The type of pictures; the last name is what `inspect` brings along.
const FONT: &str = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";

/// The colour of a weight: of its root, so that small weights can be seen.
fn heat(weight: f32) -> String {
    let at = weight.clamp(0.0, 1.0).sqrt() * (HEAT.len() - 1) as f32;
    let first = (at as usize).min(HEAT.len() - 2);
    let part = at - first as f32;
    let channel = |i: usize| (HEAT[first][i] + (HEAT[first + 1][i] - HEAT[first][i]) * part).round() as u8;
    format!("#{:02x}{:02x}{:02x}", channel(0), channel(1), channel(2))
}

/// The text of a token; the marks of words are left out.
fn label(token: &Token) -> String {
    if token.word.is_none() {
        return token.piece.clone();
    }
    let text = ["▁", "##"].iter().find_map(|mark| token.piece.strip_prefix(mark)).unwrap_or(&token.piece);
    if text.is_empty() { "␣".to_owned() } else { text.to_owned() }
}

/// About how wide a text is. Fonts differ; this is wide enough for most.
fn text_width(text: &str, size: f32) -> f32 {
    let width = |character: char| match character {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | '\'' | '-' => 0.38,
        'm' | 'w' | 'M' | 'W' => 0.95,
        character if character.is_uppercase() => 0.72,
        // Chinese, Japanese and Korean letters are as wide as high.
        '\u{1100}'..='\u{11ff}'
        | '\u{2e80}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{ff00}'..='\u{ff60}' => 1.0,
        _ => 0.6,
    };
    text.chars().map(width).sum::<f32>() * size
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A picture that grows line by line.
struct Svg {
    body: String,
    width: f32,
    height: f32,
}

impl Svg {
    fn new(width: f32, height: f32) -> Svg {
        Svg { body: String::new(), width: width.ceil(), height: height.ceil() }
    }

    fn rectangle(&mut self, [x, y]: [f32; 2], [width, height]: [f32; 2], style: &str) {
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}" {style}/>"#
        );
    }

    fn text(&mut self, [x, y]: [f32; 2], style: &str, text: &str) {
        let _ = writeln!(self.body, r#"<text x="{x:.2}" y="{y:.2}" {style}>{}</text>"#, escape(text));
    }

    /// A text that is turned around its beginning.
    fn turned_text(&mut self, [x, y]: [f32; 2], degrees: i32, style: &str, text: &str) {
        let text = escape(text);
        let _ = writeln!(
            self.body,
            r#"<text transform="translate({x:.2} {y:.2}) rotate({degrees})" {style}>{text}</text>"#
        );
    }

    /// The cells of a matrix; those of one colour are one path. What is masked is hatched.
    fn cells(&mut self, [x, y]: [f32; 2], [width, height]: [f32; 2], weights: &[Vec<f32>], causal: bool) {
        let (rows, columns) = (weights.len(), weights.first().map_or(0, Vec::len));
        let (w, h) = (width / columns.max(1) as f32, height / rows.max(1) as f32);
        let mut paths: Vec<(String, String)> = Vec::new();
        for (row, weights) in weights.iter().enumerate() {
            for (column, &weight) in weights.iter().enumerate() {
                let fill = if causal && column > row { "url(#masked)".to_owned() } else { heat(weight) };
                let (left, top) = (x + column as f32 * w, y + row as f32 * h);
                let cell = format!("M{left:.2} {top:.2}h{w:.2}v{h:.2}h{:.2}z", -w);
                match paths.iter_mut().find(|(known, _)| *known == fill) {
                    Some((_, path)) => path.push_str(&cell),
                    None => paths.push((fill, cell)),
                }
            }
        }
        let _ = writeln!(self.body, r#"<g shape-rendering="crispEdges">"#);
        for (fill, path) in paths {
            let _ = writeln!(self.body, r#"<path fill="{fill}" d="{path}"/>"#);
        }
        let _ = writeln!(self.body, "</g>");
        self.rectangle([x, y], [width, height], &format!(r#"fill="none" stroke="{LINE}""#));
    }

    fn finish(self, title: &str) -> String {
        let Svg { body, width, height } = self;
        let title = escape(title);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="{FONT}" fill="{INK}">
<title>{title}</title>
<pattern id="masked" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="6" height="6" fill="{MASKED}"/><path d="M0 0V6" stroke="{SOFT}" stroke-opacity=".55"/></pattern>
<rect width="{width}" height="{height}" fill="{PAPER}"/>
{body}</svg>
"#
        )
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::attention::{Attention, Kind, Matrix};

    /// A source of three tokens and a target of two, with one head that looks evenly.
    pub(crate) fn small(kind: Kind) -> Attention {
        let token = |piece: &str, word| Token { id: 1, piece: piece.to_owned(), word, logprob: None };
        let source = vec![token("▁one", Some(0)), token("&<", Some(0)), token("</s>", None)];
        let target = vec![token("▁ein", Some(0)), token("</s>", None)];
        let shown = vec![token("<pad>", None), token("▁ein", Some(0))];
        let (rows, columns) = match kind {
            Kind::Encoder | Kind::Causal => (3, 3),
            Kind::Decoder => (2, 2),
            Kind::Cross => (2, 3),
        };
        let matrix = |head| Matrix {
            kind,
            layer: 0,
            head,
            rows,
            columns,
            causal: matches!(kind, Kind::Decoder | Kind::Causal),
            biased: false,
            part: None,
            weights: vec![vec![1.0 / columns as f32; columns]; rows],
        };
        let attention = vec![matrix(Some(0)), matrix(None)];
        Attention { model: "m".to_owned(), source, target, shown, attention, vectors: None, hidden: None }
    }

    #[test]
    fn weights_are_colours_from_paper_to_ink() {
        assert_eq!((heat(0.0), heat(1.0)), ("#f4f2ea".to_owned(), "#0b3157".to_owned()));
        assert_eq!(heat(0.16), "#8fb8d8");
        assert_eq!(heat(f32::NAN).len(), 7);
    }

    #[test]
    fn texts_cannot_break_out_of_a_picture() {
        let attention = small(Kind::Cross);
        for picture in [heatmap(&attention, &attention.attention[0]), grid(&attention)] {
            assert!(picture.contains("&amp;&lt;") && !picture.contains("&<"), "{picture}");
            assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        }
    }

    #[test]
    fn only_decoders_mask_and_only_what_comes_later() {
        let masked = |kind| {
            let attention = small(kind);
            let picture = heatmap(&attention, &attention.attention[0]);
            let path = picture.lines().find(|line| line.starts_with(r#"<path fill="url(#masked)""#));
            path.map_or(0, |path| path.matches('M').count())
        };
        assert_eq!([Kind::Encoder, Kind::Decoder, Kind::Cross, Kind::Causal].map(masked), [0, 1, 0, 3]);
    }
}
