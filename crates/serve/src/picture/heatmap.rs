//! One attention, large: queries as rows, keys as columns, the tokens on the axes.

use super::{INK, SOFT, Svg, label, text_width};
use crate::attention::{Attention, Kind, Matrix};
use crate::token::Token;

/// Draws one of the attentions.
pub fn heatmap(attention: &Attention, matrix: &Matrix) -> String {
    let [rows, columns] = attention.axes(matrix.kind);
    let most = rows.len().max(columns.len()).max(1) as f32;
    let cell = (640.0 / most).clamp(9.0, 42.0);
    let size = (cell * 0.95).min(15.0);
    let widest =
        |tokens: &[Token]| tokens.iter().map(|token| text_width(&label(token), size)).fold(20.0, f32::max);
    let slanted = columns.len() <= 24;
    let left = widest(rows) + 30.0;
    let above = 44.0 + size + widest(columns) * if slanted { 0.72 } else { 1.0 };
    let overhang =
        if slanted { widest(&columns[columns.len().saturating_sub(1)..]) * 0.72 + 8.0 } else { 8.0 };
    let (w, h) = (columns.len() as f32 * cell, rows.len() as f32 * cell);
    let title = format!("{}, {}", name(matrix.kind), matrix.name());
    let width = (left + w + overhang).max(text_width(&title, 15.0) + 24.0).max(left + 280.0);
    let mut svg = Svg::new(width, above + h + 52.0);
    svg.text([12.0, 22.0], r#"font-size="15" font-weight="600""#, &title);
    svg.cells([left, above], [w, h], &matrix.weights, matrix.causal);
    let [row_title, column_title] = axis_titles(matrix.kind);
    let caption = format!(r#"font-size="12" font-style="italic" fill="{SOFT}" text-anchor="middle""#);
    svg.turned_text([12.0, above + h / 2.0], -90, &caption, row_title);
    svg.text([left + w / 2.0, 42.0], &caption, column_title);
    for (row, (token, shade)) in rows.iter().zip(shades(rows)).enumerate() {
        let y = above + (row as f32 + 0.5) * cell + size * 0.35;
        let style = format!(r#"font-size="{size:.1}" text-anchor="end" fill="{shade}""#);
        svg.text([left - 7.0, y], &style, &label(token));
    }
    for (column, (token, shade)) in columns.iter().zip(shades(columns)).enumerate() {
        let x = left + (column as f32 + 0.5) * cell + if slanted { 0.0 } else { size * 0.35 };
        let style = format!(r#"font-size="{size:.1}" fill="{shade}""#);
        let text =
            if matrix.kind == Kind::Decoder && column == 0 { "(start)".to_owned() } else { label(token) };
        svg.turned_text([x, above - 7.0], if slanted { -45 } else { -90 }, &style, &text);
    }
    legend(&mut svg, [left, above + h + 18.0], matrix.causal);
    svg.finish(&title)
}

/// What an attention is called.
pub(super) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Encoder => "encoder self-attention",
        Kind::Decoder => "decoder self-attention",
        Kind::Cross => "cross attention",
        Kind::Causal => "causal self-attention",
    }
}

fn axis_titles(kind: Kind) -> [&'static str; 2] {
    match kind {
        Kind::Encoder => ["source (queries)", "source (keys)"],
        Kind::Decoder => ["target (queries)", "target so far (keys)"],
        Kind::Cross => ["target (queries)", "source (keys)"],
        Kind::Causal => ["text (queries)", "text so far (keys)"],
    }
}

/// Tokens that go on with a word, and those that are no text, stand back a little.
fn shades(tokens: &[Token]) -> impl Iterator<Item = &'static str> {
    (0..tokens.len()).map(move |place| {
        let goes_on = place > 0 && tokens[place].word == tokens[place - 1].word;
        if goes_on || tokens[place].word.is_none() { SOFT } else { INK }
    })
}

/// What the colours mean.
pub(super) fn legend(svg: &mut Svg, [x, y]: [f32; 2], causal: bool) {
    const WIDTH: f32 = 180.0;
    let places: Vec<f32> = (0..60).map(|place| ((place as f32 + 0.5) / 60.0).powi(2)).collect();
    svg.cells([x, y], [WIDTH, 8.0], &[places], false);
    let style = format!(r#"font-size="11" fill="{SOFT}" text-anchor="middle""#);
    for weight in [0.0_f32, 0.05, 0.25, 0.5, 1.0] {
        svg.text([x + WIDTH * weight.sqrt(), y + 24.0], &style, &weight.to_string());
    }
    if causal {
        svg.rectangle([x + WIDTH + 22.0, y - 2.0], [14.0, 12.0], r#"fill="url(#masked)""#);
        svg.text([x + WIDTH + 41.0, y + 8.0], &format!(r#"font-size="11" fill="{SOFT}""#), "masked");
    }
}
