//! A layer of a stack that the profile's own commands make: for what stacktune doesn't know.

/// The most layers of a stack.
pub const LAYERS_MAX: usize = 8;
/// The most commands of a layer, in each direction.
pub const COMMANDS_MAX: usize = 16;
/// The most words of a command.
pub const WORDS_MAX: usize = 64;
/// The most bytes of a word.
pub const WORD_BYTES_MAX: usize = 4096;

/// A layer that commands build on what is below it, `[[stack.layer]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Its name in plans and recordings.
    pub name: String,
    /// The commands that make it, each a program and its arguments, with placeholders.
    pub up: Vec<Vec<String>>,
    /// The commands that remove it, whether it was made or only begun.
    pub down: Vec<Vec<String>>,
    /// The node of the resulting block device, with the stack's id in it.
    pub device: String,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Literal text.
    Text(String),
    /// `{id}`: the stack's id, 16 hexadecimal digits.
    Id,
    /// `{count}`: how many devices are below.
    Count,
    /// `{device}`: the device below, if it is a single one.
    Device,
    /// `{devices}`: all devices below, each a word of its own.
    Devices,
}

/// The placeholders.
const PLACEHOLDERS: [(&str, Part); 4] =
    [("id", Part::Id), ("count", Part::Count), ("device", Part::Device), ("devices", Part::Devices)];

/// The parts of a word.
///
/// # Errors
/// What is wrong with it, as the rest of a sentence about it.
pub fn parts(word: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find(['{', '}']) {
        let (text, from) = rest.split_at(at);
        if !text.is_empty() {
            parts.push(Part::Text(text.to_owned()));
        }
        let inside = from.strip_prefix('{').and_then(|from| from.split_once('}'));
        let known = inside.and_then(|(name, rest)| {
            let (_, part) = PLACEHOLDERS.iter().find(|(known, _)| *known == name)?;
            Some((part.clone(), rest))
        });
        let Some((part, after)) = known else {
            return Err(
                "has a brace that is not part of a placeholder; placeholders are `{devices}`, `{device}`, \
                        `{count}` and `{id}`"
                    .to_owned(),
            );
        };
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    if parts.len() > 1 && parts.contains(&Part::Devices) {
        return Err("has `{devices}` next to other text: it must be a word of its own".to_owned());
    }
    Ok(parts)
}

impl Layer {
    /// Whether any of its commands takes the one device below.
    pub fn takes_one(&self) -> bool {
        let words = self.up.iter().chain(&self.down).flatten();
        words.into_iter().any(|word| parts(word).is_ok_and(|parts| parts.contains(&Part::Device)))
    }
}

/// Why a command can't be one of a layer's; none if it can.
pub fn wrong_command(words: &[String], must_name: bool) -> Option<String> {
    let Some(program) = words.first() else { return Some("is empty".to_owned()) };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    if program.is_empty() || program.starts_with(['.', '-']) || !program.chars().all(is_name) {
        return Some(format!(
            "must begin with the name of a program in the system's folders, without a path: not `{program}`"
        ));
    }
    if words.len() > WORDS_MAX {
        return Some(format!("has more than {WORDS_MAX} words"));
    }
    let mut named = false;
    for word in &words[1..] {
        if word.len() > WORD_BYTES_MAX {
            return Some(format!("has a word of more than {WORD_BYTES_MAX} bytes"));
        }
        match parts(word) {
            Err(why) => return Some(why),
            Ok(parts) => named |= parts.iter().any(|part| !matches!(part, Part::Text(_) | Part::Count)),
        }
    }
    (must_name && !named).then(|| {
        "must name what it acts on by `{id}`, `{device}` or `{devices}`: it also runs after a crash, and may touch \
         nothing that is another's"
            .to_owned()
    })
}

/// Why a path can't be that of a layer's device; none if it can.
pub fn wrong_device(path: &str) -> Option<String> {
    let goes_up = path.split('/').any(|part| part == "..");
    if !path.starts_with("/dev/") || goes_up || path.len() > WORD_BYTES_MAX {
        return Some("must be a path in /dev".to_owned());
    }
    match parts(path) {
        Err(why) => Some(why),
        Ok(parts) if parts.iter().any(|part| !matches!(part, Part::Text(_) | Part::Id)) => {
            Some("may have no placeholder other than `{id}`".to_owned())
        }
        Ok(parts) if !parts.contains(&Part::Id) => {
            Some("must have `{id}` in it, so that it belongs to this stack alone".to_owned())
        }
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_text_and_placeholders() {
        let text = |text: &str| Part::Text(text.into());
        assert_eq!(parts("vg-{id}/x").unwrap(), [text("vg-"), Part::Id, text("/x")]);
        assert_eq!(parts("{devices}").unwrap(), [Part::Devices]);
        assert_eq!(parts("0 1 linear {device} 0").unwrap().len(), 3);
        assert_eq!(parts("").unwrap(), []);
        for wrong in ["{", "}", "{name}", "a}b", "{id", "{{id}}"] {
            assert!(parts(wrong).unwrap_err().contains("`{devices}`"), "{wrong}");
        }
        assert!(parts("--pv={devices}").unwrap_err().contains("a word of its own"));
    }

    #[test]
    fn a_command_names_a_program_and_what_it_acts_on() {
        let wrong = |words: &[&str], must_name| {
            wrong_command(&words.iter().map(ToString::to_string).collect::<Vec<_>>(), must_name)
        };
        assert_eq!(wrong(&["vgremove", "--yes", "st-{id}"], true), None);
        assert_eq!(wrong(&["modprobe", "dm-crypt"], false), None);
        assert!(wrong(&["vgremove", "vg0"], true).unwrap().contains("another's"));
        assert!(wrong(&["vgremove", "{count}"], true).unwrap().contains("another's"));
        assert!(wrong(&[], false).unwrap().contains("empty"));
        for program in ["/bin/sh", "../x", "", "-c", "{id}", "a b"] {
            assert!(wrong(&[program, "{id}"], false).unwrap().contains("without a path"), "{program}");
        }
    }

    #[test]
    fn a_device_is_this_stacks_own() {
        assert_eq!(wrong_device("/dev/mapper/st-{id}"), None);
        for wrong in ["/dev/sda", "mapper/{id}", "/dev/../tmp/{id}", "/dev/{id}/{device}", "/dev/{id"] {
            assert!(wrong_device(wrong).is_some(), "{wrong}");
        }
    }
}
