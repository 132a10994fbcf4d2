#![no_main]

stacktune_fuzz::fuzz!("trace");
