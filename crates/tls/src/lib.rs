//! `soldonce-tls`: TLS as all of Soldonce speaks it, rustls with ring. It reads certificates and decides
//! what a peer must prove; it opens no connection.
//!
//! [`postgres`] reads what a database's address asks of TLS, as libpq does, [`Listener`] is the certificate of
//! a server that changes while it serves, and [`choose_cryptography`] is for clients that ask the process.

mod binding;
mod files;
mod listener;
pub mod postgres;
mod verify;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

pub use self::files::FileError;
pub use self::listener::{Listener, Reloaded};

/// Sets the cryptography of the process, unless it has one: reqwest panics without it.
pub fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have set it meanwhile.
        ring::default_provider().install_default().ok();
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
