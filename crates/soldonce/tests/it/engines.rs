//! The purchase in another browser engine than Chromium.

use crate::browser::run;

#[test]
fn firefox_buys() {
    run("engines/firefox", ("SOLDONCE_FIREFOX", "firefox"));
}
