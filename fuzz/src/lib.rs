//! The fuzzer's targets: the readers of `tests/readers`, each with what must hold of anything that it reads.

#[doc(hidden)]
pub use libfuzzer_sys;

#[path = "../../tests/readers/mod.rs"]
mod readers;

/// Feeds the reader of that name.
pub fn feed(name: &str, input: &[u8]) {
    let (_, reader) = readers::READERS.iter().find(|(known, _)| *known == name).expect("a reader");
    reader(input);
}

/// The target of the reader with that name.
#[macro_export]
macro_rules! fuzz {
    ($name:literal) => {
        $crate::libfuzzer_sys::fuzz_target!(|input: &[u8]| $crate::feed($name, input));
    };
}
