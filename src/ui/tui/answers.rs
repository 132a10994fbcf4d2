//! Asks the terminal about itself: whether its background is light (OSC 11), and its name and version
//! (XTVERSION).

use std::io::{Write, stdin, stdout};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::termios::{OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

/// How long an answer may take, even over a slow line.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// What is asked: the background, the version, and then what every terminal answers (its attributes), which ends the
/// waiting.
const QUESTION: &[u8] = b"\x1b]11;?\x1b\\\x1b[>0q\x1b[c";

/// What a terminal answered; none if it does not say.
#[derive(Debug, Default, PartialEq)]
pub struct TerminalAnswers {
    /// Whether its background is light.
    pub is_light: Option<bool>,
    /// Its name and version, as it writes them: `kitty(0.47.0)`.
    pub version: Option<String>,
}

/// Asks the terminal, in raw mode and before anything else reads keys: what is typed meanwhile is lost.
pub fn ask() -> TerminalAnswers {
    answer()
        .map(|answer| TerminalAnswers { is_light: lightness(&answer), version: version(&answer) })
        .unwrap_or_default()
}

fn answer() -> Option<Vec<u8>> {
    let mut out = stdout();
    out.write_all(QUESTION).and_then(|()| out.flush()).ok()?;
    let until = Instant::now() + ANSWER_MAX;
    let input = stdin();
    // Reading returns without a byte after a tenth of a second.
    let before = tcgetattr(&input).ok()?;
    let mut waiting = before.clone();
    waiting.special_codes[SpecialCodeIndex::VMIN] = 0;
    waiting.special_codes[SpecialCodeIndex::VTIME] = 1;
    tcsetattr(&input, OptionalActions::Now, &waiting).ok()?;
    let mut answer = Vec::new();
    while !is_whole(&answer) && Instant::now() < until {
        let mut bytes = [0; 256];
        match rustix::io::read(&input, &mut bytes) {
            Ok(count) => answer.extend_from_slice(&bytes[..count]),
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    // The modes are raw mode's, which ends with the screen in any case.
    let _ = tcsetattr(&input, OptionalActions::Now, &before);
    Some(answer)
}

/// Whether the terminal's attributes have come: `ESC [ ? … c`.
fn is_whole(answer: &[u8]) -> bool {
    let begin = answer.windows(3).rposition(|bytes| bytes == b"\x1b[?");
    begin.is_some_and(|begin| answer[begin..].contains(&b'c'))
}

/// Whether the colour in `ESC ] 11 ; rgb:RRRR/GGGG/BBBB` is light.
fn lightness(answer: &[u8]) -> Option<bool> {
    let text = String::from_utf8_lossy(answer);
    let (_, colour) = text.split_once("]11;rgb")?;
    let colour = colour.split_once(':')?.1;
    let colour = colour.split(['\x1b', '\x07']).next()?;
    let mut parts = colour.split('/').map(|hex| {
        let most = 16u32.checked_pow(u32::try_from(hex.len()).ok()?)?.checked_sub(1)?;
        Some(f64::from(u32::from_str_radix(hex, 16).ok()?) / f64::from(most.max(1)))
    });
    let mut next = || parts.next().flatten();
    let (red, green, blue) = (next()?, next()?, next()?);
    Some(0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5)
}

/// The name and the version in `ESC P > | name version ESC \`.
fn version(answer: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(answer);
    let (_, version) = text.split_once("\x1bP>|")?;
    Some(version.split_once('\x1b')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood_in_every_width() {
        assert_eq!(lightness(b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;c"), Some(true));
        assert_eq!(lightness(b"\x1b]11;rgb:1e/1e/2e\x07\x1b[?1;2c"), Some(false));
        assert_eq!(lightness(b"\x1b]11;rgba:fdfd/f6f6/e3e3/ffff\x1b\\"), Some(true));
        for odd in
            [&b"\x1b[?62;c"[..], b"", b"\x1b]11;rgb:zz/00/00\x07", b"\x1b]11;rgb:///\x07", b"q\x1b]11;rgb:0"]
        {
            assert_eq!(lightness(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn the_version_is_what_stands_between_its_marks() {
        let answer = b"\x1b]11;rgb:0/0/0\x07\x1bP>|kitty(0.47.0)\x1b\\\x1b[?62;c";
        assert_eq!(version(answer).as_deref(), Some("kitty(0.47.0)"));
        assert!(!is_whole(&answer[..answer.len() - 1]) && is_whole(answer));
        for odd in [&b"\x1b[?62;c"[..], b"", b"\x1bP>|kitty"] {
            assert_eq!(version(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn the_waiting_ends_with_the_attributes() {
        assert!(is_whole(b"\x1b]11;rgb:0/0/0\x07\x1b[?62;22c"));
        assert!(!is_whole(b"\x1b]11;rgb:cccc/0/0\x07") && !is_whole(b"\x1b[?62;") && !is_whole(b""));
    }
}
