//! A profile's layers that commands make, to TOML.

use std::fmt::Write;

use crate::settings::values::Layer;

/// The tables of the layers; parsed again they give the same layers.
pub(super) fn push(text: &mut String, layers: &[Layer]) {
    for Layer { name, up, down, device } in layers {
        let _ = writeln!(text, "\n[[stack.layer]]\nname = {}", toml::Value::from(name.as_str()));
        for (key, commands) in [("up", up), ("down", down)] {
            let _ = writeln!(text, "{key} = [");
            for command in commands {
                let words: Vec<_> =
                    command.iter().map(|word| toml::Value::from(word.as_str()).to_string()).collect();
                let _ = writeln!(text, "    [{}],", words.join(", "));
            }
            text.push_str("]\n");
        }
        let _ = writeln!(text, "device = {}", toml::Value::from(device.as_str()));
    }
}
