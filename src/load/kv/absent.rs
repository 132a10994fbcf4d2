//! A build without `RocksDB`: the same types, without values, and the error that says so.

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::acks::Losses;
use super::built::absent;
use super::{DataSet, PairsReport};
use crate::error::Result;
use crate::load::volume::Progress;
use crate::meter::counts::engine::EngineFigures;
use crate::settings::jobs::OpenedWith;
use crate::settings::{Kv, Rocksdb};

/// Has no values.
pub struct Store(Infallible);

/// Has no values.
pub struct Handle(Infallible);

/// Has no values.
pub struct Scanner<'a>(Infallible, std::marker::PhantomData<&'a ()>);

#[allow(missing_docs, clippy::unused_self)]
impl Store {
    pub fn open(_: &Path, _: &Kv, _: bool) -> Result<(Self, Vec<String>)> {
        Err(absent())
    }

    pub fn bytes_to_begin(_: &Path, _: &Kv, _: bool) -> Result<u64> {
        Err(absent())
    }

    pub fn data(&self) -> DataSet {
        match self.0 {}
    }

    pub fn set(&self) -> u64 {
        match self.0 {}
    }

    pub fn sequence_base(&self) -> u64 {
        match self.0 {}
    }

    pub fn dir(&self) -> &Path {
        match self.0 {}
    }

    pub fn stored_bytes(&self) -> u64 {
        match self.0 {}
    }

    pub fn handle(&self) -> Result<Handle> {
        match self.0 {}
    }

    pub fn next_logged(&self, _: u64) -> (u64, u64) {
        match self.0 {}
    }

    pub fn note(&self, _: u64, _: u64) -> std::result::Result<(), i32> {
        match self.0 {}
    }

    pub fn put_failed(&self, _: i32) {
        match self.0 {}
    }

    pub fn failing(&self) -> Option<i32> {
        match self.0 {}
    }

    pub fn take_full(&self) -> bool {
        match self.0 {}
    }

    pub fn opened_with(&self) -> Option<OpenedWith> {
        match self.0 {}
    }

    pub fn turn(&self, _: &Rocksdb) -> std::result::Result<(), String> {
        match self.0 {}
    }

    pub fn reopen(&self, _: &Rocksdb) -> Result<()> {
        match self.0 {}
    }

    pub fn count_anew(&self) -> Result<()> {
        match self.0 {}
    }

    pub fn figures(&self) -> Option<EngineFigures> {
        match self.0 {}
    }

    pub fn free_bytes(&self) -> u64 {
        match self.0 {}
    }

    pub fn count_losses(&self) -> Result<Option<Losses>> {
        match self.0 {}
    }

    pub fn missing_bytes(&self) -> Option<u64> {
        match self.0 {}
    }

    pub fn load(&self, _: &mut dyn FnMut(Progress), _: &AtomicBool) -> Result<bool> {
        match self.0 {}
    }

    pub fn verify(&self, _: &mut dyn FnMut(Progress), _: &AtomicBool) -> Result<PairsReport> {
        match self.0 {}
    }
}

#[allow(missing_docs, clippy::unused_self)]
impl Handle {
    pub fn get(&self, _: &[u8]) -> std::result::Result<Option<usize>, i32> {
        match self.0 {}
    }

    pub fn put(&self, _: &[u8], _: &[u8], _: bool) -> std::result::Result<(), i32> {
        match self.0 {}
    }

    pub fn sync(&self) -> std::result::Result<(), i32> {
        match self.0 {}
    }

    pub fn scanner(&self) -> Scanner<'_> {
        match self.0 {}
    }
}

#[allow(missing_docs, clippy::unused_self)]
impl Scanner<'_> {
    pub fn range(&mut self, _: &[u8], _: u64) -> std::result::Result<(u64, u64), i32> {
        match self.0 {}
    }

    pub fn go_on(&mut self, _: &[u8], _: u64) -> std::result::Result<(u64, u64), i32> {
        match self.0 {}
    }
}
