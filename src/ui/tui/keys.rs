//! The key map: what each key does in each context. The line of keys and the help are made from it.

use crossterm::event::KeyEvent;

use super::bound_key::BoundKey;
use super::past::Peak;
use crate::ui::theme_name::ThemeName;

/// Where a key is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// The list of knobs has the focus.
    Knobs,
    /// The ledger has the focus.
    Ledger,
    /// Either of them.
    Main,
    /// Either of them, while a recording is shown; takes precedence over what keys do in a run.
    Replay,
    /// A value, a name or a serial is being typed.
    Text,
    /// A question that takes yes or no.
    Question,
    /// A plan that destroys nothing; one that does uses `Text`.
    Plan,
    /// The page about a failure.
    Failed,
    /// Quitting while a stack is in place.
    Leaving,
    /// The list of profiles.
    Open,
    /// The list of recordings.
    Shelf,
    /// The list of a knob's values.
    Pick,
    /// The list of drives.
    Drives,
    /// The list of themes.
    Themes,
    /// The list of figures that can decide a duel.
    Duel,
    /// The help, and the host's page.
    Help,
    /// Words to search the knobs by are being typed.
    Search,
    /// Words to narrow a list by are being typed.
    Filter,
    /// The name of an action is being typed.
    Palette,
    /// In all of these, after their own bindings.
    Always,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is described in the table
pub enum Action {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    TurnDown,
    TurnUp,
    Edit,
    Enter,
    Plan,
    Drop,
    Former,
    Host,
    Believe,
    Contract,
    TakeDown,
    Keep,
    Pause,
    Mute,
    MuteClass(usize),
    Restart,
    Save,
    Open,
    Record,
    Trace,
    Recordings,
    Mark,
    Compare,
    Undo,
    Duel,
    MarkSetting,
    ToMark,
    Freeze,
    Cumulative,
    Response,
    View,
    Focus,
    LayerUp,
    LayerDown,
    ShowInactive,
    Search,
    Palette,
    TailOf,
    WholeRun,
    Earlier,
    Later,
    Peak(Peak),
    Now,
    Replay(Step),
    Suspend,
    Theme(ThemeName),
    Themes,
    Help,
    Quit,
    Close,
    Accept,
    CursorLeft,
    CursorRight,
    Yes,
    Erase,
    EraseAll,
}

/// What a key does with a recording that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is described in the table
pub enum Step {
    Play,
    Faster,
    Slower,
    PageEarlier,
    PageLater,
    FirstWindow,
    LastWindow,
    TurnBefore,
    NextTurn,
    ChosenTurn,
    Other,
    Both,
    Differences,
}

impl Action {
    /// Whether it acts on a run, which a recording lacks.
    pub fn needs_run(self) -> bool {
        use Action::{
            Drop, Duel, Edit, Enter, Former, Freeze, MarkSetting, Mute, MuteClass, Open, Pause, Plan, Record,
            Restart, Save, ToMark, Trace, TurnDown, TurnUp, Undo,
        };
        matches!(
            self,
            Drop | Duel
                | Edit
                | Enter
                | Former
                | Freeze
                | MarkSetting
                | Mute
                | MuteClass(_)
                | Open
                | Pause
                | Plan
                | Record
                | Restart
                | Save
                | ToMark
                | Trace
                | TurnDown
                | TurnUp
                | Undo
        )
    }
}

/// A row of the key map.
#[derive(Debug, PartialEq)]
pub struct Binding {
    /// Where it applies.
    pub context: Context,
    /// The keys, any of which triggers it.
    pub keys: &'static [BoundKey],
    /// The keys as shown.
    pub label: &'static str,
    /// What they do.
    pub action: Action,
    /// Its name in the palette; empty if it has no entry there.
    pub name: &'static str,
    /// What they do in a word, for the line of keys; empty if they are left out of it.
    pub hint: &'static str,
    /// What they do as a sentence, for the help.
    pub help: &'static str,
}

