//! With the feature `spdk`: finds the operator's SPDK by pkg-config, compiles the shim against its
//! headers, and links it. With the feature `rocksdb`: notes how RocksDB was compiled.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    rocksdb::note();
    #[cfg(feature = "spdk")]
    if let Err(reason) = spdk::build() {
        println!("cargo:warning={}", reason.replace('\n', " "));
        std::process::exit(1);
    }
}

/// Recordings name how RocksDB was compiled, because its speed depends on it.
mod rocksdb {
    use std::env;
    use std::path::{Path, PathBuf};

    const WATCHED: [&str; 2] = ["ROCKSDB_LIB_DIR", "ROCKSDB_COMPILE"];

    pub fn note() {
        // Given to the build scripts of crates that link librocksdb-sys.
        let Some(sources) = env::var_os("DEP_ROCKSDB_CARGO_MANIFEST_DIR").map(PathBuf::from) else {
            let variables = ["VERSION", "BUILD", "CRC32C"];
            variables.iter().for_each(|name| set(name, ""));
            return;
        };
        WATCHED.iter().for_each(|name| println!("cargo:rerun-if-env-changed={name}"));
        // The folder is named after the crate's version and RocksDB's: librocksdb-sys-0.19.0+11.8.1.
        let name = sources.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        set("VERSION", name.rsplit_once('+').map_or("unknown", |(_, version)| version));
        let compiled_anyway =
            env::var("ROCKSDB_COMPILE").is_ok_and(|v| v == "1" || v.to_lowercase() == "true");
        let (build, crc32c) = match env::var_os("ROCKSDB_LIB_DIR") {
            Some(folder) if !compiled_anyway => library(Path::new(&folder)),
            _ => ("by the crate".to_owned(), by_the_crate().to_owned()),
        };
        set("BUILD", &build);
        set("CRC32C", &crc32c);
    }

    /// What scripts/rocksdb.sh wrote beside the library.
    fn library(folder: &Path) -> (String, String) {
        let note = folder.join("built");
        println!("cargo:rerun-if-changed={}", note.display());
        let text = std::fs::read_to_string(note).unwrap_or_default();
        let mut lines = text.lines();
        let build = lines.next().unwrap_or("a library of the system");
        let crc32c = lines.next().and_then(|line| line.strip_prefix("crc32c ")).unwrap_or("unknown");
        (build.to_owned(), crc32c.to_owned())
    }

    /// What the crate's build script compiles in: by rustc's features, or by .cargo/config.toml.
    fn by_the_crate() -> &'static str {
        let target = env::var("TARGET").unwrap_or_default();
        let flags = format!("CXXFLAGS_{}", target.replace('-', "_"));
        println!("cargo:rerun-if-env-changed={flags}");
        let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
        let has = |wanted: &str| features.split(',').any(|feature| feature == wanted);
        let by_flag = || env::var(flags).is_ok_and(|flags| flags.contains("-msse4.2"));
        match target.split('-').next() {
            Some("x86_64") if has("sse4.2") || by_flag() => "SSE4.2",
            Some("aarch64") if has("crc") && has("aes") => "ARMv8",
            _ => "software",
        }
    }

    fn set(name: &str, value: &str) {
        println!("cargo:rustc-env=STACKTUNE_ROCKSDB_{name}={value}");
    }
}

#[cfg(feature = "spdk")]
mod spdk {
    use std::path::Path;

    const SHIM: &str = "shim/spdk.c";
    /// What the shim calls, and the system's libraries that SPDK was built with: its own files name
    /// neither.
    const PACKAGES: [&str; 3] = ["spdk_nvme", "spdk_env_dpdk", "spdk_syslibs"];
    /// SPDK's own files name the libraries of DPDK that it needs, but not their folder where DPDK was installed by
    /// itself.
    const DPDK: &str = "libdpdk";
    const HELP: &str = "build SPDK 22.09 or later, `make install` it, and let PKG_CONFIG_PATH name the folder \
                        of its spdk_nvme.pc (PREFIX/lib/pkgconfig)";

    pub fn build() -> Result<(), String> {
        println!("cargo:rerun-if-changed={SHIM}");
        println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
        let mut found = Found::default();
        for package in PACKAGES {
            found.add(probe(package).map_err(|error| format!("no {package}: {HELP} ({error})"))?);
        }
        if let Ok(dpdk) = probe(DPDK) {
            add_new(&mut found.includes, dpdk.include_paths);
            add_new(&mut found.folders, dpdk.link_paths);
        }
        for version in found.includes.iter().map(|include| include.join("spdk/version.h")) {
            if version.exists() {
                println!("cargo:rerun-if-changed={}", version.display());
            }
        }
        let mut shim = cc::Build::new();
        shim.file(SHIM).includes(&found.includes).flag_if_supported("-std=gnu11");
        shim.extra_warnings(true).flag_if_supported("-Wno-unused-parameter");
        shim.try_compile("stacktune_spdk").map_err(|error| format!("{SHIM} does not compile: {error}"))?;
        println!("cargo:rustc-env=STACKTUNE_SPDK={}", versions(&found));
        found.link();
        Ok(())
    }

