//! What is to be run: the operator's choices, as TOML and as values.
//!
//! Enters: profiles (TOML), `--set`, turns of knobs. Leaves: [`profile::Settings`], and what each
//! class is to do ([`plan`]).
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`knobs`] | the one table of everything that can be turned | profile |
//! | [`profile`] | settings; TOML to settings and back; built-in and saved profiles | knobs |
//! | [`plan`] | settings to class plans; what changes between two of them | profile |

pub mod knobs;
pub mod plan;
pub mod profile;
