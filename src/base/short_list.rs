//! Sorting of short lists.
//!
//! The standard library's sort is made for millions of items, and is compiled anew, in about 3,000 lines of the compiler's
//! own code, for each kind of item and order. Twenty lists of a few knobs, columns or devices need none of that.

/// Sorts a list of at most some hundreds by a key; items with equal keys keep their order.
pub fn sort_by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(list, |one, other| key(one) < key(other));
}

/// Sorts a list of at most some hundreds; items that `precedes` does not tell apart keep their order.
pub fn sort_by<T>(list: &mut [T], precedes: impl Fn(&T, &T) -> bool) {
    for end in 1..list.len() {
        let mut at = end;
        while at > 0 && precedes(&list[at], &list[at - 1]) {
            list.swap(at, at - 1);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(list: Vec<(u8, u16)>) {
            let (mut ours, mut theirs) = (list.clone(), list);
            sort_by_key(&mut ours, |(key, _)| *key);
            theirs.sort_by_key(|(key, _)| *key);
            prop_assert_eq!(ours, theirs);
        }
    }
}
