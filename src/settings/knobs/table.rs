//! Every table of profiles, and the knobs in it.

use super::spec::Spec;
use super::{classes, io, kv, md, polling, queue, rocksdb, run, stack, target, wal};
use crate::class::Class;

/// Prefix, class and knobs of each of the profile's tables.
pub(super) const SECTIONS: &[(&str, Option<Class>, &[Spec])] = &[
    ("target", None, target::TARGET),
    ("stack", None, stack::STACK),
    ("load", None, kv::LOAD),
    ("kv", None, kv::PAIRS),
    ("rocksdb", None, rocksdb::ROCKSDB),
    ("io", None, io::IO),
    ("io", None, polling::POLLING),
    ("scan", Some(Class::Scan), classes::CLASS),
    ("scan", Some(Class::Scan), classes::RANDOM),
    ("scan", Some(Class::Scan), kv::SCAN),
    ("point", Some(Class::Point), classes::CLASS),
    ("point", Some(Class::Point), classes::RANDOM),
    ("point", Some(Class::Point), kv::POINT),
    ("wal", Some(Class::Wal), classes::CLASS),
    ("wal", Some(Class::Wal), wal::WAL),
    ("wal", Some(Class::Wal), kv::WAL),
    ("background", Some(Class::Background), classes::CLASS),
    ("background", Some(Class::Background), classes::RANDOM),
    ("background", Some(Class::Background), classes::BACKGROUND),
    ("background", Some(Class::Background), kv::BACKGROUND),
    ("queue", None, queue::QUEUE),
    ("md", None, md::MD),
    ("run", None, run::RUN),
    ("sim", None, run::SIM),
];
