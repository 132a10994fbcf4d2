//! Ids as tools write them.

/// Whether two ids are equal, ignoring separators and case.
pub(crate) fn same_id(one: &str, other: &str) -> bool {
    let digits = |id: &str| -> Vec<u8> {
        id.bytes().filter(u8::is_ascii_hexdigit).map(|digit| digit.to_ascii_lowercase()).collect()
    };
    !digits(one).is_empty() && digits(one) == digits(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_however_tools_write_them() {
        assert!(same_id("0a1b:2C3d", "0A1B-2c3D"));
        assert!(!same_id("0a1b2c3d", "0a1b2c3e"));
        assert!(!same_id("", ""), "an empty id matches none");
    }
}
