//! A profile's layers that commands make, from TOML: `[[stack.layer]]`.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::parse::{Walk, list};
use crate::printable;
use crate::settings::knobs::nearest_of;
use crate::settings::values::layer::{COMMANDS_MAX, LAYERS_MAX, Layer, wrong_command, wrong_device};

/// The keys of a layer.
const KEYS: [&str; 4] = ["name", "up", "down", "device"];
/// The most characters in a layer's name.
const NAME_CHARS_MAX: usize = 40;

impl Walk<'_> {
    /// The layers in the document, the lowest first.
    pub fn layers(&mut self, root: &DeTable) -> Vec<Layer> {
        let stack = value_at(root, "stack").and_then(|stack| stack.get_ref().as_table());
        let Some(value) = stack.and_then(|stack| value_at(stack, "layer")) else { return Vec::new() };
        let items =
            value.get_ref().as_array().filter(|items| items.iter().all(|item| item.get_ref().is_table()));
        let Some(items) = items else {
            let what = format!("`stack.layer` must be written as [[stack.layer]] with {}", list(&KEYS));
            self.refuse(value.span().start, what);
            return Vec::new();
        };
        if items.len() > LAYERS_MAX {
            self.refuse(value.span().start, format!("a stack has {LAYERS_MAX} layers by commands at most"));
            return Vec::new();
        }
        let layers: Vec<Layer> = items.iter().filter_map(|item| self.layer(item)).collect();
        for (number, layer) in layers.iter().enumerate() {
            if layers[..number].iter().any(|other| other.device == layer.device || other.name == layer.name) {
                let what = format!("two layers have the name `{}` or the same device", layer.name);
                self.refuse(items[number].span().start, what);
            }
        }
        layers
    }

    fn layer(&mut self, item: &Spanned<DeValue>) -> Option<Layer> {
        let table = item.get_ref().as_table()?;
        let (mut name, mut up, mut down, mut device) = (None, None, None, None);
        for (key, value) in table {
            match &**key.get_ref() {
                "name" => name = Some(self.layer_name(value)?),
                "device" => device = Some(self.layer_device(value)?),
                "up" => up = Some(self.commands("up", value)?),
                "down" => down = Some(self.commands("down", value)?),
                other => {
                    let meant = nearest_of(other, KEYS.into_iter());
                    let meant = meant.map_or_else(
                        || format!("a layer has {}", list(&KEYS)),
                        |near| format!("did you mean `{near}`?"),
                    );
                    let what = format!("a layer has no `{}`; {meant}", other.escape_debug());
                    self.refuse(key.span().start, what);
                    return None;
                }
            }
        }
        let (Some(up), Some(down), Some(device)) = (up, down, device) else {
            let what = "a layer needs `up`, `down` and `device`: the commands that make it, those that take it away, \
                        and the block device that results";
            self.refuse(item.span().start, what);
            return None;
        };
        let name = name.unwrap_or_else(|| up[0][0].clone());
        Some(Layer { name, up, down, device })
    }

    fn layer_name(&mut self, value: &Spanned<DeValue>) -> Option<String> {
        let name = self.line("stack.layer.name", value)?;
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
            self.refuse(value.span().start, format!("a layer's name has 1 to {NAME_CHARS_MAX} characters"));
            return None;
        }
        Some(name)
    }

    fn layer_device(&mut self, value: &Spanned<DeValue>) -> Option<String> {
        let device = self.line("stack.layer.device", value)?;
        match wrong_device(&device) {
            None => Some(device),
            Some(why) => {
                self.refuse(value.span().start, format!("`stack.layer.device` {why}"));
                None
            }
        }
    }

    /// One command, or a list of several.
    fn commands(&mut self, key: &str, value: &Spanned<DeValue>) -> Option<Vec<Vec<String>>> {
        let words = |items: &DeArray| -> Option<Vec<String>> {
            let text = |item: &Spanned<DeValue>| item.get_ref().as_str().map(str::to_owned);
            items.iter().map(text).collect::<Option<_>>().filter(|words: &Vec<String>| !words.is_empty())
        };
        let items = value.get_ref().as_array();
        let lists = |items: &DeArray| -> Option<Vec<Vec<String>>> {
            items.iter().map(|item| words(item.get_ref().as_array()?)).collect()
        };
        let commands = items.and_then(|items| words(items).map(|one| vec![one]).or_else(|| lists(items)));
        let Some(commands) = commands.filter(|commands| (1..=COMMANDS_MAX).contains(&commands.len())) else {
            let what = format!(
                "`stack.layer.{key}` must be a command or a list of 1 to {COMMANDS_MAX}, each a list of words such as \
                 [\"dmsetup\", \"remove\", \"x-{{id}}\"]: no shell reads them"
            );
            self.refuse(value.span().start, what);
            return None;
        };
        for command in &commands {
            let odd = command.iter().any(|word| !printable::is_line(word));
            let odd = odd.then(|| "has a line break or a character that can't be shown".to_owned());
            if let Some(why) = odd.or_else(|| wrong_command(command, key == "down")) {
                let command = printable::line(&command.join(" ")).into_owned();
                self.refuse(value.span().start, format!("`stack.layer.{key}`: `{command}` {why}"));
                return None;
            }
        }
        Some(commands)
    }
}

