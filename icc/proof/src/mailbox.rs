//! `icc/include/latenz/icc/mailbox.hpp`: a count of each side in a word of its own.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

#[derive(Clone, Copy)]
struct Rules {
    store_written: Ordering,
    load_written: Ordering,
    store_taken: Ordering,
    load_taken: Ordering,
    payload_first: bool,
    copy_first: bool,
}

const SHIPPED: Rules = Rules {
    store_written: Release,
    load_written: Acquire,
    store_taken: Release,
    load_taken: Acquire,
    payload_first: true,
    copy_first: true,
};

struct Slot {
    payload: UnsafeCell<[u32; 2]>,
    taken: AtomicU32,
    written: AtomicU32,
}

fn write(slot: &Slot, message: u32, rules: Rules) {
    while slot.taken.load(rules.load_taken) != message - 1 {
        loom::thread::yield_now();
    }
    let put = || slot.payload.with_mut(|p| unsafe { *p = [message; 2] });
    if rules.payload_first {
        put();
    }
    slot.written.store(message, rules.store_written);
    if !rules.payload_first {
        put();
    }
}

fn read(slot: &Slot, last: u32, rules: Rules) -> [u32; 2] {
    let mut written = slot.written.load(rules.load_written);
    while written == last {
        loom::thread::yield_now();
        written = slot.written.load(rules.load_written);
    }
    if !rules.copy_first {
        slot.taken.store(written, rules.store_taken);
    }
    let message = slot.payload.with(|p| unsafe { *p });
    if rules.copy_first {
        slot.taken.store(written, rules.store_taken);
    }
    message
}

fn check(messages: u32, rules: Rules) {
    loom::model(move || {
        let slot = Arc::new(Slot {
            payload: UnsafeCell::new([0; 2]),
            taken: AtomicU32::new(0),
            written: AtomicU32::new(0),
        });
        let readers = slot.clone();
        let reader = loom::thread::spawn(move || {
            for number in 1..=messages {
                assert_eq!(read(&readers, number - 1, rules), [number; 2]);
            }
        });
        for number in 1..=messages {
            write(&slot, number, rules);
        }
        reader.join().unwrap();
    });
}

#[test]
fn each_message_once_and_in_order() {
    check(3, SHIPPED);
}

#[test]
#[should_panic]
fn mutant_written_stored_relaxed() {
    check(2, Rules { store_written: Relaxed, ..SHIPPED });
}

#[test]
#[should_panic]
fn mutant_written_loaded_relaxed() {
    check(2, Rules { load_written: Relaxed, ..SHIPPED });
}

#[test]
#[should_panic]
fn mutant_taken_stored_relaxed() {
    check(2, Rules { store_taken: Relaxed, ..SHIPPED });
}

#[test]
#[should_panic]
fn mutant_taken_loaded_relaxed() {
    check(2, Rules { load_taken: Relaxed, ..SHIPPED });
}

#[test]
#[should_panic]
fn mutant_counted_before_the_payload_is_there() {
    check(2, Rules { payload_first: false, ..SHIPPED });
}

#[test]
#[should_panic]
fn mutant_acknowledged_before_copied() {
    check(2, Rules { copy_first: false, ..SHIPPED });
}
