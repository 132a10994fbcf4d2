use super::*;
use crate::trace::io::{LostEvents, Note, Op, TracedDrive, TracedIo};

const DRIVE: TracedDrive = TracedDrive(8 << 20 | 16);

fn io(op: Op, from_ns: u64, to_ns: impl Into<Option<u64>>, sector: u64, sectors: u32) -> TracedIo {
    let (offset_bytes, bytes) = (sector * 512, sectors * 512);
    TracedIo {
        issued_ns: from_ns,
        completed_ns: to_ns.into(),
        offset_bytes,
        bytes,
        drive: DRIVE,
        pid: 42,
        op,
    }
}

/// Some I/Os of every kind, overlapping.
fn trace() -> Trace {
    let ios = vec![
        io(Op::Read, 1000, 5000, 8, 8),
        io(Op::Write, 1000, 2000, 1 << 30, 256),
        io(Op::Flush, 2000, 9000, 0, 0),
        io(Op::Discard, 3000, 3000, 64, 1 << 22),
        io(Op::Write, 7_000_000_123, None, 8, 8),
    ];
    let processes = vec![(42, "mkfs.ext4".into())];
    Trace {
        ios,
        processes,
        notes: Vec::new(),
        form: Form::Blktrace,
        lost: LostEvents::default(),
        unpaired: 0,
        requeued: 0,
    }
}

fn written(form: WrittenForm) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&trace(), form, &mut bytes).unwrap();
    bytes
}

#[track_caller]
fn wrong(bytes: &[u8]) -> String {
    let error = read_bytes(bytes, "x").unwrap_err();
    assert_eq!(error.exit_status(), 2, "{error}");
    error.what
}

#[test]
fn records_are_read_as_they_were_written() {
    assert_eq!(read_bytes(&written(WrittenForm::Blktrace), "x").unwrap(), trace());
}

/// Phases are distinguished by what was issued in them.
#[test]
fn notes_are_read_as_they_were_written() {
    let note = |at_ns, text: &str| Note { at_ns, text: text.into() };
    let notes = vec![note(0, "phase warmup"), note(3000, "phase run"), note(8_000_000_000, "turn x = y")];
    let noted = Trace { notes, ..trace() };
    let mut bytes = Vec::new();
    write(&noted, WrittenForm::Blktrace, &mut bytes).unwrap();
    let read = read_bytes(&bytes, "x").unwrap();
    assert_eq!(read, noted);
    // BLK_TN_MESSAGE, after the note with the process's name.
    assert_eq!(bytes[64 + 28..64 + 32], 0x0400_0002_u32.to_le_bytes());
    let of = |name: &str| {
        let mut trace = read.clone();
        trace.keep_phase(name).then(|| trace.ios.iter().map(|io| io.issued_ns).collect::<Vec<_>>())
    };
    assert_eq!(of("warmup"), Some(vec![1000, 1000, 2000]));
    assert_eq!(of("run"), Some(vec![3000, 7_000_000_123]));
    assert_eq!(of("mkfs"), None);
}

#[test]
fn a_record_is_the_kernels() {
    let bytes = written(WrittenForm::Blktrace);
    // A process's name: 48 bytes and 16. Then a read is queued and issued.
    let (note, first) = (&bytes[..64], &bytes[112..160]);
    assert_eq!(&note[..4], [0x07, 0x74, 0x61, 0x65]);
    assert_eq!(&note[28..], b"\x00\x00\x00\x04*\0\0\0\x10\0\x80\0\0\0\0\0\0\0\x10\0mkfs.ext4\0\0\0\0\0\0\0");
    let fields = b"\x07tae\x02\0\0\0\xe8\x03\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\0\x10\0\0\x07\0A\0*\0\0\0\x10\0\x80\0\0\0\0\0\0\0\0\0";
    assert_eq!(first, fields);
    // A flush completes without a sector.
    assert_eq!(bytes.windows(8).filter(|bytes| **bytes == [0xff; 8]).count(), 1);
}

