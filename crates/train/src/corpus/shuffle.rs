//! Orders from a seed: Fisher and Yates' shuffle with numbers from a counter.

use attentive_tensor::Random;

/// Brings `items` into an order that follows from `random` alone.
///
/// # Panics
/// If there are 2³² of them.
pub(crate) fn shuffle<T>(items: &mut [T], random: Random) {
    assert!(u32::try_from(items.len()).is_ok(), "shuffle: {} items", items.len());
    let (high, low) = (random.split(0), random.split(1));
    for last in (1..items.len()).rev() {
        let bits = u64::from(high.bits(last as u32)) << 32 | u64::from(low.bits(last as u32));
        // The high word of a product spreads 64 bits evenly over the places that are left.
        let place = (u128::from(bits) * (last as u128 + 1)) >> 64;
        items.swap(place as usize, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(items: usize, seed: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..items).collect();
        shuffle(&mut order, Random::new(seed));
        order
    }

    #[test]
    fn every_item_stays_and_the_seed_decides_where() {
        let mut shuffled = order(1000, 1);
        assert_eq!(shuffled, order(1000, 1));
        assert_ne!(shuffled, order(1000, 2));
        shuffled.sort_unstable();
        assert!(shuffled.into_iter().eq(0..1000));
    }

    #[test]
    fn all_orders_of_three_are_as_frequent() {
        let mut counts = std::collections::HashMap::new();
        (0..6000).for_each(|seed| *counts.entry(order(3, seed)).or_insert(0) += 1);
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (880..1120).contains(count)), "{counts:?}");
    }
}
