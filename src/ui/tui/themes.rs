//! btop's theme files: the colours in them as a palette.

use std::io::ErrorKind;
use std::path::Path;

use ratatui::style::{Color, Style};

use super::theme::{Rgb, Theme};
use crate::error::{Error, Result, describe};
use crate::printable::{self, Shown as _};
use crate::regular_file;

/// The end of a theme's file name.
const EXTENSION: &str = ".theme";
/// Larger than any theme.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The most that are listed.
const FILES_MAX: usize = 200;
const FORM: &str = "theme[NAME]=\"#RRGGBB\"";

/// A theme as the list shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ThemeEntry {
    /// Its name.
    pub name: String,
    /// Its palette, or why it can't be one.
    pub theme: std::result::Result<Theme, String>,
}

/// The themes in a folder, by name; none if there is no such folder.
///
/// # Errors
/// If the folder can't be read.
pub fn list(folder: &Path) -> Result<Vec<ThemeEntry>> {
    let unreadable = |e| Error::os("cannot read the themes in", folder, e);
    let files = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        files => files.map_err(unreadable)?,
    };
    let mut names = Vec::new();
    for file in files {
        let file = file.map_err(unreadable)?.file_name();
        let name = file.to_str().and_then(|name| name.strip_suffix(EXTENSION));
        names.extend(name.filter(|name| can_name(name)).map(str::to_owned));
    }
    names.sort();
    names.truncate(FILES_MAX);
    let entry = |name: String| {
        let theme = read(&folder.join(format!("{name}{EXTENSION}")));
        ThemeEntry { name, theme }
    };
    Ok(names.into_iter().map(entry).collect())
}

/// The theme of that name in a folder.
///
/// # Errors
/// Input if there is none, or it can't be understood.
pub fn find(folder: Option<&Path>, name: &str) -> Result<Theme> {
    let place = folder.map_or_else(|| "the config folder".to_owned(), Path::shown);
    let none = || {
        Error::input(format!("there is no theme `{}`", printable::line(name)))
            .hint(format!("dark, light, 16 and mono are built in; others are btop's files in {place}"))
    };
    let path = folder.filter(|_| can_name(name)).ok_or_else(none)?.join(format!("{name}{EXTENSION}"));
    if path.symlink_metadata().is_err() {
        return Err(none());
    }
    read(&path).map_err(|why| Error::input(format!("{} is not a theme file: {why}", path.shown())))
}

fn can_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/') && printable::is_line(name)
}

/// The palette of a file, or why it has none.
fn read(path: &Path) -> std::result::Result<Theme, String> {
    parse(
        &regular_file::read(path, FILE_BYTES_MAX)
            .map_err(|e| format!("it can't be read: {}", describe(&e)))?,
    )
}

/// The palette in a theme's file; colours for panels that we don't have are ignored.
///
/// # Errors
/// What can't be understood, with its line.
pub fn parse(bytes: &[u8]) -> std::result::Result<Theme, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text (UTF-8 was expected)".to_owned())?;
    let mut colours = Colours::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = |what: &str| format!("line {}: {what}", number + 1);
        let (name, value) = entry(line).ok_or_else(|| at(&format!("{FORM} was expected")))?;
        let Some(place) = NAMES.iter().position(|known| *known == name) else { continue };
        let odd = || at(&format!("{name} must be a colour: \"#RRGGBB\", \"#GG\" or \"R G B\""));
        // An empty text means the terminal's own colour.
        colours.0[place] = if value.is_empty() { None } else { Some(colour(value).ok_or_else(odd)?) };
    }
    if colours.0.iter().all(Option::is_none) {
        return Err(format!("it has no colours: lines like {FORM} were expected"));
    }
    Ok(colours.theme())
}

/// `theme[NAME]="VALUE"`, with either quotes or none.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix("theme[")?.split_once(']')?;
    let value = value.trim_start().strip_prefix('=')?.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.split_once(quote));
    let value = match quoted {
        Some((value, rest)) if rest.trim_start().is_empty() || rest.trim_start().starts_with('#') => value,
        Some(_) => return None,
        None => value,
    };
    Some((name.trim(), value.trim()))
}