/// A file cut off at any length is an error, or a shorter trace.
#[test]
fn a_file_cut_off_anywhere_is_refused_or_shorter() {
    let bytes = written(WrittenForm::Blktrace);
    for length in 0..bytes.len() {
        match read_bytes(&bytes[..length], "x") {
            Ok(shorter) => assert!(shorter.ios.len() <= 5 && (length - 64).is_multiple_of(48), "{length}"),
            Err(error) => assert_eq!(error.exit_status(), 2),
        }
    }
    assert_eq!(wrong(&bytes[..100]), "x: it ends within the record at byte 64: it was cut off");
    let log = written(WrittenForm::Fio);
    (0..log.len()).for_each(|length| drop(read_bytes(&log[..length], "x")));
}

#[test]
fn what_is_no_trace_is_said_to_be_none() {
    let with = |at: usize, byte: u8| {
        let mut bytes = written(WrittenForm::Blktrace);
        bytes[at] = byte;
        bytes
    };
    assert_eq!(wrong(b""), "x: it is empty");
    assert!(wrong(b"\x7fELF").contains("it is no trace in a form that is read here"));
    assert!(wrong(b"Dear all,\n").contains("it is no trace"));
    assert!(wrong(&[0xff; 10_000]).contains("it is no trace"));
    assert!(wrong(&[0; 10_000]).contains("it is no trace"));
    assert_eq!(wrong(&with(0, 8)), "x: its records are of version 8, and 7 is read");
    let big = [0x65, 0x61, 0x74, 0x07];
    assert_eq!(wrong(&[&big[..], &[0; 44]].concat()), "x: its records are those of a big-endian host");
    let damaged = "x: record at byte 112: it does not begin as a record does: the file is damaged";
    assert_eq!(wrong(&with(114, 0)), damaged);
}

/// Two issues on one CPU, with their fields changed.
fn two(change: impl Fn(&mut [u8], usize)) -> Vec<u8> {
    let bytes = written(WrittenForm::Blktrace);
    let mut bytes = [&bytes[112..160], &bytes[208..256]].concat();
    bytes[52] = 3;
    bytes.chunks_mut(48).enumerate().for_each(|(n, record)| change(record, n));
    bytes
}

#[test]
fn what_cannot_be_is_refused() {
    let back = two(|record, n| record[8..16].copy_from_slice(&(100 - n as u64).to_le_bytes()));
    assert_eq!(wrong(&back), "x: record at byte 48: time goes back from 100 ns to 99 ns");
    let again = two(|record, _| record[4] = 1);
    assert!(wrong(&again).contains("records are repeated, or out of order"));
    let far = two(|record, _| record[16..24].fill(0x7f));
    assert!(wrong(&far).contains("is past the end of any drive"));
    let further = two(|record, _| record[16..24].fill(0xff));
    assert!(wrong(&further).contains("is past the end of any drive"));
    let odd = two(|record, _| record[24] = 1);
    assert!(wrong(&odd).contains("is not in whole sectors"));
    let ends = two(|record, _| record[28] = 8);
    assert_eq!(wrong(&ends), "x: nothing in it was issued to a drive");
}

#[test]
fn numbers_left_out_are_lost_events() {
    let lost = two(|record, n| record[4] = 1 + 4 * n as u8);
    assert_eq!(read_bytes(&lost, "x").unwrap().lost, LostEvents::unknown(3));
    // Each CPU counts separately.
    let apart = two(|record, n| (record[4], record[40]) = (1 + 4 * n as u8, n as u8));
    assert_eq!(read_bytes(&apart, "x").unwrap().lost.all, 0);
}

#[test]
fn lost_events_stay_lost_in_another_form() {
    let mut bytes = Vec::new();
    // The last two exceed what a gap can say; events that are not completions are still reported as such.
    for (all, completions, kept) in [
        (70, 0, (70, 0)),
        (70, 70, (70, 70)),
        (70, 69, (70, 69)),
        (3 << 30, 3 << 30, (1 << 30, 1 << 30)),
        (3 << 30, (3 << 30) - 5, (1 << 30, (1 << 30) - 5)),
    ] {
        bytes.clear();
        let lost = LostEvents { all, completions };
        write(&Trace { lost, ..trace() }, WrittenForm::Blktrace, &mut bytes).unwrap();
        let kept = LostEvents { all: kept.0, completions: kept.1 };
        assert_eq!(read_bytes(&bytes, "x").unwrap(), Trace { lost: kept, ..trace() });
    }
    // Two drives count separately: neither misses anything.
    let mut two = trace();
    two.ios[1].drive = TracedDrive(3);
    bytes.clear();
    write(&two, WrittenForm::Blktrace, &mut bytes).unwrap();
    assert_eq!(read_bytes(&bytes, "x").unwrap(), two);
}

