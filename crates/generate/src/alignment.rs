//! Which word comes from which: word alignments from cross attention.
//!
//! Each word of the target is aligned to the word of the source that its tokens looked at most, all together. Which layer
//! tells the most has been tried: of six the fifth (Garg et al. 2019), of three the last.

use crate::attention::{AttentionKind, AttentionMatrix, AttentionSelector};
use crate::seq2seq::Spec;

/// A word of the source and a word of the target, both counted from 0: `i-j` in Pharaoh's format.
pub type Link = (usize, usize);

impl AttentionSelector {
    /// What alignments are best made from: the mean of all heads in the layer at five sixths of the decoder.
    pub fn for_alignment(spec: &Spec) -> AttentionSelector {
        let layer = (5 * spec.decoder_layers).div_ceil(6).saturating_sub(1);
        AttentionSelector { kind: AttentionKind::Cross, layer, head: None }
    }
}

/// Links each word of the target to one of the source, in the order of the target. `source` and `target` have the word of
/// each token, none for tokens that are no text.
pub fn align(attention: &AttentionMatrix, source: &[Option<usize>], target: &[Option<usize>]) -> Vec<Link> {
    let count = |words: &[Option<usize>]| words.iter().flatten().max().map_or(0, |last| last + 1);
    let source_words = count(source);
    let mut sums = vec![0.0f32; count(target) * source_words];
    for (row, target) in target.iter().enumerate() {
        let Some(target) = target else { continue };
        let sums = &mut sums[target * source_words..][..source_words];
        for (weight, source) in attention.row(row).iter().zip(source) {
            if let Some(source) = source {
                sums[*source] += weight;
            }
        }
    }
    let best = |sums: &[f32]| {
        // Of equals the first.
        let best = sums.iter().enumerate().rev().max_by(|a, b| a.1.total_cmp(b.1));
        best.map(|(word, _)| word)
    };
    let words = sums.chunks_exact(source_words.max(1)).enumerate();
    words.filter_map(|(target, sums)| Some((best(sums)?, target))).collect()
}

/// Links as Pharaoh wrote them, `0-0 1-2`, in the order of the source.
pub fn pharaoh(links: &[Link]) -> String {
    let mut links = links.to_vec();
    links.sort_unstable();
    let links: Vec<String> = links.iter().map(|(source, target)| format!("{source}-{target}")).collect();
    links.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_linked_to_the_word_that_its_tokens_looked_at_most() {
        let weights = vec![
            0.5, 0.1, 0.3, 0.1, // the first token of the second word
            0.0, 0.2, 0.1, 0.7, // its second one, which mostly looks at the end
            0.6, 0.3, 0.1, 0.0, // the first word
        ];
        let attention = AttentionMatrix { keys: 4, weights, biased: false };
        let source = [Some(0), Some(1), Some(1), None];
        let links = align(&attention, &source, &[Some(1), Some(1), Some(0)]);
        assert_eq!(links, [(0, 0), (1, 1)]);
        assert_eq!(pharaoh(&[(2, 0), (0, 1)]), "0-1 2-0");
    }

    #[test]
    fn what_is_no_text_is_linked_to_nothing() {
        let attention = AttentionMatrix { keys: 1, weights: vec![1.0], biased: false };
        assert_eq!(align(&attention, &[None], &[Some(0)]), []);
        assert_eq!(align(&attention, &[Some(0)], &[None]), []);
    }
}