/// A colour in any of btop's forms.
fn colour(text: &str) -> Option<Rgb> {
    if let Some(hex) = text.strip_prefix('#') {
        let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        let is_hex = hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        return match hex.len() {
            2 if is_hex => byte(0).map(|grey| (grey, grey, grey)),
            6 if is_hex => Some((byte(0)?, byte(2)?, byte(4)?)),
            _ => None,
        };
    }
    let mut parts = text.split_whitespace().map(|part| part.parse::<u8>().ok());
    let rgb = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(rgb)
}

/// The names in btop's files that are used.
const NAMES: [&str; 20] = [
    "main_bg",
    "main_fg",
    "title",
    "hi_fg",
    "selected_bg",
    "selected_fg",
    "inactive_fg",
    "graph_text",
    "div_line",
    "cpu_start",
    "cpu_mid",
    "cpu_end",
    "temp_start",
    "temp_mid",
    "temp_end",
    "cached_end",
    "available_end",
    "upload_end",
    "free_end",
    "download_end",
];

/// A theme's colours, by [`NAMES`].
#[derive(Default)]
struct Colours([Option<Rgb>; NAMES.len()]);

impl Colours {
    fn get(&self, name: &str) -> Option<Rgb> {
        NAMES.iter().position(|known| *known == name).and_then(|at| self.0[at])
    }

    /// Takes what the file leaves out from the built-in palette for such a background.
    fn theme(&self) -> Theme {
        let ground = self.get("main_bg");
        let is_light = match (ground, self.get("main_fg")) {
            (Some(ground), _) => brightness(ground) > 127,
            (None, Some(text)) => brightness(text) < 127,
            (None, None) => false,
        };
        let base = if is_light { Theme::light() } else { Theme::dark() };
        let on = |style: Style, names: &[&str]| match names.iter().find_map(|name| self.get(name)) {
            Some(rgb) => style.fg(color(rgb)),
            None => style,
        };
        let plain = on(base.plain, &["main_fg"]);
        let plain = ground.map_or(plain, |ground| plain.bg(color(ground)));
        let chosen = on(base.chosen, &["selected_fg", "main_fg"]);
        // btop's own faint text is often too faint for what is read all the time.
        let dim = match (self.get("main_fg"), self.get("graph_text").or(self.get("inactive_fg"))) {
            (Some(text), Some(faint)) => base.dim.fg(color(mix(text, faint, 0.5))),
            _ => base.dim,
        };
        Theme {
            plain,
            dim,
            strong: on(base.strong, &["title", "main_fg"]),
            title: on(base.title, &["title", "main_fg"]),
            rule: on(base.rule, &["div_line", "inactive_fg"]),
            accent: on(base.accent, &["hi_fg"]),
            good: on(base.good, &["cpu_start"]),
            warn: on(base.warn, &["cpu_mid"]),
            bad: on(base.bad, &["cpu_end"]),
            chosen: self.get("selected_bg").map_or(chosen, |ground| chosen.bg(color(ground))),
            heat: self.heat(is_light).unwrap_or(base.heat),
            classes: [
                on(base.classes[0], &["cached_end"]),
                on(base.classes[1], &["available_end"]),
                on(base.classes[2], &["upload_end", "download_end"]),
                on(base.classes[3], &["free_end"]),
            ],
        }
    }

    /// The heat map's: from the background through the temperature colours, in eight steps.
    fn heat(&self, is_light: bool) -> Option<Vec<Rgb>> {
        let (start, end) = (self.get("temp_start")?, self.get("temp_end")?);
        let middle = self.get("temp_mid").unwrap_or_else(|| mix(start, end, 0.5));
        let ground = self.get("main_bg").unwrap_or(if is_light { (255, 255, 255) } else { (0, 0, 0) });
        let first = mix(ground, start, 0.35);
        let stops = [first, start, middle, end];
        let step = |at: usize| {
            let place = at as f64 / 7.0 * 3.0;
            let from = (place as usize).min(2);
            mix(stops[from], stops[from + 1], place - from as f64)
        };
        Some((0..8).map(step).collect())
    }
}

fn color((r, g, b): Rgb) -> Color {
    Color::Rgb(r, g, b)
}

/// Brightness, from 0 to 255.
fn brightness((r, g, b): Rgb) -> u32 {
    (2126 * u32::from(r) + 7152 * u32::from(g) + 722 * u32::from(b)) / 10_000
}