const fn bind(
    context: Context,
    keys: &'static [BoundKey],
    label: &'static str,
    action: Action,
    name: &'static str,
    hint: &'static str,
    help: &'static str,
) -> Binding {
    Binding { context, keys, label, action, name, hint, help }
}

use BoundKey::{
    BackTab, Backspace, Char, Ctrl, Down, End, Enter, Esc, Home, Left, PageDown, PageUp, Right, ShiftLeft,
    ShiftRight, Tab, Up,
};
use Context::{
    Always, Drives, Duel, Failed, Filter, Help, Knobs, Leaving, Ledger, Main, Open, Palette, Pick, Plan,
    Question, Replay, Search, Shelf, Text, Themes,
};

/// Every action and its keys, in the order of the line of keys, of the help and of the palette.
#[rustfmt::skip] // a table is read by rows
pub const MAP: &[Binding] = &[
    bind(Replay, &[Char(' ')], "space", Action::Replay(Step::Play), "play", "play", "Play the recording from here on, at its end from the beginning; or stop."),
    bind(Replay, &[Left, Char('h')], "← h", Action::Earlier, "", "", "Show the previous window."),
    bind(Replay, &[Right, Char('l')], "→ l", Action::Later, "", "window", "Show the next window."),
    bind(Replay, &[PageUp], "PgUp", Action::Replay(Step::PageEarlier), "back 10%", "", "Go back by a tenth of the recording."),
    bind(Replay, &[PageDown], "PgDn", Action::Replay(Step::PageLater), "forward 10%", "", "Go forward by a tenth of the recording."),
    bind(Replay, &[Home], "Home", Action::Replay(Step::FirstWindow), "first window", "", "Go to the first window."),
    bind(Replay, &[End], "End", Action::Replay(Step::LastWindow), "last window", "", "Go to the last window."),
    bind(Replay, &[Char('n')], "n", Action::Replay(Step::NextTurn), "next turn", "next turn", "Go to the window of the next turn."),
    bind(Replay, &[Char('N')], "N", Action::Replay(Step::TurnBefore), "previous turn", "", "Go to the window of the previous turn."),
    bind(Replay, &[Enter], "⏎", Action::Replay(Step::ChosenTurn), "chosen turn", "", "Go to the window of the turn that is chosen in the ledger."),
    bind(Replay, &[Char('x')], "x", Action::Replay(Step::Other), "other recording", "other", "Show the other recording at the same position, and back."),
    bind(Replay, &[Char('|')], "|", Action::Replay(Step::Both), "both recordings", "both", "Show both recordings side by side, if the terminal has at least 160 columns, and back."),
    bind(Replay, &[Char('=')], "=", Action::Replay(Step::Differences), "differences", "differences", "Compare both recordings, as `stacktune compare` does."),
    bind(Replay, &[Char('+')], "+", Action::Replay(Step::Faster), "faster", "faster", "Play faster, up to 60 times as fast as it was recorded."),
    bind(Replay, &[Char('-')], "-", Action::Replay(Step::Slower), "slower", "", "Play slower."),
    bind(Knobs, &[Up, Char('k')], "↑ k", Action::Up, "", "", "Choose the knob above."),
    bind(Knobs, &[Down, Char('j')], "↓ j", Action::Down, "", "", "Choose the knob below."),
    bind(Knobs, &[Left, Char('h')], "← h", Action::TurnDown, "turn down", "", "Turn the knob down by one step. A value that this host does not support is shown with the reason and skipped."),
    bind(Knobs, &[Right, Char('l')], "→ l", Action::TurnUp, "turn up", "turn", "Turn the knob up by one step."),
    bind(Knobs, &[Enter], "⏎", Action::Enter, "", "type", "Pick a value by its name, or type an exact one; once changes that need a rebuild are collected, show the plan."),
    bind(Knobs, &[Char('e')], "e", Action::Edit, "type a value", "type", "Type an exact value, also while changes are collected."),
    bind(Knobs, &[Char('[')], "[", Action::LayerUp, "layer above", "", "Choose the layer above: its knobs are listed."),
    bind(Knobs, &[Char(']')], "]", Action::LayerDown, "layer below", "layer", "Choose the layer below: its knobs are listed."),
    bind(Knobs, &[Char('i')], "i", Action::ShowInactive, "inactive knobs", "", "Show or hide the knobs that have no effect under these settings."),
    bind(Ledger, &[Up, Char('k')], "↑ k", Action::Up, "", "", "Scroll the chosen line's figures up; at their beginning, choose the newer line."),
    bind(Ledger, &[Down, Char('j')], "↓ j", Action::Down, "", "scroll", "Scroll its figures down; at their end, choose the older line."),
    bind(Main, &[Esc], "Esc", Action::Drop, "discard changes", "discard", "Leave the ledger, which closes the figures of its chosen line; else discard the changes collected for a rebuild."),
    bind(Main, &[Char('b')], "b", Action::Former, "rebuild previous", "rebuild previous", "After a failed build: rebuild the previous stack."),
    bind(Main, &[Char('u')], "u", Action::Undo, "undo", "undo", "Undo the last turn."),
    bind(Main, &[Char('v')], "v", Action::View, "next view", "view", "Show the next panel where not all fit: charts, system, ledger, notes."),
    bind(Main, &[Char('r')], "r", Action::Record, "record", "record", "Start or stop a recording."),
    bind(Main, &[Char(' ')], "space", Action::Pause, "pause", "pause", "Pause or resume the load; no I/O is scheduled while paused."),
    bind(Main, &[Char('/')], "/", Action::Search, "search knobs", "find", "Search all knobs by name, meaning and values."),
    bind(Main, &[Char('s')], "s", Action::Save, "save", "save", "Save the settings as a profile."),
    bind(Main, &[Char('m')], "m", Action::Mute, "mute class", "mute", "Switch the class of the chosen knob off or on."),
    bind(Main, &[Char('D')], "D", Action::Duel, "duel", "duel", "Compare two values of a knob, which is turned back and forth in random order until it is clear which is better: the marked one and the present one; in the ledger, those of the chosen turn; without a mark, those of the chosen knob's last turn, else of the last one. Again: end the duel."),
    bind(Main, &[Char('a')], "a", Action::MarkSetting, "mark the setting", "mark", "Mark the setting in force and its place in the ledger, to go back to it; pressed again on the same setting, it clears the mark."),
    bind(Main, &[Char('\'')], "'", Action::ToMark, "back to the mark", "to mark", "Turn back every knob turned since the mark, through a plan where that needs a rebuild."),
    bind(Main, &[Char(':')], ":", Action::Palette, "", "actions", "Run any action by its name."),
    bind(Main, &[Tab, BackTab], "tab", Action::Focus, "knobs or ledger", "focus", "Move between the knobs and the ledger."),
    bind(Main, &[Char('z')], "z", Action::TailOf, "latency of the next class", "latency of", "Choose which class's latency the heat map shows: one, or all."),
    bind(Main, &[Char('Z')], "Z", Action::WholeRun, "whole run", "", "Show the whole run in the heat map, or its end."),
    bind(Main, &[Char(','), ShiftLeft], ", ⇧←", Action::Earlier, "previous window", "window", "Show an earlier window: the cursor moves left, and the classes' figures are that window's. Where Z shows the whole run, it moves by a hundredth of that."),
    bind(Main, &[Char('.'), ShiftRight], ". ⇧→", Action::Later, "next window", "", "Show a later window; after the last one, the figures are live again."),
    bind(Main, &[Char('P')], "P", Action::Peak(Peak::P99), "highest p99", "p99 peak", "Show the window with the highest p99 of what the heat map shows: the moment of the tail."),
    bind(Main, &[Char('L')], "L", Action::Peak(Peak::LongestIo), "longest I/O", "", "Show the window with the longest I/O of what the heat map shows."),
    bind(Main, &[Char('0')], "0", Action::Now, "live figures", "live", "Return to the live figures."),
    bind(Always, &[Ctrl('z')], "Ctrl-Z", Action::Suspend, "suspend", "", "Pause the load and return to the shell; `fg` continues both."),
    bind(Main, &[], "", Action::Themes, "theme", "", "Choose a theme: a built-in one, or one of btop's theme files in `~/.config/stacktune/themes`."),
    bind(Main, &[], "", Action::Theme(ThemeName::Dark), "theme dark", "", "Colours for a dark background."),
    bind(Main, &[], "", Action::Theme(ThemeName::Light), "theme light", "", "Colours for a light background."),
    bind(Main, &[], "", Action::Theme(ThemeName::Sixteen), "theme 16", "", "The terminal's own sixteen colours."),
    bind(Main, &[], "", Action::Theme(ThemeName::Mono), "theme mono", "", "No colours."),
    bind(Main, &[Char('o')], "o", Action::Open, "open", "open", "Open a profile; the target is rebuilt if it differs."),
    bind(Main, &[Char('T')], "T", Action::Trace, "trace", "", "Trace the I/O of the target's drives, or end the trace and keep it: in the recording, where one is made."),
    bind(Main, &[Char('O')], "O", Action::Recordings, "recordings", "", "List the recordings: read their summaries, and compare two."),
    bind(Main, &[Char('f')], "f", Action::Freeze, "freeze", "freeze", "Freeze or unfreeze the figures on the screen; the load keeps running."),
    bind(Main, &[Char('c')], "c", Action::Cumulative, "totals", "totals", "Switch between the totals of the run and the last window."),
    bind(Main, &[Char('t')], "t", Action::Response, "response times", "times", "Switch between response times (from the intended start) and service times."),
    bind(Main, &[Char('p')], "p", Action::Plan, "plan", "", "Show the plan for rebuilding the target with the collected changes; nothing is done before you confirm it."),
    bind(Main, &[Char('H')], "H", Action::Host, "host", "host", "Show the host: processor, kernel, drives and what uses them."),
    bind(Main, &[Char('B')], "B", Action::Believe, "believe", "believe?", "Show how far the figures can be trusted: the seven pitfalls, write and space amplification, steady state."),
    bind(Main, &[Char('C')], "C", Action::Contract, "contract with drives", "", "Show how the five rules for using SSDs are kept, by the trace that T makes."),
    bind(Main, &[Char('1')], "1", Action::MuteClass(0), "mute scan", "", "Switch the scan off or on."),
    bind(Main, &[Char('2')], "2", Action::MuteClass(1), "mute point", "", "Switch the point reads off or on."),
    bind(Main, &[Char('3')], "3", Action::MuteClass(2), "mute wal", "", "Switch the WAL off or on."),
    bind(Main, &[Char('4')], "4", Action::MuteClass(3), "mute background", "", "Switch the background writes off or on."),
    bind(Main, &[Char('R')], "R", Action::Restart, "restart classes", "", "Restart the classes that were stopped by errors, or failed."),
    bind(Main, &[PageUp], "PgUp", Action::PageUp, "", "", "Scroll up a page."),
    bind(Main, &[PageDown], "PgDn", Action::PageDown, "", "", "Scroll down a page."),
    bind(Main, &[Home, Char('g')], "Home g", Action::First, "", "", "Go to the first row."),
    bind(Main, &[End, Char('G')], "End G", Action::Last, "", "", "Go to the last row."),
    bind(Main, &[Char('?')], "?", Action::Help, "help", "help", "Show this help."),
    bind(Main, &[Char('q')], "q", Action::Quit, "quit", "quit", "Drain and quit, asking first whether to keep a stack that was built; press again to quit at once."),
    bind(Always, &[Ctrl('c')], "Ctrl-C", Action::Quit, "", "", "The same as q, also while typing."),
    bind(Text, &[Enter], "⏎", Action::Accept, "", "accept", "Accept the input."),
    bind(Text, &[Esc], "Esc", Action::Close, "", "cancel", "Cancel."),
    bind(Text, &[Backspace], "⌫", Action::Erase, "", "", "Erase a character."),
    bind(Text, &[Ctrl('u')], "Ctrl-U", Action::EraseAll, "", "", "Erase all that is typed."),
    bind(Text, &[Left], "←", Action::CursorLeft, "", "", "Move the cursor to the left."),
    bind(Text, &[Right], "→", Action::CursorRight, "", "", "Move it to the right."),
    bind(Text, &[Up], "↑", Action::Up, "", "", "Scroll up."),
    bind(Text, &[Down], "↓", Action::Down, "", "", "Scroll down."),
    bind(Text, &[PageUp], "PgUp", Action::PageUp, "", "", "Scroll up a page."),
    bind(Text, &[PageDown], "PgDn", Action::PageDown, "", "", "Scroll down a page."),
    bind(Text, &[Home], "Home", Action::First, "", "", "Go to the beginning."),
    bind(Text, &[End], "End", Action::Last, "", "", "Go to the end."),
    bind(Plan, &[Up, Char('k')], "↑ k", Action::Up, "", "", "Scroll up."),
    bind(Plan, &[Down, Char('j')], "↓ j", Action::Down, "", "scroll", "Scroll down; a plan can be confirmed once you have seen its end."),
    bind(Plan, &[PageUp], "PgUp", Action::PageUp, "", "", "Scroll up a page."),
    bind(Plan, &[PageDown, Char(' ')], "PgDn", Action::PageDown, "", "page", "Scroll down a page."),
    bind(Plan, &[Home, Char('g')], "Home g", Action::First, "", "", "Go to the beginning."),
    bind(Plan, &[End, Char('G')], "End G", Action::Last, "", "", "Go to the end."),
    bind(Plan, &[Char('y')], "y", Action::Yes, "", "confirm", "Carry out the plan; if it destroys data, each device's serial must be typed in full."),
    bind(Plan, &[Char('n'), Esc], "n Esc", Action::Close, "", "cancel", "Close the plan; nothing is done, and the collected changes are kept."),
    bind(Failed, &[Char('b')], "b", Action::Former, "", "rebuild previous", "Rebuild the previous stack."),
    bind(Failed, &[Char('o')], "o", Action::Open, "", "open", "Open a profile."),
    bind(Failed, &[Up, Char('k')], "↑ k", Action::Up, "", "", "Scroll up."),
    bind(Failed, &[Down, Char('j')], "↓ j", Action::Down, "", "scroll", "Scroll down."),
    bind(Failed, &[PageUp], "PgUp", Action::PageUp, "", "", "Scroll up a page."),
    bind(Failed, &[PageDown, Char(' ')], "PgDn", Action::PageDown, "", "", "Scroll down a page."),
    bind(Failed, &[Esc, Enter], "Esc", Action::Close, "", "close", "Close; the message stays in the notes."),
    bind(Failed, &[Char('q')], "q", Action::Quit, "", "quit", "Quit."),
    bind(Leaving, &[Char('t')], "t", Action::TakeDown, "", "tear down and quit", "Tear down the stack and quit."),
    bind(Leaving, &[Char('k')], "k", Action::Keep, "", "keep and quit", "Keep the stack and quit; the commands that remove it are printed."),
    bind(Leaving, &[Esc], "Esc", Action::Close, "", "cancel", "Keep running."),
    bind(Question, &[Char('y')], "y", Action::Yes, "", "yes", "Yes."),
    bind(Question, &[Char('n'), Esc], "n Esc", Action::Close, "", "no", "No."),
    bind(Open, &[Up, Char('k')], "↑ k", Action::Up, "", "", "Choose the profile above."),
    bind(Open, &[Down, Char('j')], "↓ j", Action::Down, "", "choose", "Choose the profile below."),
    bind(Open, &[PageUp], "PgUp", Action::PageUp, "", "", "Go up ten profiles."),
    bind(Open, &[PageDown], "PgDn", Action::PageDown, "", "", "Go down ten profiles."),
    bind(Open, &[Home, Char('g')], "Home g", Action::First, "", "", "Choose the first."),
    bind(Open, &[End, Char('G')], "End G", Action::Last, "", "", "Choose the last."),
    bind(Open, &[Enter], "⏎", Action::Accept, "", "open", "Open the chosen profile."),
    bind(Open, &[Char('/')], "/", Action::Search, "", "filter", "Filter the list."),
    bind(Open, &[Esc, Char('q')], "Esc", Action::Close, "", "cancel", "Close the list."),
    bind(Shelf, &[Up, Char('k')], "↑ k", Action::Up, "", "", "Choose the recording above."),
    bind(Shelf, &[Down, Char('j')], "↓ j", Action::Down, "", "choose", "Choose the recording below."),
    bind(Shelf, &[PageUp], "PgUp", Action::PageUp, "", "", "Go up ten recordings."),
    bind(Shelf, &[PageDown], "PgDn", Action::PageDown, "", "", "Go down ten recordings."),
    bind(Shelf, &[Home, Char('g')], "Home g", Action::First, "", "", "Choose the first."),
    bind(Shelf, &[End, Char('G')], "End G", Action::Last, "", "", "Choose the last."),
    bind(Shelf, &[Enter], "⏎", Action::Accept, "", "summary", "Read the chosen recording's summary."),
    bind(Shelf, &[Char('/')], "/", Action::Search, "", "filter", "Filter the list by date, profile, name or figures."),
    bind(Shelf, &[Char(' '), Char('m'), Tab], "space", Action::Mark, "", "mark", "Mark the chosen recording as A or B, or clear its mark."),
    bind(Shelf, &[Char('c')], "c", Action::Compare, "", "compare", "Compare the two marked recordings, or the marked one with the chosen one."),
    bind(Shelf, &[Esc, Char('q')], "Esc", Action::Close, "", "close", "Close the list."),
    bind(Pick, &[Up, Char('k')], "↑ k", Action::Up, "", "", "Choose the value above."),
    bind(Pick, &[Down, Char('j')], "↓ j", Action::Down, "", "choose", "Choose the value below."),
    bind(Pick, &[Home, Char('g')], "Home g", Action::First, "", "", "Choose the first."),
    bind(Pick, &[End, Char('G')], "End G", Action::Last, "", "", "Choose the last."),
    bind(Pick, &[Enter], "⏎", Action::Accept, "", "set", "Turn the knob to the chosen value; one that can't be chosen says why."),
    bind(Pick, &[Char('/')], "/", Action::Search, "", "filter", "Filter the list by name or meaning."),
    bind(Pick, &[Char('e')], "e", Action::Edit, "", "type", "Type the value instead."),
    bind(Pick, &[Esc, Char('q')], "Esc", Action::Close, "", "cancel", "Close the list."),
    bind(Drives, &[Up, Char('k')], "↑ k", Action::Up, "", "", "Choose the drive above."),
    bind(Drives, &[Down, Char('j')], "↓ j", Action::Down, "", "choose", "Choose the drive below."),
    bind(Drives, &[Home, Char('g')], "Home g", Action::First, "", "", "Choose the first."),
    bind(Drives, &[End, Char('G')], "End G", Action::Last, "", "", "Choose the last."),
    bind(Drives, &[Char(' ')], "space", Action::Mark, "", "tick", "Tick the chosen drive, or clear its tick; pages are interleaved over the drives in the order in which they are ticked."),
    bind(Drives, &[Enter], "⏎", Action::Accept, "", "take", "Take the ticked drives into the plan; without one, the target is files."),
    bind(Drives, &[Char('/')], "/", Action::Search, "", "filter", "Filter the list by name, model, serial number or what is on the drive."),
    bind(Drives, &[Char('e')], "e", Action::Edit, "", "type", "Type their names instead."),
    bind(Drives, &[Esc, Char('q')], "Esc", Action::Close, "", "cancel", "Close the list."),
    bind(Themes, &[Up, Char('k')], "↑ k", Action::Up, "", "", "Choose the theme above; the screen shows it."),
    bind(Themes, &[Down, Char('j')], "↓ j", Action::Down, "", "choose", "Choose the theme below."),
    bind(Themes, &[Home, Char('g')], "Home g", Action::First, "", "", "Choose the first."),
    bind(Themes, &[End, Char('G')], "End G", Action::Last, "", "", "Choose the last."),
    bind(Themes, &[Enter], "⏎", Action::Accept, "", "take", "Keep the chosen theme."),
    bind(Themes, &[Char('/')], "/", Action::Search, "", "filter", "Filter the list by name."),
    bind(Themes, &[Esc, Char('q')], "Esc", Action::Close, "", "cancel", "Go back to the colours from before."),
    bind(Search, &[Ctrl('u')], "Ctrl-U", Action::EraseAll, "", "", "Erase all that is typed."),
    bind(Search, &[Enter], "⏎", Action::Accept, "", "choose", "Choose the knob; its layer's knobs are listed."),
    bind(Search, &[Esc], "Esc", Action::Close, "", "cancel", "Go back to where you were."),
    bind(Search, &[Backspace], "⌫", Action::Erase, "", "", "Erase a character."),
    bind(Search, &[Left], "←", Action::CursorLeft, "", "", "Move the cursor to the left."),
    bind(Search, &[Right], "→", Action::CursorRight, "", "", "Move it to the right."),
    bind(Search, &[Up], "↑", Action::Up, "", "", "Choose the knob above."),
    bind(Search, &[Down], "↓", Action::Down, "", "choose", "Choose the knob below."),
    bind(Filter, &[Ctrl('u')], "Ctrl-U", Action::EraseAll, "", "", "Erase all that is typed."),
    bind(Filter, &[Enter], "⏎", Action::Accept, "", "take", "Choose this row; a drive is ticked, and the whole list shown again."),
    bind(Filter, &[Esc], "Esc", Action::Close, "", "whole list", "Show the whole list again."),
    bind(Filter, &[Backspace], "⌫", Action::Erase, "", "", "Erase a character; with none left, show the whole list."),
    bind(Filter, &[Left], "←", Action::CursorLeft, "", "", "Move the cursor to the left."),
    bind(Filter, &[Right], "→", Action::CursorRight, "", "", "Move it to the right."),
    bind(Filter, &[Up], "↑", Action::Up, "", "", "Choose the row above."),
    bind(Filter, &[Down], "↓", Action::Down, "", "choose", "Choose the row below."),
    bind(Filter, &[Home], "Home", Action::First, "", "", "Move the cursor to the beginning."),
    bind(Filter, &[End], "End", Action::Last, "", "", "Move it to the end."),
    bind(Filter, &[PageUp], "PgUp", Action::PageUp, "", "", "Go up ten rows."),
    bind(Filter, &[PageDown], "PgDn", Action::PageDown, "", "", "Go down ten rows."),
    bind(Filter, &[Tab], "tab", Action::Mark, "", "", "Mark the chosen recording, or tick the chosen drive, as space does in the whole list."),
    bind(Palette, &[Ctrl('u')], "Ctrl-U", Action::EraseAll, "", "", "Erase all that is typed."),
    bind(Palette, &[Enter], "⏎", Action::Accept, "", "run", "Run the chosen action."),
    bind(Palette, &[Esc], "Esc", Action::Close, "", "cancel", "Run nothing."),
    bind(Palette, &[Backspace], "⌫", Action::Erase, "", "", "Erase a character."),
    bind(Palette, &[Left], "←", Action::CursorLeft, "", "", "Move the cursor to the left."),
    bind(Palette, &[Right], "→", Action::CursorRight, "", "", "Move it to the right."),
    bind(Palette, &[Up], "↑", Action::Up, "", "", "Choose the action above."),
    bind(Palette, &[Down], "↓", Action::Down, "", "choose", "Choose the action below."),
    bind(Duel, &[Up, Char('k')], "↑ k", Action::Up, "", "", "Choose the figure above."),
    bind(Duel, &[Down, Char('j')], "↓ j", Action::Down, "", "choose", "Choose the figure below."),
    bind(Duel, &[Enter], "⏎", Action::Accept, "", "begin", "Begin the duel by the chosen figure."),
    bind(Duel, &[Esc, Char('q')], "Esc", Action::Close, "", "cancel", "Close; nothing is turned."),
    bind(Help, &[Up, Char('k')], "↑ k", Action::Up, "", "", "Scroll up."),
    bind(Help, &[Down, Char('j')], "↓ j", Action::Down, "", "scroll", "Scroll down."),
    bind(Help, &[PageUp], "PgUp", Action::PageUp, "", "", "Scroll up a page."),
    bind(Help, &[PageDown, Char(' ')], "PgDn", Action::PageDown, "", "page", "Scroll down a page."),
    bind(Help, &[Home, Char('g')], "Home g", Action::First, "", "", "Go to the beginning."),
    bind(Help, &[End, Char('G')], "End G", Action::Last, "", "", "Go to the end."),
    bind(Help, &[Esc, Char('q'), Char('?')], "Esc", Action::Close, "", "close", "Close it."),
];

