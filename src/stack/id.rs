//! A stack's id, and the ids of its layers, which are derived from it.

use serde::{Deserialize, Serialize};

/// The suffix of all layer ids of all stacks.
const LAYER: u32 = 0x57ac_4e00;

/// A stack's id: 16 random hexadecimal digits; folders, arrays and ids are named after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackId(pub String);

impl StackId {
    /// A new one.
    pub fn random() -> Self {
        Self(format!("{:016x}", rand::random::<u64>()))
    }

    /// Whether it is well-formed: anything named after an empty id could be anyone's.
    pub(crate) fn is_sound(&self) -> bool {
        self.0.len() == 16 && self.0.bytes().all(|digit| digit.is_ascii_hexdigit())
    }

    /// The id of a layer: a version 4 UUID made of the stack's id and the layer's purpose.
    pub fn uuid(&self, kind: u16, number: usize) -> String {
        let id = &self.0;
        format!("{}-{}-4{kind:03x}-8{number:03x}-{}{LAYER:08x}", &id[..8], &id[8..12], &id[12..16])
    }

    /// Whether a UUID is such an id, ignoring separators and case.
    pub(crate) fn is_of(&self, uuid: &str) -> bool {
        let digits: String =
            uuid.chars().filter(char::is_ascii_hexdigit).map(|c| c.to_ascii_lowercase()).collect();
        let id = self.0.to_ascii_lowercase();
        self.is_sound()
            && digits.len() == 32
            && digits[..12] == id[..12]
            && digits[20..24] == id[12..16]
            && digits[24..] == format!("{LAYER:08x}")
    }
}