/// A colour between two, at that share of the way from the first.
fn mix(one: Rgb, other: Rgb, share: f64) -> Rgb {
    let part = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8;
    (part(one.0, other.0), part(one.1, other.1), part(one.2, other.2))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const NORD: &str = r##"
# Main background, empty for terminal default
theme[main_bg]="#2E3440"
theme[main_fg]="#D8DEE9"
theme[title]="#8FBCBB"
theme[hi_fg]="#5E81AC"
theme[selected_bg]="#4C566A"
theme[selected_fg]='#ECEFF4'
theme[inactive_fg]="#4C566A"   # a remark
theme[proc_misc]="#5E81AC"
theme[cpu_box]="whatever other programs understand"
theme[temp_start] = "129 161 193"
theme[temp_end]="#EC"
theme[cpu_mid]=#ebcb8b
"##;

    #[test]
    fn the_colours_of_a_file_are_taken_and_the_others_suit_its_background() {
        let theme = parse(NORD.as_bytes()).unwrap();
        let (fg, bg) = ((0xd8, 0xde, 0xe9), (0x2e, 0x34, 0x40));
        assert_eq!((theme.plain.fg, theme.plain.bg), (Some(color(fg)), Some(color(bg))));
        assert_eq!(theme.chosen.bg, Some(color((0x4c, 0x56, 0x6a))));
        assert_eq!(theme.chosen.fg, Some(color((0xec, 0xef, 0xf4))));
        assert_eq!(theme.warn.fg, Some(color((0xeb, 0xcb, 0x8b))));
        assert_eq!(theme.good, Theme::dark().good, "it has none of its own");
        assert_eq!((theme.heat.len(), theme.heat[7]), (8, (0xec, 0xec, 0xec)));
        let light = parse(b"theme[main_fg]=\"#101010\"\ntheme[main_bg]=\"\"\n").unwrap();
        assert_eq!((light.plain.bg, light.bad), (None, Theme::light().bad));
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (text, why) in [
            ("", "it has no colours"),
            ("theme[other]=\"#112233\"\n", "it has no colours"),
            ("\n[colors]\n", "line 2: theme[NAME]=\"#RRGGBB\" was expected"),
            ("theme[title]=\"#112233\" x", "line 1: theme[NAME]="),
            ("theme[main_fg]=\"#12345\"", "line 1: main_fg must be a colour"),
            ("theme[main_fg]=\"#+1+1+1\"", "must be a colour"),
            ("theme[main_fg]=\"1 2\"", "must be a colour"),
            ("theme[main_fg]=\"1 2 3 4\"", "must be a colour"),
            ("theme[main_fg]=\"#ää\"", "must be a colour"),
            ("theme[main_fg]=\"256 0 0\"", "must be a colour"),
        ] {
            let said = parse(text.as_bytes()).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        assert!(parse(&[0xff]).unwrap_err().contains("not text"));
    }

    #[test]
    fn only_plain_files_of_bounded_size_are_themes() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("themes");
        assert_eq!(list(&folder), Ok(Vec::new()));
        std::fs::create_dir(&folder).unwrap();
        let put = |name: &str, text: &[u8]| std::fs::write(folder.join(name), text).unwrap();
        put("nord.theme", NORD.as_bytes());
        put("large.theme", &vec![b'#'; 65 << 10]);
        put("notes.txt", b"");
        put("a\nb.theme", NORD.as_bytes());
        symlink("/dev/zero", folder.join("zero.theme")).unwrap();
        std::fs::create_dir(folder.join("folder.theme")).unwrap();
        let listed = list(&folder).unwrap();
        let names: Vec<_> = listed.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["folder", "large", "nord", "zero"]);
        let why = |at: usize| listed[at].theme.clone().unwrap_err();
        assert!(why(0).contains("not a regular file") && why(3).contains("not a regular file"));
        assert!(why(1).contains("it has over 64"), "{}", why(1));
        assert_eq!(listed[2].theme, Ok(find(Some(&folder), "nord").unwrap()));
        for name in ["none", "../themes/nord", "", "a\nb"] {
            let error = find(Some(&folder), name).unwrap_err();
            assert!(error.what.starts_with("there is no theme"), "{error}");
        }
    }
}
