//! What is to be run: the operator's choices, as TOML and as values.
//!
//! Enters: profiles (TOML), `--set`, turns of knobs. Leaves: [`profile::Settings`], and what each
//! class is to do ([`plan`]).
//!
//! | module | is about | may import |
//! |---|---|---|
//! | [`named`] | choices of a fixed set, by name | – |
//! | [`interface`] | the interfaces, a row of capabilities for each | named |
//! | [`knobs`] | the one table of everything that can be turned | named, interface, profile |
//! | [`profile`] | settings; TOML to settings and back; built-in and saved profiles | named, interface, knobs |
//! | [`plan`] | settings to class plans; what changes between two of them | interface, profile |

pub mod interface;
pub mod knobs;
pub mod named;
pub mod plan;
pub mod profile;
