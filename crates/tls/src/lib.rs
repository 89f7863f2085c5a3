//! `soldonce-tls`: TLS as all of Soldonce speaks it, rustls with ring. It reads certificates and decides
//! what a peer must prove; it opens no connection.
//!
//! `postgres` (feature of that name) reads what a database's address asks of TLS, as libpq does, [`Listener`] is
//! the certificate of a server that changes while it serves, [`ClientFiles`] are for drivers that take PEM, and
//! [`choose_cryptography`] is for clients that ask the process.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "postgres")]
mod binding;
mod client;
mod files;
mod listener;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "postgres")]
mod verify;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};

pub use self::client::{ClientFiles, ClientPem, is_certificate_refusal};
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
