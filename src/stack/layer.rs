//! A command layer, made by the commands of a profile: its commands with the devices below, as they are
//! shown, journaled and run.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::devices::BlockDevice;
use super::id::StackId;
use super::runner::{Runner, failure_of, quoted};
use crate::error::{Error, Result};
use crate::settings::values::layer::{Part, parts};
use crate::settings::{self};

/// A layer of a stack.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Its name in the profile.
    pub name: String,
    /// The commands that make it.
    pub up: Vec<LayerCommand>,
    /// What it leaves, and how it is taken down.
    pub made: LayerMade,
}

/// What a layer leaves, and how it is taken down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerMade {
    /// The path of its device, with the stack's id.
    pub path: PathBuf,
    /// The devices below.
    pub below: Vec<BlockDevice>,
    /// The commands that take it down.
    pub down: Vec<LayerCommand>,
}

/// A command of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerCommand {
    /// A program in the system's folders.
    pub program: String,
    /// Its arguments.
    pub words: Vec<LayerWord>,
}

/// A word of such a command: its parts, joined.
pub type LayerWord = Vec<LayerPart>;

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerPart {
    /// Literal text.
    Text(String),
    /// The node of a device below.
    Device(BlockDevice),
}

impl Layer {
    /// A profile's layer on these devices.
    ///
    /// # Errors
    /// Input if its commands take one device and several are below.
    pub fn of(layer: &settings::Layer, below: &[BlockDevice], id: &StackId) -> Result<Self> {
        if below.len() > 1 && layer.takes_one() {
            let what = format!(
                "the layer `{}` takes one device, `{{device}}`, but {} are below it",
                layer.name,
                below.len()
            );
            return Err(Error::input(what).hint(
                "use `{devices}`, set stack.raid, or add a layer below that combines them into one device",
            ));
        }
        let command = |words: &Vec<String>| LayerCommand::of(words, below, id);
        let commands = |all: &[Vec<String>]| all.iter().map(command).collect::<Result<Vec<_>>>();
        let path = one_word(&layer.device, below, id)?;
        let path = path.iter().map(|part| match part {
            LayerPart::Text(text) => text.as_str(),
            LayerPart::Device(_) => "",
        });
        let made = LayerMade {
            path: path.collect::<String>().into(),
            below: below.to_vec(),
            down: commands(&layer.down)?,
        };
        Ok(Self { name: layer.name.clone(), up: commands(&layer.up)?, made })
    }
}

impl LayerMade {
    /// Its device.
    pub fn device(&self) -> BlockDevice {
        BlockDevice::Layer { path: self.path.clone() }
    }

    /// The commands that take it down, as typed.
    pub fn down_in_words(&self) -> String {
        let down: Vec<String> = self.down.iter().map(ToString::to_string).collect();
        down.join("; ")
    }

    /// Whether its device and each of its commands name the stack or a device of it: a journal that says
    /// otherwise is not trusted.
    pub(crate) fn is_of(&self, id: &StackId) -> bool {
        let path = self.path.to_string_lossy();
        let is_own =
            id.is_sound() && path.starts_with("/dev/") && path.contains(&id.0) && !path.contains("/../");
        is_own && self.down.iter().all(|command| command.is_of(id))
    }
}

fn one_word(word: &str, below: &[BlockDevice], id: &StackId) -> Result<LayerWord> {
    let parts = parts(word).map_err(|why| Error::input(format!("a layer's word `{word}` {why}")))?;
    let part = |part| match part {
        Part::Text(text) => vec![LayerPart::Text(text)],
        Part::Id => vec![LayerPart::Text(id.0.clone())],
        Part::Count => vec![LayerPart::Text(below.len().to_string())],
        Part::Device | Part::Devices => below.iter().cloned().map(LayerPart::Device).collect(),
    };
    Ok(parts.into_iter().flat_map(part).collect())
}

impl LayerCommand {
    fn of(words: &[String], below: &[BlockDevice], id: &StackId) -> Result<Self> {
        let (program, words) =
            words.split_first().ok_or_else(|| Error::input("a layer's command is empty"))?;
        let mut all = Vec::new();
        for word in words {
            let parts = one_word(word, below, id)?;
            if word == "{devices}" {
                all.extend(parts.into_iter().map(|part| vec![part]));
            } else {
                all.push(parts);
            }
        }
        Ok(Self { program: program.clone(), words: all })
    }

    fn is_of(&self, id: &StackId) -> bool {
        let names = |part: &LayerPart| match part {
            LayerPart::Text(text) => text.contains(&id.0),
            LayerPart::Device(_) => true,
        };
        !self.program.contains('/') && self.words.iter().flatten().any(names)
    }

    /// As typed, with the current nodes of its devices; none if it takes devices and none of them has a node.
    pub(crate) fn typed(&self, node: impl Fn(&BlockDevice) -> Option<PathBuf>) -> Option<String> {
        let words = self.words(|device| Ok(node(device))).ok().flatten()?;
        let words = words.iter().map(|word| quoted(word));
        Some(std::iter::once(self.program.clone()).chain(words).collect::<Vec<_>>().join(" "))
    }

