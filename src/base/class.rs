//! The four I/O classes of an HTAP database (Haas et al. 2020, section 3.2, Table 3).

use serde::{Deserialize, Serialize};

/// A class of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Table scans: random page reads at depth, measured for throughput.
    Scan,
    /// Point reads: one random page at a time, measured for latency.
    Point,
    /// The write-ahead log: sequential writes, each made durable by a flush.
    Wal,
    /// The background writer: random page writes at a steady rate.
    Background,
}

impl Class {
    /// All classes, in the order of tables and files.
    pub const ALL: [Class; 4] = [Class::Scan, Class::Point, Class::Wal, Class::Background];

    /// The name in profiles, files and on the screen.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Scan => "scan",
            Class::Point => "point",
            Class::Wal => "wal",
            Class::Background => "background",
        }
    }

    /// The position in [`Class::ALL`] and in every array with one item per class.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the class writes.
    pub const fn writes(self) -> bool {
        matches!(self, Class::Wal | Class::Background)
    }
}

/// One item per class as an object in files, `{"scan": …, "point": …, "wal": …, "background": …}`: for
/// `#[serde(with = "…::by_name")]`. Arrays of four, as written by older versions, are read as well.
pub mod by_name {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// The object.
    #[derive(Serialize, Deserialize)]
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    pub struct ByName<T> {
        scan: T,
        point: T,
        wal: T,
        background: T,
    }

    /// Writes the items of [`super::Class::ALL`] under their names.
    pub fn serialize<T: Serialize, S: Serializer>(items: &[T; 4], to: S) -> Result<S::Ok, S::Error> {
        let [scan, point, wal, background] = items;
        ByName { scan, point, wal, background }.serialize(to)
    }

    /// Reads them; an object without one of the classes is refused.
    pub fn deserialize<'a, T: Deserialize<'a>, D: Deserializer<'a>>(from: D) -> Result<[T; 4], D::Error> {
        let ByName { scan, point, wal, background } = ByName::deserialize(from)?;
        Ok([scan, point, wal, background])
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Counts {
        #[serde(with = "super::by_name")]
        ios: [u64; 4],
    }

    #[test]
    fn items_are_written_by_name_and_read_from_older_arrays_too() {
        let counts = Counts { ios: [1, 2, 3, 4] };
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(text, r#"{"ios":{"scan":1,"point":2,"wal":3,"background":4}}"#);
        let read = |text: &str| serde_json::from_str::<Counts>(text);
        assert_eq!(read(&text).unwrap(), counts);
        assert_eq!(read(r#"{"ios":[1,2,3,4]}"#).unwrap(), counts);
        assert!(read(r#"{"ios":{"scan":1,"point":2,"wal":3}}"#).is_err());
    }
}
