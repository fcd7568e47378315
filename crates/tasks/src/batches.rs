//! Texts that are computed together.
//!
//! A batch is packed, so that texts of any lengths can share it. Texts of similar lengths come together all the same: their attention
//! takes as long, and no thread waits for another.

use attentive_text::tokenizer::Encoding;

/// The numbers of texts, in batches of at most `most` tokens, or of one text that has more. The longest come first.
pub(crate) fn batches(encodings: &[Encoding], most: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..encodings.len()).collect();
    order.sort_by_key(|&text| std::cmp::Reverse(encodings[text].len()));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut tokens = 0;
    for text in order {
        let length = encodings[text].len();
        match batches.last_mut() {
            Some(batch) if tokens + length <= most => {
                batch.push(text);
                tokens += length;
            }
            _ => {
                batches.push(vec![text]);
                tokens = length;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encodings(lengths: &[usize]) -> Vec<Encoding> {
        lengths.iter().map(|&length| Encoding { ids: vec![0; length], ..Encoding::default() }).collect()
    }

    #[test]
    fn every_text_is_in_one_batch_and_no_batch_is_too_large() {
        let lengths = [3, 9, 1, 30, 4, 4, 10, 2];
        let batches = batches(&encodings(&lengths), 12);
        assert_eq!(batches, [vec![3], vec![6], vec![1], vec![4, 5, 0], vec![7, 2]]);
        assert_eq!(super::batches(&[], 12), [[0; 0]; 0]);
    }
}