    /// Its arguments, with nodes for devices. A word with a device that has no node is left out; none if no
    /// device of the command has one: without its devices, the command could do anything.
    fn words(&self, node: impl Fn(&BlockDevice) -> Result<Option<PathBuf>>) -> Result<Option<Vec<OsString>>> {
        let (mut words, mut found, mut lacking) = (Vec::new(), false, false);
        'words: for parts in &self.words {
            let mut word = OsString::new();
            for part in parts {
                match part {
                    LayerPart::Text(text) => word.push(text),
                    LayerPart::Device(device) => {
                        let Some(node) = node(device)? else {
                            lacking = true;
                            continue 'words;
                        };
                        found = true;
                        word.push(node);
                    }
                }
            }
            words.push(word);
        }
        Ok((found || !lacking).then_some(words))
    }

    /// Runs it on the nodes of its devices. A word with a device that has no node is left out; if no device
    /// has one, the command is not run.
    ///
    /// # Errors
    /// If it can't be run, or exits with a status other than 0.
    pub(crate) fn run(
        &self,
        runner: &Runner,
        node: impl Fn(&BlockDevice) -> Result<Option<PathBuf>>,
    ) -> Result<()> {
        let Some(words) = self.words(node)? else { return Ok(()) };
        let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        let answer = runner.run_named(&self.program, &words)?;
        if answer.status == 0 { Ok(()) } else { Err(failure_of(&self.program, &words, &answer)) }
    }
}

impl fmt::Display for LayerCommand {
    /// As typed in a shell; a placeholder for an unknown node is in angle brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        for parts in &self.words {
            let word: String = parts
                .iter()
                .map(|part| match part {
                    LayerPart::Text(text) => text.clone(),
                    LayerPart::Device(device) => device.shown(),
                })
                .collect();
            // A node is already quoted, and a placeholder needs no quotes.
            match parts.as_slice() {
                [LayerPart::Device(_)] => write!(f, " {word}")?,
                _ => write!(f, " {}", quoted(OsStr::new(&word)))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn id() -> StackId {
        StackId("0123456789abcdef".into())
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn lvm() -> settings::Layer {
        settings::Layer {
            name: "lvm".into(),
            up: vec![words("pvcreate --yes {devices}"), words("lvcreate --stripes={count} st{id}")],
            down: vec![words("vgremove --yes st{id}"), words("pvremove {devices}")],
            device: "/dev/mapper/st{id}-data".into(),
        }
    }

    fn loops(count: usize) -> Vec<BlockDevice> {
        (0..count).map(|n| BlockDevice::Loop { file: format!("/s/loop-{n}.img").into() }).collect()
    }

    #[test]
    fn placeholders_become_the_devices_below_and_the_stacks_id() {
        let layer = Layer::of(&lvm(), &loops(2), &id()).unwrap();
        let up: Vec<_> = layer.up.iter().map(ToString::to_string).collect();
        assert_eq!(
            up,
            [
                "pvcreate --yes <loop of loop-0.img> <loop of loop-1.img>",
                "lvcreate --stripes=2 st0123456789abcdef"
            ]
        );
        assert_eq!(layer.made.path, PathBuf::from("/dev/mapper/st0123456789abcdef-data"));
        assert!(layer.made.is_of(&id()));
        assert!(!layer.made.is_of(&StackId("0123456789abcdee".into())));
        let foreign = LayerMade {
            down: vec![LayerCommand {
                program: "vgremove".into(),
                words: vec![vec![LayerPart::Text("vg0".into())]],
            }],
            ..layer.made.clone()
        };
        assert!(!foreign.is_of(&id()));
        assert!(!LayerMade { path: "/dev/sda".into(), ..layer.made }.is_of(&id()));
    }

    #[test]
    fn one_device_is_not_several() {
        let one = settings::Layer { up: vec![words("cryptsetup open {device} c{id}")], ..lvm() };
        assert!(Layer::of(&one, &loops(1), &id()).is_ok());
        let error = Layer::of(&one, &loops(2), &id()).unwrap_err();
        assert!(error.exit_status() == 2 && error.what.contains("2 are below it"), "{error}");
    }

    #[test]
    fn a_command_gets_its_words_as_they_are_and_no_shell_reads_them() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("note");
        fs::write(
            &program,
            format!(
                "#!/bin/sh\nfor word; do echo \"$word\" >>{}/said; done\nexit $#\n",
                dir.path().display()
            ),
        )
        .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let runner = Runner::in_folders(vec![dir.path().to_owned()]);
        let command = |text: &[&str]| {
            let words: Vec<String> = text.iter().map(ToString::to_string).collect();
            LayerCommand::of(&words, &loops(2), &id()).unwrap()
        };
        let known = |device: &BlockDevice| Ok((*device == loops(2)[0]).then(|| PathBuf::from("/dev/loop7")));
        let error =
            command(&["note", "$(reboot); '", "on={id}", "{devices}"]).run(&runner, known).unwrap_err();
        assert!(error.what.contains("failed with exit status 3"), "the missing device is left out: {error}");
        let said = fs::read_to_string(dir.path().join("said")).unwrap();
        assert_eq!(said, "$(reboot); '\non=0123456789abcdef\n/dev/loop7\n");
        assert!(command(&["note"]).run(&runner, known).is_ok());
        assert!(command(&["note", "{devices}"]).run(&runner, |_| Ok(None)).is_ok(), "it is not run");
        let missing = command(&["no-such", "{id}"]).run(&runner, known).unwrap_err();
        assert!(missing.exit_status() == 3 && missing.what.contains("no-such, which a layer"), "{missing}");
    }

    #[test]
    fn it_is_the_same_out_of_the_journal() {
        let made = Layer::of(&lvm(), &loops(2), &id()).unwrap().made;
        let text = serde_json::to_string(&made).unwrap();
        assert_eq!(serde_json::from_str::<LayerMade>(&text).unwrap(), made);
    }
}