#[test]
fn files_of_several_processors_are_one_trace() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    // The issue on one CPU, the completion on another.
    let bytes = written(WrittenForm::Blktrace);
    std::fs::write(path("sda.blktrace.0"), &bytes[..256]).unwrap();
    let mut end = bytes[256..304].to_vec();
    end[40] = 1;
    std::fs::write(path("sda.blktrace.1"), end).unwrap();
    let both = read(&[path("sda.blktrace.1"), path("sda.blktrace.0")]).unwrap();
    assert_eq!((both.ios.len(), both.ios[1].completed_ns, both.unpaired), (2, Some(2000), 0));
    std::fs::write(path("text"), "0 0 8 8 1\n").unwrap();
    let error = read(&[path("sda.blktrace.0"), path("text")]).unwrap_err();
    assert!(error.what.ends_with("only blktrace's files, one per processor, are read together"), "{error}");
    assert_eq!(read(&[path("none")]).unwrap_err().exit_status(), 2);
}

#[test]
fn text_of_blkparse_is_read_as_it_was_written() {
    let note = |at_ns, text: &str| Note { at_ns, text: text.into() };
    let notes = vec![note(0, "phase warmup"), note(3000, "turn a = b"), note(8_000_000_000, "the end")];
    let lost = LostEvents { all: 7, completions: 3 };
    let mut noted = Trace { notes, lost, form: Form::Blkparse, ..trace() };
    noted.ios[1].drive = TracedDrive(3);
    noted.processes = vec![(42, "Web [Content".into())];
    let mut bytes = Vec::new();
    write(&noted, WrittenForm::Blkparse, &mut bytes).unwrap();
    let read = read_bytes(&bytes, "x").unwrap();
    // A bracket starts the name.
    noted.processes = vec![(42, "Content".into())];
    assert_eq!(read, noted);
}

const TEXT: &str = "Input file sdb.blktrace.0 added
  8,16   0        1     0.000001000    42  D   R 8 + 8 [mkfs.ext4]
  8,16   0        2     0.000001500    42  Q   W 8 + 8 [mkfs.ext4]
  8,16   0        0     0.000001700     0  m   N a message of others
  8,16   1        1     0.000002000    42  D  FN [mkfs.ext4]
  8,16   1        2     0.000003000     0  C   R 8 + 8 [0]
  8,16   1        3     0.000004000     0  C  FN 18446744073709551615 [0]
  8,16   1        4     0.000005000    42  D  DS 64 + 128 [Web Content]
  8,16   1        5     0.000006000     0  C FWS 8 [0]
  8,16   1        6     0.000007000    42  D   R 36 (12 00 00 00 24 00) [x]
  8,16   1        7     0.000008000     0  C  DS 64 + 128 (    3000) [0]
CPU0 (8,16):
 Reads Queued:           0,        0KiB\t Writes Queued:           1,        4KiB

Total (8,16):
 Reads Queued:           0,        0KiB\t Writes Queued:           1,        4KiB

Throughput (R/W): 4,000KiB/s / 0KiB/s
Events (8,16): 10 entries
Skips: 0 forward (0 -   0.0%)
";

#[test]
fn text_of_blkparse_is_read() {
    let read = read_bytes(TEXT.as_bytes(), "x").unwrap();
    let expected = [
        io(Op::Read, 1000, 3000, 8, 8),
        io(Op::Flush, 2000, 4000, 0, 0),
        io(Op::Discard, 5000, 8000, 64, 128),
    ];
    assert_eq!(read.ios, expected);
    assert_eq!((read.form, read.lost.all, read.unpaired), (Form::Blkparse, 0, 0));
    assert_eq!(read.notes, [Note { at_ns: 1700, text: "a message of others".into() }]);
    assert_eq!(read.processes, [(42, "mkfs.ext4".to_owned())]);
    let with = |from: &str, to: &str| TEXT.replacen(from, to, 1).into_bytes();
    assert_eq!(read_bytes(&with("(0 - ", "(7 - "), "x").unwrap().lost, LostEvents::unknown(7));
    assert_eq!(
        read_bytes(
            &with("  8,16   1        3     0.000004000     0  C  FN 18446744073709551615 [0]\n", ""),
            "x"
        )
        .unwrap()
        .lost,
        LostEvents::unknown(1)
    );
    assert_eq!(wrong(&with("8 + 8 [mk", "x + 8 [mk")), "x: line 2: x is not a sector of a drive");
    assert_eq!(wrong(&with("0.000008000", "0.000000001")), "x: line 11: time goes back from 7000 ns to 1 ns");
    assert_eq!(wrong(&with("a message", "x\n a message")), "x: line 5: it is not one of blkparse's");
    assert_eq!(wrong(&with("DS", "\x1bS")), "x: line 8: ␛S is not a kind of I/O");
    assert_eq!(wrong(&with("+ 128", "+ 12800000")), "x: line 8: no request has 12800000 sectors");
    assert!(wrong(&with("a message", &"x".repeat(5000))).contains("line 4 has over 4096 bytes"));
    assert_eq!(wrong(&[TEXT.as_bytes(), b"\xff\n"].concat()), "x: line 21 is not text");
}