pub(super) fn value_at<'t, 'i>(table: &'t DeTable<'i>, wanted: &str) -> Option<&'t Spanned<DeValue<'i>>> {
    table.iter().find(|(key, _)| key.get_ref() == wanted).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::settings::profile::{parse, to_toml};

    const LVM: &str = r#"
[[stack.layer]]
name = "lvm"
up = [["pvcreate", "--yes", "{devices}"], ["lvcreate", "--name=data", "st{id}"]]
down = [["vgremove", "--yes", "st{id}"], ["pvremove", "{devices}"]]
device = "/dev/mapper/st{id}-data"
"#;
    const CRYPT: &str = r#"
[[stack.layer]]
up = ["cryptsetup", "open", "{device}", "c{id}"]
down = ["cryptsetup", "close", "c{id}"]
device = "/dev/mapper/c{id}"
"#;

    fn refusal(text: &str) -> String {
        let error = parse(text, "p.toml").unwrap_err();
        assert_eq!(error.kind, Kind::Input);
        error.what
    }

    #[test]
    fn layers_are_read_in_order_and_written_again() {
        let profile = parse(&format!("[stack]\nraid = \"md0\"\n{LVM}{CRYPT}"), "p.toml").unwrap();
        let layers = &profile.settings.stack.by_commands;
        let names: Vec<_> = layers.iter().map(|layer| layer.name.as_str()).collect();
        assert_eq!(names, ["lvm", "cryptsetup"], "named after its first program without a name");
        assert_eq!((layers[0].up.len(), layers[1].down.len()), (2, 1));
        assert!(!layers[0].takes_one() && layers[1].takes_one());
        assert!(profile.settings.stack.is_built());
        assert_eq!(parse(&to_toml(&profile), "p.toml").unwrap(), profile);
        assert!(!to_toml(&parse("", "p.toml").unwrap()).contains("layer"));
    }

    #[test]
    fn a_wrong_layer_is_refused_with_its_place() {
        for (from, to, why) in [
            ("down = [[\"vgremove\", \"--yes\", \"st{id}\"]", "down = [[\"vgremove\", \"vg0\"]", "another's"),
            ("/dev/mapper/st{id}-data", "/dev/sda", "must have `{id}`"),
            ("\"pvcreate\"", "\"/tmp/pvcreate\"", "without a path"),
            ("\"--yes\", \"{devices}\"]", "\"{drives}\"]", "not part of a placeholder"),
            ("name = \"lvm\"", "nome = \"lvm\"", "did you mean `name`?"),
            ("name = \"lvm\"", "name = 7", "a single line of text"),
            ("device = \"/dev/mapper/st{id}-data\"", "", "needs `up`, `down` and `device`"),
            ("\"--name=data\"", "\"a\\nb\"", "a line break"),
        ] {
            assert!(LVM.contains(from), "{from}");
            let what = refusal(&LVM.replace(from, to));
            assert!(what.starts_with("p.toml:") && what.contains(why), "{what}");
        }
        assert!(refusal("[stack]\nlayer = 3").contains("[[stack.layer]]"));
        assert!(refusal("[stack]\nlayer = [3]").contains("[[stack.layer]]"));
        assert!(refusal(&LVM.repeat(2)).contains("two layers"));
        assert!(refusal(&CRYPT.repeat(9)).contains("at most"));
        let shell = LVM.replace("up = [[\"pvcreate\", \"--yes\", \"{devices}\"], ", "up = [\"pvcreate\", ");
        assert!(refusal(&shell).contains("no shell"));
        let odd = "[[step]]\nstack.layer = []\n";
        assert!(refusal(odd).contains("stack.layer"), "a step turns no layers");
    }
}
