//! `icc/include/latenz/icc/latest.hpp`, without what loom cannot break: identity and restarts.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicU32, Ordering};
use loom::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// The orders and fences that the algorithm needs; a mutant weakens one of them.
#[derive(Clone, Copy)]
struct Rules {
    reader_fence: bool,
    writer_fence: bool,
    announcements_heeded: bool,
    newest_before_latest: bool,
    store_newest: Ordering,
    load_newest: Ordering,
}

const SHIPPED: Rules = Rules {
    reader_fence: true,
    writer_fence: true,
    announcements_heeded: true,
    newest_before_latest: true,
    store_newest: Release,
    load_newest: Acquire,
};

struct Slot {
    number: AtomicU32,
    payload: UnsafeCell<[u32; 2]>,
}

struct Shared {
    updates: AtomicU32,
    latest: AtomicU32,
    newest: Vec<AtomicU32>,
    announced: Vec<AtomicU32>,
    slots: Vec<[Slot; 2]>,
}

impl Shared {
    fn new(readers: usize) -> Self {
        let slot = || Slot {
            number: AtomicU32::new(0),
            payload: UnsafeCell::new([0; 2]),
        };
        Self {
            updates: AtomicU32::new(0),
            latest: AtomicU32::new(0),
            newest: (0..=readers).map(|_| AtomicU32::new(0)).collect(),
            announced: (0..readers).map(|_| AtomicU32::new(0)).collect(),
            slots: (0..=readers).map(|_| [slot(), slot()]).collect(),
        }
    }
}

struct Writer {
    newest: Vec<usize>,
    latest: usize,
    number: u32,
}

impl Writer {
    fn new(readers: usize) -> Self {
        Self {
            newest: vec![0; readers + 1],
            latest: 0,
            number: 0,
        }
    }

    fn update(&mut self, shared: &Shared, value: u32, rules: Rules) {
        if rules.writer_fence {
            fence(SeqCst);
        }
        let announced: Vec<u32> = shared.announced.iter().map(|a| a.load(Acquire)).collect();
        let is_announced = |pair: usize| {
            rules.announcements_heeded && announced.contains(&u32::try_from(pair + 1).unwrap())
        };
        let pair = if is_announced(self.latest) {
            (0..self.newest.len()).find(|&p| !is_announced(p)).unwrap()
        } else {
            self.latest
        };
        let which = 1 - self.newest[pair];
        let slot = &shared.slots[pair][which];
        slot.payload.with_mut(|p| unsafe { *p = [value, value] });
        self.number += 1;
        slot.number.store(self.number, Relaxed);
        self.newest[pair] = which;
        self.latest = pair;
        let tell_newest = || shared.newest[pair].store(which as u32, rules.store_newest);
        let tell_latest = || shared.latest.store(pair as u32 + 1, Release);
        if rules.newest_before_latest {
            tell_newest();
            tell_latest();
        } else {
            tell_latest();
            tell_newest();
        }
        shared.updates.store(self.number, Release);
    }
}

#[derive(Default)]
struct Reader {
    index: usize,
    slot: Option<(usize, usize)>,
    number: u32,
}

impl Reader {
    fn poll(&mut self, shared: &Shared, rules: Rules) -> Option<[u32; 2]> {
        let updates = shared.updates.load(Acquire);
        if self.slot.is_some() && (updates == self.number || updates + 1 == self.number) {
            return None;
        }
        let latest = shared.latest.load(Acquire);
        if latest == 0 {
            return None;
        }
        shared.announced[self.index].store(latest, Release);
        if rules.reader_fence {
            fence(SeqCst);
        }
        let pair = latest as usize - 1;
        let which = shared.newest[pair].load(rules.load_newest) as usize;
        let slot = &shared.slots[pair][which];
        self.number = slot.number.load(Relaxed);
        self.slot = Some((pair, which));
        Some(slot.payload.with(|p| unsafe { *p }))
    }
}

fn check(readers: usize, updates: u32, reads: u32, preemptions: Option<usize>, rules: Rules) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 100_000;
    builder.check(move || {
        let shared = Arc::new(Shared::new(readers));
        let threads: Vec<_> = (0..readers)
            .map(|index| {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    let mut reader = Reader {
                        index,
                        ..Reader::default()
                    };
                    let mut last = 0;
                    for _ in 0..reads {
                        if let Some([a, b]) = reader.poll(&shared, rules) {
                            assert_eq!(a, b, "torn");
                            assert_eq!(a, reader.number, "another number");
                            assert!(a > last, "backward");
                            last = a;
                        }
                    }
                })
            })
            .collect();
        let mut writer = Writer::new(readers);
        for value in 1..=updates {
            writer.update(&shared, value, rules);
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn one_reader() {
    check(1, 3, 2, Some(4), SHIPPED);
}

#[test]
fn two_readers() {
    check(2, 2, 1, Some(2), SHIPPED);
}

/// Farther than every run of the tests has time for.
#[test]
fn far() {
    if std::env::var("LATENZ_EXPLORE").is_ok_and(|wanted| wanted == "far") {
        check(1, 4, 2, None, SHIPPED);
        check(1, 3, 3, None, SHIPPED);
        check(2, 3, 1, Some(4), SHIPPED);
    }
}

#[test]
#[should_panic]
fn mutant_reader_without_fence() {
    check(1, 3, 2, Some(3), Rules { reader_fence: false, ..SHIPPED });
}

#[test]
#[should_panic]
fn mutant_writer_without_fence() {
    check(1, 3, 2, Some(3), Rules { writer_fence: false, ..SHIPPED });
}

#[test]
#[should_panic]
fn mutant_announcements_ignored() {
    check(1, 3, 2, Some(3), Rules { announcements_heeded: false, ..SHIPPED });
}

#[test]
#[should_panic]
fn mutant_latest_before_newest() {
    check(1, 3, 2, Some(3), Rules { newest_before_latest: false, ..SHIPPED });
}

#[test]
#[should_panic]
fn mutant_newest_stored_relaxed() {
    check(1, 3, 2, Some(3), Rules { store_newest: Relaxed, ..SHIPPED });
}

#[test]
#[should_panic]
fn mutant_newest_loaded_relaxed() {
    check(1, 3, 2, Some(3), Rules { load_newest: Relaxed, ..SHIPPED });
}