#[test]
fn a_log_of_fio_has_the_issues() {
    let log = String::from_utf8(written(WrittenForm::Fio)).unwrap();
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "fio version 3 iolog",
            "0 /dev/block/8:16 add",
            "0 /dev/block/8:16 open",
            "1 /dev/block/8:16 read 4096 4096",
        ]
    );
    let read = read_bytes(log.as_bytes(), "x").unwrap();
    let issued =
        |io: &TracedIo| TracedIo { completed_ns: None, pid: 0, issued_ns: io.issued_ns / 1000 * 1000, ..*io };
    assert_eq!(read.ios, trace().ios.iter().map(issued).collect::<Vec<_>>());
    assert_eq!((read.form, read.open()), (Form::FioV3, 0));
    let second = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda wait 500 0\n/dev/sdb trim 0 512\n/dev/sda write 512 1024\n/dev/sda sync 0 0\n/dev/sda close\n";
    let read = read_bytes(second.as_bytes(), "x").unwrap();
    let ops: Vec<_> = read.ios.iter().map(|io| (io.op, io.drive.0, io.bytes, io.issued_ns)).collect();
    assert_eq!(ops, [(Op::Discard, 0, 512, 0), (Op::Write, 1, 1024, 0), (Op::Flush, 1, 0, 0)]);
    assert_eq!(wrong(second.replace("trim", "rtim").as_bytes()), "x: line 5: rtim is not an action of fio's");
    assert_eq!(wrong(second.replace(" 0 512", " 0 -1").as_bytes()), "x: line 5: it has no offset and length");
    assert_eq!(
        wrong(b"fio version 3 iolog\n9 a read 0 512\n8 a read 0 512\n"),
        "x: line 3: time goes back from 9000 ns to 8000 ns"
    );
    let many: Vec<_> = (0..2000).map(|n| format!("/{n} read 0 512\n")).collect();
    let many = many.concat();
    assert!(wrong(format!("fio version 2 iolog\n{many}").as_bytes()).contains("it names over 1024 files"));
}

/// What is written is read back, as far as the form can hold it.
#[test]
fn the_texts_of_simulators_are_written() {
    let no_flush = || trace().ios.into_iter().filter(|io| io.op != Op::Flush);
    let events = written(WrittenForm::Wiscsee);
    let read = read_bytes(&events, "x").unwrap();
    let expected: Vec<_> = no_flush().map(|io| TracedIo { drive: TracedDrive(0), ..io }).collect();
    assert_eq!((read.ios, read.form, read.unpaired), (expected, Form::Wiscsee, 0));
    assert!(events.starts_with(b"42 D read 4096 4096 0.000001000 0.000000000 True\n"));
    let read = read_bytes(&written(WrittenForm::Mqsim), "x").unwrap();
    let of_data = no_flush().filter(|io| io.op != Op::Discard);
    let expected = of_data.map(|io| TracedIo { completed_ns: None, pid: 0, drive: TracedDrive(0), ..io });
    assert_eq!((read.ios, read.form), (expected.collect::<Vec<_>>(), Form::Mqsim));
    let table = String::from_utf8(written(WrittenForm::Csv)).unwrap();
    let lines: Vec<_> = table.lines().collect();
    assert_eq!((lines.len(), lines[1]), (6, "1000,5000,8:16,42,read,4096,4096"));
    assert_eq!(lines[5], "7000000123,,8:16,42,write,4096,4096");
}

