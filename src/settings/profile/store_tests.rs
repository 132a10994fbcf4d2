//! The store, on a temporary folder.

use super::*;
use crate::settings::Settings;

fn store() -> (tempfile::TempDir, ProfileFolder) {
    let folder = tempfile::tempdir().unwrap();
    let store = ProfileFolder { folder: Some(folder.path().join("stacktune/profiles")) };
    (folder, store)
}

fn named(about: &str) -> Profile {
    Settings { about: about.into(), ..Settings::default() }.into()
}

#[test]
fn a_saved_profile_is_found_by_name_by_path_and_in_the_list() {
    let (_folder, store) = store();
    let path = store.save(&named("mine"), "my-disk_2.1", false).unwrap();
    let expected = Settings { name: "my-disk_2.1".into(), ..named("mine").settings }.into();
    assert_eq!(store.load("my-disk_2.1").unwrap(), expected);
    assert_eq!(store.load(path.to_str().unwrap()).unwrap(), expected);
    let list = store.list().unwrap();
    assert_eq!(list.len(), BUILTIN.len() + 1);
    assert_eq!((list[0].name.as_str(), list[0].about.as_str()), ("my-disk_2.1", "mine"));
    assert_eq!(list[0].source, Source::File(path));
    assert!(list[1..].iter().all(|entry| entry.source == Source::BuiltIn));
}

#[test]
fn an_existing_profile_is_replaced_only_on_request() {
    let (_folder, store) = store();
    store.save(&named("first"), "mine", false).unwrap();
    let error = store.save(&named("second"), "mine", false).unwrap_err();
    assert_eq!(error.exit_status(), 3);
    assert_eq!(store.load("mine").unwrap().settings.about, "first");
    let path = store.save(&named("second"), "mine", true).unwrap();
    assert_eq!(store.load("mine").unwrap().settings.about, "second");
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "a temporary file was left: {left:?}");
}

#[test]
fn a_users_profile_can_replace_a_built_in_one() {
    let (_folder, store) = store();
    assert_eq!(store.save(&named("mine"), "demo", false).unwrap_err().exit_status(), 3);
    store.save(&named("mine"), "demo", true).unwrap();
    assert_eq!(store.load("demo").unwrap().settings.about, "mine");
    let demos: Vec<_> = store.list().unwrap().into_iter().filter(|e| e.name == "demo").collect();
    assert_eq!(demos.len(), 1);
    assert!(matches!(demos[0].source, Source::File(_)));
    assert_ne!(builtin("demo").unwrap().settings.about, "mine");
}

#[test]
fn a_broken_file_is_listed_with_its_mistake_and_not_replaced_by_the_built_in_one() {
    let (_folder, store) = store();
    let path = store.save(&named("mine"), "demo", true).unwrap();
    fs::write(&path, "name = \"demo\"\nabuot = 1\n").unwrap();
    let entry = store.list().unwrap().into_iter().find(|e| e.name == "demo").unwrap();
    let expected = format!("{}:2:1: there is no `abuot`; did you mean `about`?", path.display());
    assert_eq!(entry.error.as_deref(), Some(expected.as_str()));
    assert_eq!(store.load("demo").unwrap_err().what, expected);
    fs::write(&path, b"name = \"\xff\"").unwrap();
    let what = store.load("demo").unwrap_err().what;
    assert_eq!(what, format!("{}:1:9: this is not text (UTF-8 was expected)", path.display()));
}

#[test]
fn an_unknown_name_gets_the_closest_of_both_kinds() {
    let (_folder, store) = store();
    store.save(&named(""), "nightly", false).unwrap();
    let what = |name| store.load(name).unwrap_err().what;
    assert_eq!(what("dmeo"), "there is no profile `dmeo`; did you mean `demo`?");
    assert_eq!(what("nigthly"), "there is no profile `nigthly`; did you mean `nightly`?");
    assert_eq!(what("qqqqqqqqqqqq"), "there is no profile `qqqqqqqqqqqq`");
    let error = store.load("./missing.toml").unwrap_err();
    assert_eq!(error.what, "cannot read ./missing.toml: no such file or directory (ENOENT)");
    assert_eq!(error.exit_status(), 2);
    assert_eq!(store.load("/dev/zero").unwrap_err().what, "cannot read /dev/zero: it is not a regular file");
}

#[test]
fn names_that_would_leave_the_folder_or_hide_are_refused() {
    let (folder, store) = store();
    for wrong in ["", ".hidden", "../up", "a/b", "a b", "x.toml", "-x", "tab\t", &"x".repeat(101)] {
        assert_eq!(store.save(&named(""), wrong, true).unwrap_err().exit_status(), 2, "{wrong:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_profile_that_could_not_be_loaded_again_is_not_saved() {
    let (_folder, store) = store();
    assert!(store.save(&named("two\nlines"), "mine", false).is_err());
    assert!(store.load("mine").is_err());
}

#[test]
fn the_folder_follows_the_environment() {
    let folder = |vars: &'static [(&str, &str)]| {
        ProfileFolder::from_env(|key| vars.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).into())).folder
    };
    let expected = |path: &str| Some(PathBuf::from(path));
    assert_eq!(folder(&[("HOME", "/home/a")]), expected("/home/a/.config/stacktune/profiles"));
    assert_eq!(
        folder(&[("HOME", "/home/a"), ("XDG_CONFIG_HOME", "/etc/xdg")]),
        expected("/etc/xdg/stacktune/profiles")
    );
    // The XDG specification says to ignore relative paths.
    assert_eq!(
        folder(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "x")]),
        expected("/h/.config/stacktune/profiles")
    );
    assert_eq!(folder(&[("HOME", "")]), None);
}

#[test]
fn without_a_home_the_built_in_profiles_remain_and_saving_fails() {
    let store = ProfileFolder { folder: None };
    assert_eq!(store.list().unwrap().len(), BUILTIN.len());
    assert_eq!(store.load("demo").unwrap().settings.name, "demo");
    let error = store.save(&named(""), "mine", false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot save `mine`: there is no home folder: HOME is not set to an absolute path\n  set HOME or XDG_CONFIG_HOME"
    );
}

#[test]
fn what_is_no_profile_in_the_place_of_one_is_named() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let (_folder, store) = store();
    let path = store.save(&named("mine"), "mine", false).unwrap();
    let fifo = path.with_file_name("fifo.toml");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let error = store.load("fifo").unwrap_err();
    assert!(error.what.ends_with("fifo.toml: it is not a regular file"), "{error}");
    assert!(store.knows("fifo") && !store.knows("fife"));
}
