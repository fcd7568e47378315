//! Many attentions as small heat maps: a row for each layer, a column for each head.

use super::heatmap::{legend, name};
use super::{SOFT, Svg, label, text_width};
use crate::attention::{Attention, Matrix};

/// The longer side of a small heat map.
const SIDE: f32 = 150.0;
const GAP: f32 = 14.0;
const LEFT: f32 = 64.0;
/// The height of the legend.
const LEGEND: f32 = 44.0;

/// Draws all attentions, those of one kind below those of another.
pub fn grid(attention: &Attention) -> String {
    let mut kinds: Vec<Vec<&Matrix>> = Vec::new();
    for matrix in &attention.attention {
        match kinds.last_mut() {
            Some(group) if group[0].kind == matrix.kind => group.push(matrix),
            _ => kinds.push(vec![matrix]),
        }
    }
    let columns = kinds.iter().map(|group| heads(group)).max().unwrap_or(0);
    let height = |group: &Vec<&Matrix>| 70.0 + (group.len().div_ceil(heads(group)) as f32) * (SIDE + GAP);
    let sentence = |tokens: &[crate::Token]| tokens.iter().map(label).collect::<Vec<_>>().join(" ");
    let source = sentence(&attention.source);
    let title = match &attention.target[..] {
        [] => source,
        target => format!("{source}  →  {}", sentence(target)),
    };
    let width = LEFT + columns as f32 * (SIDE + GAP) + GAP;
    let mut svg = Svg::new(
        width.max(text_width(&title, 13.0) + 30.0),
        40.0 + kinds.iter().map(height).sum::<f32>() + LEGEND,
    );
    svg.text([14.0, 26.0], &format!(r#"font-size="13" fill="{SOFT}""#), &title);
    let mut y = 40.0;
    for group in &kinds {
        draw_kind(&mut svg, group, y);
        y += height(group);
    }
    legend(&mut svg, [LEFT + GAP, y + 12.0], kinds.iter().any(|group| group[0].causal));
    svg.finish(&title)
}

/// How many heads each layer shows, the mean included.
fn heads(group: &[&Matrix]) -> usize {
    group.iter().take_while(|matrix| matrix.layer == group[0].layer).count().max(1)
}

fn draw_kind(svg: &mut Svg, group: &[&Matrix], y: f32) {
    let heads = heads(group);
    let caption = format!(r#"font-size="12" fill="{SOFT}" text-anchor="middle""#);
    svg.text([14.0, y + 24.0], r#"font-size="16" font-weight="600""#, name(group[0].kind));
    for (column, matrix) in group.iter().take(heads).enumerate() {
        let head = matrix.head.map_or_else(|| "mean".to_owned(), |head| format!("head {}", head + 1));
        svg.text([LEFT + column as f32 * (SIDE + GAP) + SIDE / 2.0, y + 46.0], &caption, &head);
    }
    for (place, matrix) in group.iter().enumerate() {
        let (row, column) = (place / heads, place % heads);
        let top = y + 54.0 + row as f32 * (SIDE + GAP);
        if column == 0 {
            let layer = format!("layer {}", matrix.layer + 1);
            svg.text([LEFT / 2.0, top + SIDE / 2.0], &caption, &layer);
        }
        let longest = matrix.rows.max(matrix.columns).max(1) as f32;
        let [w, h] = [matrix.columns, matrix.rows].map(|count| SIDE * count as f32 / longest);
        let left = LEFT + column as f32 * (SIDE + GAP);
        svg.cells([left + (SIDE - w) / 2.0, top + (SIDE - h) / 2.0], [w, h], &matrix.weights, matrix.causal);
    }
}