#[test]
fn what_a_form_cannot_say_is_said_or_refused() {
    let left_out = |form: WrittenForm| form.left_out(&trace()).unwrap_or_default();
    assert_eq!(left_out(WrittenForm::Blktrace), "");
    assert_eq!(left_out(WrittenForm::Mqsim), "MQSim's text can't say, and lacks: discard (1), flush (1)");
    let lost = |all, completions| Trace { lost: LostEvents { all, completions }, ..trace() };
    let is_refused = |form: WrittenForm, trace: &Trace| form.check(trace).is_err();
    let forms = [
        WrittenForm::Blktrace,
        WrittenForm::Blkparse,
        WrittenForm::Fio,
        WrittenForm::Mqsim,
        WrittenForm::Wiscsee,
        WrittenForm::Csv,
    ];
    assert_eq!(forms.map(|form| is_refused(form, &lost(2, 0))), [false, false, true, true, true, true]);
    assert_eq!(forms.map(|form| is_refused(form, &lost(2, 2))), [false, false, false, false, true, true]);
    let mut two = trace();
    two.ios[1].drive = TracedDrive(3);
    assert_eq!(forms.map(|form| is_refused(form, &two)), [false, false, false, false, true, false]);
}

#[test]
fn the_texts_of_simulators_are_read() {
    let read = read_bytes(b"10 0 8 16 0\n20 1 0 8 1\n", "x").unwrap();
    let ops: Vec<_> =
        read.ios.iter().map(|io| (io.op, io.drive.0, io.offset_bytes, io.bytes, io.issued_ns)).collect();
    assert_eq!(ops, [(Op::Write, 0, 4096, 8192, 10), (Op::Read, 1, 0, 4096, 20)]);
    assert!(wrong(b"10 0 8 16 0\n20 1 0 8 2\n").contains("line 2: 2 is neither 0, a write, nor 1, a read"));
    assert!(wrong(b"10 0 8 99999999999 0\n").contains("a number in it is too large"));
    assert!(wrong(b"10 0 18446744073709551615 8 0\n").contains("a number in it is too large"));

    let events = "7 D write 4096 8192 0.000000010 0 True\n7 D read -512 512 0.000000011 1e-09 False\n\
                  0 C write 4096 8192 0.000000020 9e-09 True\n";
    let read = read_bytes(events.as_bytes(), "x").unwrap();
    let ops: Vec<_> =
        read.ios.iter().map(|io| (io.op, io.offset_bytes, io.issued_ns, io.completed_ns)).collect();
    assert_eq!(ops, [(Op::Write, 4096, 10, Some(20))]);
    assert!(wrong(events.replace("C write", "E write").as_bytes()).contains("line 3: it is neither"));
    assert!(
        wrong(events.replace("0.000000020", "0.00000002x").as_bytes()).contains("its time can't be read")
    );
}

/// A million records with a valid start and arbitrary content: an answer at once, in bounded memory.
#[test]
fn a_million_records_of_garbage_are_refused() {
    let mut state = 5_u64;
    let mut bytes = Vec::with_capacity(48_000_000);
    for _ in 0..1_000_000 {
        bytes.extend_from_slice(&[0x07, 0x74, 0x61, 0x65]);
        for _ in 0..11 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.extend_from_slice(&((state >> 32) as u32).to_le_bytes());
        }
    }
    assert!(read_bytes(&bytes, "x").is_err());
    // As plausible as possible: one CPU, consecutive numbers, increasing times, places on a drive of 1 TiB.
    let mut at = 0;
    for (number, record) in (1_u32..).zip(bytes.chunks_mut(48)) {
        at += u64::from(record[8]);
        record[4..8].copy_from_slice(&number.to_le_bytes());
        record[8..16].copy_from_slice(&at.to_le_bytes());
        record[20..24].fill(0);
        record[24] = 0;
        record[25] &= 0xfe;
        record[26..28].fill(0);
        record[28] = 6 + record[28] % 3;
        record[31] &= 0xf9;
        record[36..44].fill(0);
        record[46..48].fill(0);
    }
    let read = read_bytes(&bytes, "x").unwrap();
    assert!(read.ios.len() > 200_000 && read.lost.all == 0, "{} {:?}", read.ios.len(), read.lost);
}
