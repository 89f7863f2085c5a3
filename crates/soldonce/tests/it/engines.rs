//! The purchase in other browser engines than Chromium, and the page on a slow phone.

use crate::browser::{CHROMIUM, run};

#[test]
fn firefox_buys() {
    run("engines/firefox", ("SOLDONCE_FIREFOX", "firefox"));
}

#[test]
fn webkit_buys() {
    run("engines/webkit", ("SOLDONCE_WEBKIT", "webkit"));
}

#[test]
fn a_slow_phone_chooses_in_time() {
    run("engines/slow", CHROMIUM);
}