/// The heading of the ledger's keys.
pub const LEDGER_SECTION: &str = "Keys for the ledger";

/// The parts of the help about keys, with their headings.
pub const SECTIONS: [(&str, Context); 20] = [
    ("Keys for the knobs", Knobs),
    (LEDGER_SECTION, Ledger),
    ("Keys for all panels", Main),
    ("Keys at any time", Always),
    ("Keys in a recording", Replay),
    ("Keys while searching", Search),
    ("Keys in the palette", Palette),
    ("Keys in the list of recordings", Shelf),
    ("Keys in the list of profiles", Open),
    ("Keys in a list of values", Pick),
    ("Keys in the list of drives", Drives),
    ("Keys in the list of themes", Themes),
    ("Keys while filtering a list", Filter),
    ("Keys while typing", Text),
    ("Keys in a plan", Plan),
    ("Keys in a question", Question),
    ("Keys before a duel", Duel),
    ("Keys on the pages, such as the help", Help),
    ("Keys after a failure", Failed),
    ("Keys when quitting with a stack in place", Leaving),
];

/// What a key does, in the first context that binds it.
pub fn action(contexts: &[Context], event: &KeyEvent) -> Option<Action> {
    let bound_in = |context: &Context, key: BoundKey| {
        MAP.iter().find(|row| row.context == *context && row.keys.contains(&key)).map(|row| row.action)
    };
    let find = |key| contexts.iter().chain(&[Always]).find_map(|context| bound_in(context, key));
    BoundKey::of(event).into_iter().flatten().find_map(find)
}

/// The rows for the line of keys.
pub fn hints(contexts: &[Context]) -> impl Iterator<Item = &'static Binding> {
    MAP.iter().filter(move |row| contexts.contains(&row.context) && !row.hint.is_empty())
}

/// The actions of a run, or of a recording, that the palette finds: those whose name or help contains each of the
/// words, matches by name first.
pub fn named(words: &str, on_recording: bool) -> Vec<&'static Binding> {
    let words: Vec<_> = words.split_whitespace().map(str::to_lowercase).collect();
    let has = |text: &str| words.iter().all(|word| text.to_lowercase().contains(word));
    let is_of_use = |action: Action| {
        if on_recording { !action.needs_run() } else { !matches!(action, Action::Replay(_)) }
    };
    let in_palette = || MAP.iter().filter(|row| !row.name.is_empty() && is_of_use(row.action));
    let by_name = in_palette().filter(|row| has(row.name));
    let by_help = in_palette().filter(|row| !has(row.name) && has(row.help));
    by_name.chain(by_help).collect()
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