    #[derive(Default)]
    struct Found {
        includes: Vec<std::path::PathBuf>,
        folders: Vec<std::path::PathBuf>,
        libraries: Vec<String>,
        /// Archives by their paths: ISA-L's, which SPDK brings along.
        archives: Vec<std::path::PathBuf>,
    }

    fn probe(package: &str) -> Result<pkg_config::Library, pkg_config::Error> {
        pkg_config::Config::new().cargo_metadata(false).statik(true).probe(package)
    }

    fn add_new<T: PartialEq>(all: &mut Vec<T>, new: Vec<T>) {
        for one in new {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }

    impl Found {
        fn add(&mut self, library: pkg_config::Library) {
            add_new(&mut self.includes, library.include_paths);
            add_new(&mut self.folders, library.link_paths);
            add_new(&mut self.libraries, library.libs);
            add_new(&mut self.archives, library.link_files);
        }

        /// SPDK's transports and DPDK's buses enter themselves at the start of the program, and nothing
        /// names them: archives are taken in as a whole, and shared objects whether or not they seem
        /// needed.
        fn link(&self) {
            let argument = |text: String| println!("cargo:rustc-link-arg={text}");
            let is_theirs = |name: &&String| name.starts_with("spdk_") || name.starts_with("rte_");
            let (theirs, others): (Vec<_>, Vec<_>) = self.libraries.iter().partition(is_theirs);
            let has_shared = self.has(|name| name.starts_with("libspdk_") && name.contains(".so"));
            // DPDK installs both kinds; which of them SPDK was made for shows in SPDK's own.
            let is_archive = |name: &str| !has_shared && self.has(|file| file == format!("lib{name}.a"));
            for folder in &self.folders {
                argument(format!("-L{}", folder.display()));
                if theirs.iter().any(|name| !is_archive(name)) {
                    argument(format!("-Wl,-rpath,{}", folder.display()));
                }
            }
            argument("-Wl,--push-state,--no-as-needed,--whole-archive".to_owned());
            for name in theirs {
                argument(if is_archive(name) { format!("-l:lib{name}.a") } else { format!("-l{name}") });
            }
            argument("-Wl,--no-whole-archive".to_owned());
            self.archives.iter().for_each(|archive| argument(archive.display().to_string()));
            others.iter().for_each(|name| argument(format!("-l{name}")));
            argument("-Wl,--pop-state".to_owned());
        }

        /// Whether one of the folders of libraries has such a file.
        fn has(&self, is_it: impl Fn(&str) -> bool) -> bool {
            let mut entries =
                self.folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
            entries.any(|entry| entry.is_ok_and(|entry| is_it(&entry.file_name().to_string_lossy())))
        }
    }

    /// Both versions, from the headers and pkg-config: `SPDK v24.01, DPDK 23.11.0`.
    fn versions(found: &Found) -> String {
        let spdk = header(found, "spdk/version.h", "SPDK_VERSION_STRING");
        let spdk = spdk.map_or_else(|| "SPDK".to_owned(), |text| text.replace('"', "").replace(' ', ""));
        let spdk = spdk.trim_start_matches("SPDK").to_owned();
        let part = |name: &str| header(found, "rte_build_config.h", name)?.parse::<u32>().ok();
        let of_header = || {
            let (year, month) = (part("RTE_VER_YEAR")?, part("RTE_VER_MONTH")?);
            Some(format!("{year}.{month:02}.{}", part("RTE_VER_MINOR")?))
        };
        let of_package = || probe(DPDK).ok().map(|package| package.version);
        let dpdk = of_header().or_else(of_package).unwrap_or_else(|| "of an unknown version".to_owned());
        format!("SPDK {spdk}, DPDK {dpdk}")
    }

    /// What a macro of a header stands for.
    fn header(found: &Found, header: &str, name: &str) -> Option<String> {
        let folder = std::env::var("OUT_DIR").ok()?;
        let file = Path::new(&folder).join("version.c");
        std::fs::write(&file, format!("#include <{header}>\nstacktune_wants {name}\n")).ok()?;
        let beside = found.folders.iter().map(|folder| folder.join("../include"));
        let dpdk = beside.clone().map(|folder| folder.join("dpdk"));
        let mut compiler = cc::Build::new();
        compiler.file(file).includes(&found.includes).includes(beside).includes(dpdk).warnings(false);
        compiler.cargo_metadata(false).cargo_warnings(false);
        let text = String::from_utf8(compiler.try_expand().ok()?).ok()?;
        // An expansion may go over several lines.
        let after = text.split("stacktune_wants").nth(1)?;
        let words: Vec<&str> = after.lines().filter(|line| !line.starts_with('#')).map(str::trim).collect();
        Some(words.concat()).filter(|text| !text.is_empty() && text != name)
    }
}
